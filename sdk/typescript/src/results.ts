/**
 * From what a handler returns to the JSON text of an MCP tool result. The same rules hold in every language
 * (`sdk/vectors/results.json`).
 */

// The server's limit, and its characters.
const ERROR_CODE_CHARS = 64;

/** The JSON text of a value. Throws for what is none (a function, a BigInt, a cycle, NaN). */
export function encode(value: unknown): string {
  const text = JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner === "number" && !Number.isFinite(inner)) throw new TypeError(`${inner} is no JSON value`);
    return inner;
  }) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} is no JSON value`);
  return text;
}

/** A text is text; an object is its JSON and `structuredContent`; an MCP result stays as it is; nothing is empty. */
export function toolResult(value: unknown): string {
  if (typeof value === "string") return `{"content":[{"type":"text","text":${JSON.stringify(value)}}]}`;
  if (value === undefined || value === null) return '{"content":[]}';
  const text = encode(value);
  if (typeof value === "object" && "content" in value && Array.isArray(value.content)) return text;
  const content = `{"content":[{"type":"text","text":${JSON.stringify(text)}}]`;
  return text.startsWith("{") ? `${content},"structuredContent":${text}}` : `${content}}`;
}

/** The result of a tool that says no. */
export function errorResult(message: string): string {
  return `{"content":[{"type":"text","text":${JSON.stringify(message)}}],"isError":true}`;
}

/** The members of a `fail` beside worker and lease, as JSON without the braces. */
export function failure(name: string, message: string, retryable: boolean, more: Record<string, unknown> = {}): string {
  const code = name.replace(/[^A-Za-z0-9_.-]/g, "_").slice(0, ERROR_CODE_CHARS) || "error";
  return JSON.stringify({ error: { code, message }, retryable, ...more }).slice(1, -1);
}
