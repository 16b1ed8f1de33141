/** One request to the server and its answer. Retries nothing and knows no route's meaning. */

import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";

import type { ServerAddress } from "./address.js";
import { VERSION } from "./version.js";

/** The server was not reached, is going down, or can not answer now: the same request may be sent again. */
export class Away extends Error {}

/** The server refuses (RFC 9457). `code` is stable; `detail` and `next` are for people. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly detail: string;

  constructor(status: number, body: Record<string, unknown>) {
    const text = (name: string) => (typeof body[name] === "string" ? body[name] : "");
    const detail = text("detail") || text("title");
    super(`${status} ${text("code")}: ${detail}${text("next") ? ` (${text("next")})` : ""}`);
    this.status = status;
    this.code = text("code");
    this.detail = detail;
  }
}

/** Connections to one server, kept open. */
export class Link {
  readonly #address: ServerAddress;
  readonly #isSecure: boolean;
  readonly #agent: HttpAgent | HttpsAgent;
  #token: string | undefined;

  constructor(address: ServerAddress) {
    this.#address = address;
    this.#isSecure = address.base.startsWith("https:");
    const options = { keepAlive: true, maxFreeSockets: 16 };
    this.#agent = this.#isSecure ? new HttpsAgent(options) : new HttpAgent(options);
    this.#token = address.token();
  }

  /** Reads the token again; true when it is another one than before. */
  readToken(): boolean {
    const before = this.#token;
    this.#token = this.#address.token();
    return this.#token !== before;
  }

  /** The answer's JSON. Rejects with `Problem` for a refusal and `Away` for everything that may pass. */
  async post(route: string, body: string, timeoutMs: number, signal?: AbortSignal): Promise<unknown> {
    const { status, text } = await this.#exchange(route, Buffer.from(body), timeoutMs, signal);
    const json = parse(text);
    if (status === 200) {
      if (json === undefined) throw new Away("the answer is no JSON");
      return json;
    }
    const problem = typeof json === "object" && json !== null ? (json as Record<string, unknown>) : {};
    if (status >= 500 || status === 408 || status === 429) throw new Away(`${status} ${problem["code"] ?? ""}`.trim());
    throw new Problem(status, problem);
  }

  close(): void {
    this.#agent.destroy();
  }

  #exchange(
    route: string,
    body: Buffer,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<{ status: number; text: string }> {
    const headers: Record<string, string | number> = {
      "Content-Type": "application/json",
      "Content-Length": body.length,
      "User-Agent": `durable-mcp-worker-typescript/${VERSION}`,
    };
    if (this.#token) headers["Authorization"] = `Bearer ${this.#token}`;
    return new Promise((resolve, reject) => {
      const send = this.#isSecure ? httpsRequest : httpRequest;
      const options = { method: "POST", agent: this.#agent, headers, ...(signal ? { signal } : {}) };
      const request = send(this.#address.base + route, options);
      // Of the whole exchange: a server that trickles bytes does not hold us.
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const fail = (error: Error) => {
        clearTimeout(timer);
        reject(new Away(error.message || error.name, { cause: error }));
      };
      request.on("error", fail);
      request.on("response", (response: IncomingMessage) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", fail);
        response.on("end", () => {
          clearTimeout(timer);
          if (!response.complete) fail(new Error("the answer broke off"));
          else resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") });
        });
      });
      request.end(body);
    });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
