// Drives a server with @modelcontextprotocol/client 2.x.
//
//   node sdk2.mjs [MODE] -- SERVER ARGS...
//
// The modes:
//
//   default        what a client does that says nothing of negotiation: the
//                  `initialize` handshake
//   auto           asks `server/discover` of a first process, which it ends right
//                  away by closing its stdin and sending SIGTERM, and talks to a
//                  second one
//   auto-in-place  does the same with one process, as with any transport that is
//                  not exactly the library's own
//   pin            like auto, but does not fall back to the handshake

import { Client, ProtocolError } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { drive, parseArguments } from './journey.mjs';

// A subclass is enough for the library to probe in place.
class OwnTransport extends StdioClientTransport {}

const HANDSHAKE = '2025-11-25';
const MODERN = '2026-07-28';
const PROBED = { signalled: true };
const SERVED = { signalled: false };

const MODES = {
    default: { revision: HANDSHAKE, runs: [SERVED] },
    auto: { negotiation: 'auto', revision: MODERN, runs: [PROBED, SERVED] },
    'auto-in-place': { negotiation: 'auto', revision: MODERN, runs: [SERVED], Transport: OwnTransport },
    pin: { negotiation: { pin: MODERN }, revision: MODERN, runs: [PROBED, SERVED] }
};

const { mode, server } = parseArguments(Object.keys(MODES));
const { negotiation, revision, runs, Transport = StdioClientTransport } = MODES[mode];

await drive({
    server,
    revision,
    ping: revision === HANDSHAKE,
    runs,
    async connect(parameters, complain) {
        const options = negotiation && { versionNegotiation: { mode: negotiation } };
        const client = new Client({ name: 'sdk2', version: '0.0.0' }, options);
        client.onerror = complain;
        await client.connect(new Transport(parameters));
        return { client, revision: client.getNegotiatedProtocolVersion(), refused: ProtocolError };
    }
});
