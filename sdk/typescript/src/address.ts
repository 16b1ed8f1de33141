/**
 * Where the server is, and with which credential it is asked. Connects to nothing.
 *
 * Without a token of its own a worker uses the one that a server without authentication writes for its user:
 * `servers/<host>_<port>.token` in its data folder. It is read again when the server refuses it, because a restarted
 * server writes a new one.
 */

import { readdirSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { homedir, platform } from "node:os";
import { isAbsolute, join } from "node:path";

export const DEFAULT_URL = "http://127.0.0.1:7400";

type Environment = Record<string, string | undefined>;

/** The base of the server's paths, and the token for it. */
export class ServerAddress {
  readonly base: string;
  readonly host: string;
  readonly port: number;
  readonly #env: Environment;
  readonly #given: string | undefined;

  constructor(url?: string, token?: string, env: Environment = process.env) {
    this.#env = env;
    const text = url || env["DURABLE_MCP_URL"] || DEFAULT_URL;
    const parsed = URL.canParse(text) ? new URL(text) : undefined;
    if (!parsed || !["http:", "https:"].includes(parsed.protocol) || !parsed.hostname) {
      throw new TypeError(`the server's address is no http or https URL; write it as ${DEFAULT_URL}`);
    }
    if (parsed.username || parsed.password || parsed.search || parsed.hash) {
      // It may hold a password and is not repeated.
      throw new TypeError(`the server's address has more than host, port and path; write it as ${DEFAULT_URL}`);
    }
    this.host = parsed.hostname.replace(/^\[|\]$/g, "");
    this.port = Number(parsed.port) || (parsed.protocol === "https:" ? 443 : 80);
    this.base = parsed.origin + withoutEndpoint(parsed.pathname);
    this.#given = token || env["DURABLE_MCP_TOKEN"] || undefined;
  }

  /** True when the address is one of this machine alone. */
  get isLoopback(): boolean {
    const host = this.host.toLowerCase();
    return host === "localhost" || host === "::1" || host.startsWith("::ffff:7f") || (isIP(host) === 4 && host.startsWith("127."));
  }

  /** The token given, else the server's local one as it is now. */
  token(): string | undefined {
    return this.#given ?? this.#localToken();
  }

  #localToken(): string | undefined {
    if (!this.isLoopback) return undefined;
    const folder = join(dataFolder(this.#env), "servers");
    if (isIP(this.host)) {
      const found = read(join(folder, `${this.host}_${this.port}.token`));
      if (found) return found;
    }
    // A loopback name reaches any of the loopback addresses.
    for (const name of names(folder).filter((name) => name.endsWith(`_${this.port}.token`))) {
      const found = read(join(folder, name));
      if (found) return found;
    }
    return undefined;
  }
}

/** The data folder of the server of this user. */
export function dataFolder(env: Environment): string {
  if (env["DURABLE_MCP_DATA_DIR"]) return env["DURABLE_MCP_DATA_DIR"];
  const dataHome = env["XDG_DATA_HOME"];
  if (dataHome && isAbsolute(dataHome)) return join(dataHome, "durable-mcp");
  const home = env["HOME"] || homedir();
  return join(home, platform() === "darwin" ? "Library/Application Support" : ".local/share", "durable-mcp");
}

/** The path without an MCP endpoint (`…/mcp`, `…/mcp/NAMESPACE`) and without a slash at its end. */
function withoutEndpoint(path: string): string {
  const parts = path.replace(/\/+$/, "").split("/");
  for (const fromEnd of [1, 2]) {
    if (parts.length > fromEnd && parts.at(-fromEnd) === "mcp") return parts.slice(0, -fromEnd).join("/");
  }
  return parts.join("/");
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}
