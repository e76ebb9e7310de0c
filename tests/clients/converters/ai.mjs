// Drives a server through the AI SDK and its MCP client, and what zod makes of the schemas.
//
//   node ai.mjs -- SERVER ARGS...

import assert from 'node:assert/strict';

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';
import { generateText } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';

const [dashes, ...server] = process.argv.slice(2);
assert.equal(dashes, '--', 'usage: node ai.mjs -- SERVER ARGS...');
setTimeout(() => assert.fail('it took more than a minute'), 60_000).unref();

const TASK = {
    goal: 'Retry the upload when the connection "drops".',
    repo: '/srv/uploader',
    files: ['src/upload.rs'],
    acceptance: ['cargo test passes']
};

const transport = new StdioTransport({ command: server[0], args: server.slice(1) });
const client = await createMCPClient({ transport });
const tools = await client.tools();

// Has a model call a tool with these arguments, once with null for each that is left out.
async function call(name, given) {
    let schema;
    const model = new MockLanguageModelV3({
        doGenerate: async ({ tools: offered }) => {
            schema = offered.find(tool => tool.name === name).inputSchema;
            const every = Object.keys(schema.properties).map(key => [key, given[key] ?? null]);
            for (const one of [given, Object.fromEntries(every)]) z.fromJSONSchema(schema).parse(one);
            const input = JSON.stringify(Object.fromEntries(every));
            const usage = { inputTokens: {}, outputTokens: {} };
            const content = [{ type: 'tool-call', toolCallId: 'call_1', toolName: name, input }];
            return { content, finishReason: { unified: 'tool-calls' }, usage, warnings: [] };
        }
    });
    const { toolResults, content } = await generateText({ model, tools, prompt: 'Do it.' });
    assert.equal(toolResults.length, 1, JSON.stringify(content));
    return toolResults[0].output.structuredContent;
}

const answer = await call('larry_submit_task', TASK);
if (server.includes('--executor')) {
    const task = { task_id: answer.task_id };
    const ended = await call('larry_task_status', { ...task, wait_s: 45 });
    assert.equal(ended.state, 'succeeded');
    const page = await call('larry_task_result', { ...task, part: 'diff', offset: 0, limit: 100 });
    assert.equal(page.error.code, 'unsupported', 'that executor has no pages');
    assert.equal((await call('larry_cancel_task', task)).state, 'succeeded');
    console.log('had a task done');
} else {
    assert.equal(answer.error.code, 'executor_not_connected');
    console.log('was told that no executor is there');
}
await client.close();
