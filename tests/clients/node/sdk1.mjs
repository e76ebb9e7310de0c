// Drives a server with @modelcontextprotocol/sdk 1.x.
//
//   node sdk1.mjs -- SERVER ARGS...

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';

import { drive, parseArguments } from './journey.mjs';

const { server } = parseArguments(['initialize']);

await drive({
    server,
    revision: '2025-11-25',
    ping: true,
    runs: [{ signalled: false }],
    async connect(parameters, complain) {
        const transport = new StdioClientTransport(parameters);
        // The client tells the negotiated revision to its transport alone.
        let revision;
        transport.setProtocolVersion = version => (revision = version);
        const client = new Client({ name: 'sdk1', version: '0.0.0' });
        client.onerror = complain;
        await client.connect(transport);
        return { client, revision, refused: McpError };
    }
});
