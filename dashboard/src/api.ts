// The HTTP API as the page asks it: types from the OpenAPI document, one way to fail, one way to follow events.
// Knows no view.
import type { components, paths } from "./api-types";
import { credential } from "./access";

type Schemas = components["schemas"];
export type Execution = Schemas["Execution"];
export type ExecutionPage = Schemas["ExecutionPage"];
export type Event = Schemas["Event"] & Record<string, unknown>;
export type StreamEvent = Schemas["StreamEvent"] & Record<string, unknown>;
export type Why = Schemas["Why"];
export type Worker = Schemas["WorkerView"];
export type Session = Schemas["SessionView"];
export type Tool = Schemas["Tool"];
export type Upstream = Schemas["Upstream"];
export type BulkOrder = Schemas["BulkOrder"];
export type BulkDone = Schemas["BulkDone"];
export type OrderDone = Schemas["OrderDone"];
export type Caller = Schemas["Caller"];
export type Piece = Schemas["PayloadPiece"];
export type Totals = Schemas["Totals"];
export type Series = Schemas["Series"];
export type Numbers = Schemas["Numbers"];

/** A path of the API that answers a GET; a misspelt one does not compile. */
export type Route = { [P in keyof paths]: paths[P] extends { get: unknown } ? P : never }[keyof paths];

/** Why a request was not answered as asked: the server's problem, or that it could not be reached. */
export class Problem extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    detail: string,
    readonly next: string,
  ) {
    super(detail);
  }
}

const unreachable = () =>
  new Problem("unreachable", 0, "The server does not answer.", "Check that it runs; the page tries again by itself.");

/** The address of a route, relative to where the page was loaded from. */
function address(path: string): string {
  return new URL(path.replace(/^\//, ""), document.baseURI.replace(/[?#].*$/, "")).href;
}

function headers(more: Record<string, string> = {}): Record<string, string> {
  const token = credential.value;
  return token ? { ...more, authorization: `Bearer ${token}` } : more;
}

async function problemOf(response: Response): Promise<Problem> {
  const body = await response.json().catch(() => null);
  return new Problem(
    body?.code ?? `http_${response.status}`,
    response.status,
    body?.detail ?? `The server answered ${response.status}.`,
    body?.next ?? "",
  );
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(address(path), { cache: "no-store", ...init }).catch((error: unknown) => {
    throw init.signal?.aborted ? error : unreachable();
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await send(path, { headers: headers(), ...(signal && { signal }) });
  return response.json() as Promise<T>;
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const content = { "content-type": "application/json" };
  const response = await send(path, { method: "POST", headers: headers(content), body: JSON.stringify(body) });
  return response.json() as Promise<T>;
}

/**
 * Follows events from now on, over lost connections, until `signal` aborts. `told` hears of each event once; `alive`
 * of each change between followed and not. The browser's own EventSource can not send a credential.
 */
export async function follow(
  query: URLSearchParams,
  told: (event: StreamEvent) => void,
  alive: (is: boolean, problem?: Problem) => void,
  signal: AbortSignal,
): Promise<void> {
  let cursor: string | undefined;
  let pause = PAUSE_MIN_MS;
  while (!signal.aborted) {
    try {
      const wanted = headers({ accept: "text/event-stream", ...(cursor && { "last-event-id": cursor }) });
      const response = await send(`/api/v1/events?${query}`, { headers: wanted, signal });
      alive(true);
      for await (const block of blocks(response.body!)) {
        pause = PAUSE_MIN_MS;
        if (block.id) cursor = block.id;
        if (block.data) told(JSON.parse(block.data) as StreamEvent);
      }
    } catch (error) {
      if (signal.aborted) return;
      alive(false, error instanceof Problem ? error : unreachable());
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, PAUSE_MAX_MS);
  }
}

const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 10_000;

/** The blocks of a stream of server-sent events. */
async function* blocks(body: ReadableStream<Uint8Array>): AsyncGenerator<{ id?: string; data?: string }> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value.replaceAll("\r\n", "\n");
    let end: number;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const lines = rest.slice(0, end).split("\n");
      rest = rest.slice(end + 2);
      const block: { id?: string; data?: string } = {};
      for (const line of lines) {
        const [, name, text] = /^(id|data): ?(.*)$/.exec(line) ?? [];
        if (name === "id") block.id = text!;
        if (name === "data") block.data = block.data === undefined ? text! : `${block.data}\n${text}`;
      }
      yield block;
    }
  }
}
