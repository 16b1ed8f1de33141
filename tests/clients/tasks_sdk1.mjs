// Drives the experimental tasks API of the official TypeScript SDK 1.x (2025-11-25): one call as a task, each message of its
// stream a JSON line on stdout; or one task by its id. Forms are accepted with `--content`. Judges nothing.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { parseArgs } from 'node:util';

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n');
const { values: options } = parseArgs({
    options: {
        url: { type: 'string' },
        name: { type: 'string' },
        arguments: { type: 'string', default: '{}' },
        content: { type: 'string', default: '{}' },
        ttl: { type: 'string' },
        // The id of a task that is there already.
        task: { type: 'string' },
        cancel: { type: 'boolean', default: false },
        // Leaves once the task is made.
        detach: { type: 'boolean', default: false },
    },
});
const failure = ({ code, message, data }) => ({ code: code ?? null, message, data: data ?? null });

const client = new Client({ name: 'tasks-sdk1', version: '1' }, { capabilities: { elicitation: { form: {} } } });
client.setRequestHandler(ElicitRequestSchema, (request) => {
    say({ asked: request });
    return { action: 'accept', content: JSON.parse(options.content) };
});
await client.connect(new StreamableHTTPClientTransport(new URL(options.url)));
const { tools } = await client.listTools();
say({ capabilities: client.getServerCapabilities(), tools: tools.map(({ name, execution }) => ({ name, execution })) });
const tasks = client.experimental.tasks;
try {
    if (options.task !== undefined) {
        if (options.cancel) say({ cancelled: await tasks.cancelTask(options.task) });
        say({ task: await tasks.getTask(options.task) });
        say({ result: await tasks.getTaskResult(options.task, CallToolResultSchema) });
    } else {
        const params = { name: options.name, arguments: JSON.parse(options.arguments) };
        const task = options.ttl === undefined ? {} : { ttl: Number(options.ttl) };
        for await (const message of tasks.callToolStream(params, CallToolResultSchema, { task })) {
            say({ message: { ...message, error: message.error && failure(message.error) } });
            if (options.detach && message.type === 'taskCreated') process.exit(0);
        }
    }
} catch (error) {
    say({ error: failure(error) });
}
process.exit(0);
