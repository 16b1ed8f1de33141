/** The worker as its author sees it: register handlers, run. Runs handlers; a thread of its own speaks to the server. */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { Worker as Thread } from "node:worker_threads";

import { ServerAddress } from "./address.js";
import { Context, type Line, type Log } from "./context.js";
import { CallCancelled, InvalidArguments, NotWelcome, Retry, ToolError } from "./errors.js";
import { BEGUN, GIVEN, type Given, type Job, type Outcome, type Settings, type ToHandlers, type ToThread } from "./messages.js";
import { encode, errorResult, failure, toolResult } from "./results.js";
import { check, type FromSchema, type ObjectSchema } from "./schema.js";
import { VERSION } from "./version.js";

// How long handlers that were given up may keep the process after the drain.
const END_TIMEOUT_MS = 2_000;

export interface WorkerOptions {
  /** The server; else `DURABLE_MCP_URL`, else http://127.0.0.1:7400. */
  url?: string;
  /** A credential with the scope `work`; else `DURABLE_MCP_TOKEN`, else the local token of a server of this user. */
  token?: string;
  name?: string;
  /** Calls at once. */
  slots?: number;
  /** How long running calls may take to end after SIGTERM or SIGINT. */
  graceMs?: number;
  /** Without it warnings and what matters go to stderr. */
  log?: Log;
}

export interface ToolOptions<S extends ObjectSchema> {
  title?: string;
  description?: string;
  /** The type of the handler's arguments is inferred from it, and arguments are checked against it. */
  inputSchema?: S;
  outputSchema?: Record<string, unknown>;
  annotations?: Record<string, unknown>;
  /** Without it a lost call is not run again, unless `annotations` say that the tool is read-only or idempotent. */
  delivery?: "at_least_once" | "at_most_once";
  /** The longest attempt. */
  timeoutMs?: number;
  maxAttempts?: number;
}

export type Handler<S> = (args: FromSchema<S>, ctx: Context) => unknown;

interface Tool {
  handler: (args: never, ctx: Context) => unknown;
  schema: ObjectSchema;
  definition: Record<string, unknown>;
}

interface Running {
  given: Given;
  abort: AbortController;
}

/** Offers tools to a DurableMCP server and runs their calls. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #slots: number;
  readonly #log: Log;
  readonly #tools = new Map<string, Tool>();
  readonly #running = new Map<string, Running>();
  readonly #steps = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #lastStep = 0;
  #finished: { leaseToken: string; outcome: Outcome | null }[] = [];
  #table: Int32Array = new Int32Array();
  #thread: Thread | undefined;
  #isStopped = false;

  constructor(options: WorkerOptions = {}) {
    this.#options = options;
    this.#slots = options.slots ?? 16;
    if (!Number.isInteger(this.#slots) || this.#slots < 1) throw new RangeError("slots must be at least 1");
    // An address that can not be used is said here and not on another thread.
    new ServerAddress(options.url, options.token);
    this.#log = options.log ?? stderrLog;
  }

  /** Registers a handler. Returns the worker, for the next one. */
  tool<const S extends ObjectSchema = { readonly type: "object" }>(
    name: string,
    options: ToolOptions<S>,
    handler: Handler<S>,
  ): this {
    if (this.#tools.has(name)) throw new Error(`there is a tool ${name} already`);
    const schema: ObjectSchema = options.inputSchema ?? { type: "object" };
    const definition = {
      name,
      title: options.title,
      description: options.description,
      inputSchema: schema,
      outputSchema: options.outputSchema,
      annotations: options.annotations,
      delivery: options.delivery,
      timeout_ms: options.timeoutMs,
      max_attempts: options.maxAttempts,
    };
    this.#tools.set(name, { handler, schema, definition });
    return this;
  }

  /**
   * Serves until SIGTERM or SIGINT, then drains and resolves. A second signal ends the process at once.
   * Rejects with `NotWelcome` when the server refuses this worker.
   */
  async run(): Promise<void> {
    let signals = 0;
    const onSignal = (_name: string, number: number) => {
      signals += 1;
      if (signals > 1) process.exit(128 + number);
      this.stop();
    };
    process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
    try {
      await this.serve();
    } finally {
      process.off("SIGTERM", onSignal).off("SIGINT", onSignal);
    }
    // A handler that was given up and does not notice does not keep the process.
    if (this.#running.size > 0) setTimeout(() => process.exit(), END_TIMEOUT_MS).unref();
  }

  /** As `run`, without signals: `stop` ends it. */
  async serve(): Promise<void> {
    if (this.#thread) throw new Error("a worker serves once");
    if (this.#tools.size === 0) throw new Error("a worker without tools has nothing to do");
    const workerId = randomUUID();
    const registration = {
      worker_id: workerId,
      name: this.#options.name ?? `${hostname()}-${process.pid}`,
      slots: this.#slots,
      sdk: `typescript/${VERSION}`,
      tools: [...this.#tools.values()].map((tool) => tool.definition),
    };
    const table = new SharedArrayBuffer(4 * this.#slots);
    this.#table = new Int32Array(table);
    const settings: Settings = {
      url: this.#options.url,
      token: this.#options.token,
      registration: encode(registration),
      workerId,
      slots: this.#slots,
      graceMs: this.#options.graceMs ?? 20_000,
      table,
    };
    const thread = new Thread(new URL("./thread.js", import.meta.url), { workerData: settings });
    this.#thread = thread;
    if (this.#isStopped) this.#tell({ kind: "drain" });
    await new Promise<void>((resolve, reject) => {
      thread.on("message", (message: ToHandlers) => {
        if (message.kind !== "end") this.#hear(message);
        else if (message.refusal === null) resolve();
        else reject(new NotWelcome(message.refusal));
      });
      thread.on("error", reject);
      thread.on("exit", () => reject(new Error("the thread that speaks to the server ended")));
    }).finally(() => {
      for (const { abort } of this.#running.values()) abort.abort(new CallCancelled("lost"));
      return thread.terminate();
    });
  }

  /** Begins to drain: nothing new is claimed, what runs may end within the grace time. */
  stop(): void {
    this.#isStopped = true;
    this.#tell({ kind: "drain" });
  }

  #tell(message: ToThread): void {
    this.#thread?.postMessage(message);
  }

  #hear(message: Exclude<ToHandlers, { kind: "end" }>): void {
    switch (message.kind) {
      case "jobs":
        for (const given of message.jobs) this.#begin(given);
        break;
      case "drop":
        this.#running.get(message.leaseToken)?.abort.abort(new CallCancelled(message.why));
        break;
      case "stored":
        this.#steps.get(message.id)?.resolve(message.result);
        this.#steps.delete(message.id);
        break;
      case "not_stored": {
        const error = message.isLost ? new CallCancelled("lost") : new TypeError(message.message);
        this.#steps.get(message.id)?.reject(error);
        this.#steps.delete(message.id);
        break;
      }
      case "log":
        this.#log[message.level](message.text);
    }
  }

  #begin(given: Given): void {
    // Whoever was blocked while the worker drained finds its calls taken back.
    if (Atomics.compareExchange(this.#table, given.place, GIVEN, BEGUN) !== GIVEN) return;
    const abort = new AbortController();
    const leaseToken = given.job.lease_token;
    this.#running.set(leaseToken, { given, abort });
    void this.#outcome(given.job, abort.signal).then((outcome) => {
      this.#running.delete(leaseToken);
      this.#finish(leaseToken, outcome);
    });
  }

  async #outcome(job: Job, signal: AbortSignal): Promise<Outcome | null> {
    const tool = this.#tools.get(job.tool);
    if (!tool) return { route: "fail", text: failure("tool_unknown", `this worker has no tool ${job.tool}`, false) };
    try {
      const args = job.arguments ?? {};
      check(tool.schema, args);
      const value = await tool.handler(args as never, new Context(job, this.#line, signal, this.#log));
      return { route: "complete", text: toolResult(value) };
    } catch (error) {
      if (error instanceof ToolError || error instanceof InvalidArguments) {
        return { route: "complete", text: errorResult(error.message) };
      }
      // Whatever ended it, nobody waits for it.
      if (signal.aborted) return null;
      return { route: "fail", text: this.#failureOf(job, error) };
    }
  }

  #failureOf(job: Job, error: unknown): string {
    if (error instanceof Retry) {
      this.#log.info(`execution ${job.execution_id}: attempt ${job.attempt} asks to be retried`);
      return failure("Retry", error.message, true, {
        ...(error.afterMs === undefined ? {} : { retry_after_ms: Math.max(0, Math.round(error.afterMs)) }),
        ...(error.notStarted ? { not_started: true } : {}),
      });
    }
    const code = error instanceof Error ? error.name || error.constructor.name : typeof error;
    // The text and the trace may hold payloads, so that they are for debugging only.
    this.#log.error(`execution ${job.execution_id}: tool ${job.tool} failed with ${code}`);
    if (error instanceof Error && error.stack) this.#log.debug(`execution ${job.execution_id}: ${error.stack}`);
    return failure(code, error instanceof Error ? error.message : String(error), false);
  }

  readonly #line: Line = {
    storeStep: (job, name, text) => {
      const id = (this.#lastStep += 1);
      return new Promise((resolve, reject) => {
        this.#steps.set(id, { resolve, reject });
        this.#tell({ kind: "step", id, leaseToken: job.lease_token, name, text });
      });
    },
    progress: (job, text) => this.#tell({ kind: "progress", leaseToken: job.lease_token, text }),
    checkpoint: (job, text) => this.#tell({ kind: "checkpoint", leaseToken: job.lease_token, text }),
  };

  /** What ends in one turn of the event loop goes to the thread as one message. */
  #finish(leaseToken: string, outcome: Outcome | null): void {
    this.#finished.push({ leaseToken, outcome });
    if (this.#finished.length > 1) return;
    setImmediate(() => {
      const calls = this.#finished;
      this.#finished = [];
      this.#tell({ kind: "finished", calls });
    });
  }
}

const stderrLog: Log = {
  debug: () => undefined,
  info: (text) => process.stderr.write(`${new Date().toISOString()} INFO durable-mcp-worker: ${text}\n`),
  warn: (text) => process.stderr.write(`${new Date().toISOString()} WARN durable-mcp-worker: ${text}\n`),
  error: (text) => process.stderr.write(`${new Date().toISOString()} ERROR durable-mcp-worker: ${text}\n`),
};
