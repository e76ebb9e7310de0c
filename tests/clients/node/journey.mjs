// What every Node driver does with its client, and how it is judged.

import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const RECORD = fileURLToPath(new URL('../record.sh', import.meta.url));

// A client waits a minute for a reply, and a test run should not.
const PATIENCE_MS = 30_000;

const TOOL = 'larry_submit_task';

// Those that are there with an executor alone.
const FOLLOWING = ['larry_task_status', 'larry_task_result', 'larry_cancel_task'];

const TASK = {
    goal: 'Retry the upload when the connection is reset.',
    repo: '/srv/uploader',
    acceptance: ['cargo test passes'],
    files: ['src/upload.rs']
};

// The repository is missing and the goal is no string.
const MALFORMED_TASK = { goal: 7, acceptance: ['cargo test passes'] };

/** Splits `MODE -- SERVER ARGS...`; the mode may be left out. */
export function parseArguments(modes) {
    const given = process.argv.slice(2);
    const split = given.indexOf('--');
    const server = given.slice(split + 1);
    const mode = split === 1 ? given[0] : modes[0];
    if (split < 0 || split > 1 || server.length === 0 || !modes.includes(mode)) {
        console.error(`usage: [${modes.join('|')}] -- SERVER ARGS...`);
        process.exit(2);
    }
    return { mode, server };
}

/**
 * Runs the whole journey and ends the process with 0 or 1.
 *
 * `connect` gets the parameters for the transport and a function for complaints
 * of the client, and gives `{ client, revision, refused }`: the connected client,
 * the revision that it speaks, and the class of its JSON-RPC errors.
 */
export async function drive({ server, revision, ping, runs, connect }) {
    const directory = await mkdtemp(join(tmpdir(), 'rocco-client-'));
    const parameters = { command: 'sh', args: [RECORD, directory, ...server] };
    let failure;
    try {
        const executor = server.includes('--executor');
        await inTime(journey({ parameters, revision, ping, executor, connect }));
        await checkRuns(directory, runs);
    } catch (error) {
        failure = error;
    }
    await killLeftovers(directory);
    // A server that was just killed may still get its note; the outcome matters more.
    await rm(directory, { recursive: true, maxRetries: 3 }).catch(() => {});

    if (failure === undefined) {
        console.log(`spoke ${revision}`);
    } else {
        console.error(failure.stack ?? failure);
    }
    process.exit(failure === undefined ? 0 : 1);
}

async function journey({ parameters, revision, ping, executor, connect }) {
    // A client goes on after a message that it could not read, and only mentions it
    // here. The 2.x client skips a line that is no JSON without a word.
    const complaints = [];
    const connected = await connect(parameters, error => complaints.push(error));
    const { client, refused } = connected;
    try {
        assert.equal(connected.revision, revision, 'the negotiated revision');

        const { tools } = await client.listTools();
        const names = executor ? [TOOL, ...FOLLOWING] : [TOOL];
        assert.deepEqual(tools.map(tool => tool.name), names, 'the names of the tools');
        assert.equal(tools[0].inputSchema.type, 'object', 'the type of the input schema');
        assert.ok(tools[0].title, 'the tool has no title');

        if (executor) {
            await handOver(client);
        } else {
            await expectToolError(client, TOOL, TASK, 'executor_not_connected');
        }
        await expectToolError(client, TOOL, MALFORMED_TASK, 'invalid_arguments');

        await assert.rejects(
            client.callTool({ name: 'no_such_tool', arguments: {} }),
            error => error instanceof refused && error.code === -32602,
            'an unknown tool is refused with -32602'
        );

        if (ping) {
            await client.ping();
        }
    } finally {
        await client.close();
    }
    assert.deepEqual(complaints, [], 'the client complained');
}

/** Has tests/executor_client/executor.py do a task, and calls each of the tools. */
async function handOver(client) {
    const { task_id } = await expectSuccess(client, TOOL, TASK);
    const [status, page, cancel] = FOLLOWING;
    const ended = await expectSuccess(client, status, { task_id, wait_s: 45 });
    assert.equal(ended.state, 'succeeded', 'the state after the wait');
    assert.equal(ended.record.summary, TASK.goal, 'the summary');
    // That executor has no pages, and a task that has ended stays as it is.
    await expectToolError(client, page, { task_id, part: 'diff' }, 'unsupported');
    const cancelled = await expectSuccess(client, cancel, { task_id });
    assert.equal(cancelled.state, 'succeeded', 'the state after a cancel that came too late');
}

async function expectSuccess(client, name, given) {
    const result = await client.callTool({ name, arguments: given });
    assert.ok(!result.isError, `${name} failed: ${result.content[0]?.text}`);
    return result.structuredContent;
}

async function expectToolError(client, name, given, code) {
    const result = await client.callTool({ name, arguments: given });
    assert.equal(result.isError, true, `isError where ${code} is expected`);
    assert.equal(result.content[0]?.type, 'text', `the content where ${code} is expected`);
    assert.ok(
        result.content[0].text.startsWith(code),
        `the text should start with ${code}: ${result.content[0].text}`
    );
}

/**
 * Checks that each run of the server ended by itself, in good order and silently.
 * `runs` says for each of them whether the library may have sent it a signal.
 */
async function checkRuns(directory, runs) {
    const names = (await readdir(directory)).sort();
    assert.equal(names.length, runs.length, 'how often the server was started');
    for (const [index, { signalled }] of runs.entries()) {
        const run = join(directory, names[index]);
        const end = await readFile(join(run, 'end'), 'utf8').catch(() => undefined);
        assert.ok(end !== undefined, 'the server had not ended when its client was done');
        const [status, signal] = end.trim().split(' ');
        if (!signalled) {
            assert.equal(signal, 'none', 'the signal that was needed to end the server');
        }
        assert.equal(status, '0', 'the exit code of the server');
        assert.equal(await readFile(join(run, 'stderr'), 'utf8'), '', 'the stderr of the server');
    }
}

/** Ends the servers that outlived their client. */
async function killLeftovers(directory) {
    for (const name of await readdir(directory)) {
        const run = join(directory, name);
        if (await readFile(join(run, 'end')).then(() => true, () => false)) continue;
        try {
            process.kill(Number(await readFile(join(run, 'pid'), 'utf8')), 'SIGKILL');
        } catch {
            // It ended in the meantime.
        }
    }
}

function inTime(promise) {
    const late = new Promise((_, reject) => {
        const error = new Error(`no end after ${PATIENCE_MS / 1000} s`);
        setTimeout(reject, PATIENCE_MS, error).unref();
    });
    return Promise.race([promise, late]);
}
