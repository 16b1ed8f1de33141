// Drives the official client of the tasks extension on top of the official TypeScript client 2.x: one call or one resumed
// task, each event a JSON line on stdout, the outcome last. The extension's client asks its host for a way to send its own
// requests; here that is a plain POST. Forms are accepted with `--content`. Judges nothing.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';
import { parseArgs } from 'node:util';

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n');
const { values: options } = parseArgs({
    options: {
        url: { type: 'string' },
        mode: { type: 'string', default: 'auto' },
        name: { type: 'string' },
        arguments: { type: 'string', default: '{}' },
        content: { type: 'string', default: '{}' },
        // A reference as `--detach` printed it.
        resume: { type: 'string' },
        // Prints the reference and leaves.
        detach: { type: 'boolean', default: false },
        cancel: { type: 'boolean', default: false },
    },
});

const clientInfo = { name: 'tasks-ext', version: '1' };
const capabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } };
const client = new Client(clientInfo, {
    capabilities,
    versionNegotiation: { mode: options.mode },
});
await client.connect(new StreamableHTTPClientTransport(new URL(options.url)));

let lastId = 0;
async function rawDispatch(request, { signal } = {}) {
    lastId += 1;
    const name = request.params?.name ?? request.params?.taskId;
    const response = await fetch(options.url, {
        method: 'POST',
        signal,
        headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            'mcp-protocol-version': '2026-07-28',
            'mcp-method': request.method,
            ...(name === undefined ? {} : { 'mcp-name': name }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: lastId, ...request }),
    });
    const text = await response.text();
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
    const data = isStream ? text.split('\n').filter((line) => line.startsWith('data: {')).at(-1).slice(6) : text;
    const message = JSON.parse(data);
    return message.error === undefined
        ? { kind: 'result', result: message.result }
        : { kind: 'error', error: message.error };
}

const isModern = client.getProtocolEra() === 'modern';
const session = createTaskSessionFromClient(client, {
    endpointId: 'test',
    onInputRequest: async (request) => {
        say({ asked: request });
        return { action: 'accept', content: JSON.parse(options.content) };
    },
    ...(isModern && {
        rawDispatch,
        v2RequestFraming: { protocolVersion: '2026-07-28', clientInfo, clientCapabilities: capabilities },
    }),
});
say({ capabilities: session.capabilities, protocol: client.getNegotiatedProtocolVersion() });
const execution =
    options.resume === undefined
        ? await session.callTool(options.name, JSON.parse(options.arguments), { task: { preference: 'prefer' } })
        : await session.resumeTask(JSON.parse(options.resume));
say({ kind: execution.kind, reference: execution.kind === 'task' ? execution.serializeReference() : null });
if (!options.detach) {
    if (options.cancel) await execution.cancel();
    const { outcome } = await execution.settle({ onEvent: (event) => say({ event }) });
    const { status, result, error } = outcome;
    say({ outcome: { status, result, error: error && { message: error.message, code: error.code, data: error.data } } });
}
process.exit(0);
