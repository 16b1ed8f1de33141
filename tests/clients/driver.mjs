// The line protocol of the client drivers: operations as JSON lines on stdin, answers as JSON lines on stdout. Knows no
// SDK: each driver passes in what its SDK can do. Several calls run at once; nothing is retried and nothing is judged.
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n');

function options() {
    // Everything after --stdio belongs to the server's command line.
    const own = process.argv.slice(2);
    const at = own.indexOf('--stdio');
    const stdio = at < 0 ? undefined : own.splice(at).slice(1);
    const { values } = parseArgs({
        args: own,
        options: {
            url: { type: 'string' },
            mode: { type: 'string', default: 'legacy' },
            header: { type: 'string', multiple: true, default: [] },
            name: { type: 'string', default: 'driver' },
        },
    });
    const headers = Object.fromEntries(
        values.header.map((header) => {
            const colon = header.indexOf(':');
            return [header.slice(0, colon).trim(), header.slice(colon + 1).trim()];
        }),
    );
    return { ...values, headers, command: stdio?.[0], args: stdio?.slice(1) ?? [] };
}

function failure(error) {
    const { code, message, data } = error;
    return { code: code ?? error.name ?? null, message: String(message ?? error), data: data ?? null };
}

// Requests besides those for tools, by method; both SDKs call them alike.
const requests = {
    capabilities: (client) => client.getServerCapabilities(),
    'resources/list': (client, params) => client.listResources(params),
    'resources/templates/list': (client, params) => client.listResourceTemplates(params),
    'resources/read': (client, params) => client.readResource(params),
    'resources/subscribe': (client, params) => client.subscribeResource(params),
    'resources/unsubscribe': (client, params) => client.unsubscribeResource(params),
    'prompts/list': (client, params) => client.listPrompts(params),
    'prompts/get': (client, params) => client.getPrompt(params),
    'completion/complete': (client, params) => client.complete(params),
    'logging/setLevel': (client, params) => client.setLoggingLevel(params.level),
};

export const requester = (client) => (op) => requests[op.method](client, op.params ?? {});

// `connect(options, notify)` answers { protocol, list(op), call(op, {signal, timeout, progress}), request(op), close() }.
export async function drive(connect) {
    const running = new Map();
    let client;
    try {
        client = await connect(options(), (notification) => say({ notification }));
    } catch (error) {
        say({ ready: false, error: failure(error) });
        process.exit(1);
    }
    say({ ready: true, protocol: client.protocol });

    const answer = async (op) => {
        const abort = new AbortController();
        running.set(op.id, abort);
        try {
            const progress = op.progress ? (progress) => say({ id: op.id, progress }) : undefined;
            const result = op.op === 'call' ? await client.call(op, { abort, progress }) : await client[op.op](op);
            say({ id: op.id, ok: true, result });
        } catch (error) {
            say({ id: op.id, ok: false, error: failure(error) });
        } finally {
            running.delete(op.id);
        }
    };

    for await (const line of createInterface({ input: process.stdin })) {
        const op = JSON.parse(line);
        if (op.op === 'close') break;
        if (op.op === 'cancel') running.get(op.id)?.abort(op.reason ?? 'cancelled by the test');
        else void answer(op);
    }
    await client.close();
    process.exit(0);
}

export function params(op) {
    return { name: op.name, arguments: op.arguments ?? {}, ...(op.meta && { _meta: op.meta }), ...(op.params ?? {}) };
}

export function requestOptions(op, { abort, progress }) {
    return {
        signal: abort.signal,
        ...(op.timeout_ms && { timeout: op.timeout_ms }),
        ...(op.reset_on_progress && { resetTimeoutOnProgress: true }),
        ...(progress && { onprogress: progress }),
    };
}

// What the user answers to every form, where a test sets it.
export const capabilities = process.env.CLIENT_ANSWERS === undefined ? {} : { elicitation: {} };

export async function elicited(request, notify) {
    notify({ method: 'test/asked', params: request.params });
    return { action: 'accept', content: { answer: process.env.CLIENT_ANSWERS } };
}

// The whole environment, so that the server sees what a test set.
export function stdioParameters({ command, args }) {
    return { command, args, env: { ...process.env }, stderr: 'inherit' };
}
