// Drives the official TypeScript client 2.x in the modes legacy, auto and pinned to a revision. Adds nothing to its
// behaviour: its own response cache stays on.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { capabilities, drive, elicited, params, requester, requestOptions, stdioParameters } from './driver.mjs';

await drive(async (options, notify) => {
    const mode = ['legacy', 'auto'].includes(options.mode) ? options.mode : { pin: options.mode };
    const client = new Client({ name: options.name, version: '1' }, { capabilities, versionNegotiation: { mode } });
    if (capabilities.elicitation) {
        client.setRequestHandler('elicitation/create', (request) => elicited(request, notify));
    }
    client.fallbackNotificationHandler = async (notification) => notify(notification);
    const transport = options.command
        ? new StdioClientTransport(stdioParameters(options))
        : new StreamableHTTPClientTransport(new URL(options.url), { requestInit: { headers: options.headers } });
    await client.connect(transport);
    return {
        protocol: client.getNegotiatedProtocolVersion() ?? null,
        list: () => client.listTools(),
        call: (op, running) => client.callTool(params(op), requestOptions(op, running)),
        request: async (op) => {
            if (op.method !== 'subscriptions/listen') return requester(client)(op);
            const { honoredFilter } = await client.listen(op.params.notifications);
            return { honoured: honoredFilter };
        },
        close: () => client.close(),
    };
});
