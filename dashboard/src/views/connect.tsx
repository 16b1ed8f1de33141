// How a client gets here: a snippet for each, with this server's address.
import { Copy } from "../parts/copy";

function snippets(url: string): [string, string, string][] {
  const json = (value: unknown) => JSON.stringify(value, null, 2);
  return [
    ["Claude Code", "One command in a terminal.", `claude mcp add --transport http durable ${url}`],
    [
      "Claude Desktop",
      "In claude_desktop_config.json; it speaks stdio, so the program goes in between.",
      json({ mcpServers: { durable: { command: "durable-mcp", args: ["connect", "--url", url] } } }),
    ],
    ["Cursor", "In .cursor/mcp.json.", json({ mcpServers: { durable: { url } } })],
    ["VS Code", "In .vscode/mcp.json.", json({ servers: { durable: { type: "http", url } } })],
    [
      "Any HTTP client",
      "Revision 2026-07-28 needs no session: one request, one answer.",
      [
        `curl ${url} \\`,
        "  -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \\",
        "  -H 'mcp-protocol-version: 2026-07-28' -H 'mcp-method: tools/list' \\",
        `  -d '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'`,
      ].join("\n"),
    ],
    ["The command line", "Calls a tool, and says what became of it.", `durable-mcp call TOOL --args '{}' --url ${url}`],
  ];
}

export function Connect() {
  const url = new URL("mcp", document.baseURI.replace(/[?#].*$/, "")).href;
  return (
    <>
      <h1>Connect</h1>
      <p>
        MCP clients connect to <code>{url}</code>. With authentication they send <code>Authorization: Bearer …</code> with a key of{" "}
        <code>durable-mcp token create</code>.
      </p>
      {snippets(url).map(([name, sentence, text]) => (
        <section key={name} class="snippet">
          <h2>{name}</h2>
          <p class="quiet">{sentence}</p>
          <pre tabIndex={0} aria-label={`For ${name}`}>{text}</pre>
          <Copy text={text} what="it" />
        </section>
      ))}
    </>
  );
}
