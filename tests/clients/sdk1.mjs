// Drives the official TypeScript SDK 1.x, a client of the revisions up to 2025-11-25. Adds nothing to its behaviour.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { capabilities, drive, elicited, params, requester, requestOptions, stdioParameters } from './driver.mjs';

await drive(async (options, notify) => {
    const client = new Client({ name: options.name, version: '1' }, { capabilities });
    if (capabilities.elicitation) {
        client.setRequestHandler(ElicitRequestSchema, (request) => elicited(request, notify));
    }
    client.fallbackNotificationHandler = async (notification) => notify(notification);
    // The two endpoints of 2024-11-05, where a test wants them.
    const Http = process.env.CLIENT_TRANSPORT === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
    const transport = options.command
        ? new StdioClientTransport(stdioParameters(options))
        : new Http(new URL(options.url), { requestInit: { headers: options.headers } });
    let protocol = null;
    // The SDK tells the negotiated revision to its transport only.
    const set = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
        protocol = version;
        set?.(version);
    };
    await client.connect(transport);
    return {
        protocol,
        list: async () => {
            const tools = [];
            let cursor;
            do {
                const page = await client.listTools(cursor === undefined ? undefined : { cursor });
                tools.push(...page.tools);
                cursor = page.nextCursor;
            } while (cursor !== undefined);
            return { tools };
        },
        call: (op, running) => client.callTool(params(op), CallToolResultSchema, requestOptions(op, running)),
        request: requester(client),
        close: () => client.close(),
    };
});
