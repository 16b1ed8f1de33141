/** What a handler sees of its call: ids, progress, durable steps, checkpoints, cancellation. */

import type { Job } from "./messages.js";
import { encode } from "./results.js";

export interface Log {
  debug(text: string): void;
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}

/** How a context reaches the server. */
export interface Line {
  storeStep(job: Job, name: string, text: string): Promise<unknown>;
  progress(job: Job, text: string): void;
  checkpoint(job: Job, text: string): void;
}

export class Context {
  /** Aborted when nobody wants a result any more: the call was cancelled, or its lease was lost. */
  readonly signal: AbortSignal;
  /** Names the execution in each line; put no payloads into it. */
  readonly log: Log;
  readonly #job: Job;
  readonly #line: Line;
  readonly #steps: Map<string, unknown>;
  readonly #running = new Map<string, Promise<unknown>>();
  #checkpoint: unknown;

  constructor(job: Job, line: Line, signal: AbortSignal, log: Log) {
    this.#job = job;
    this.#line = line;
    this.#steps = new Map(Object.entries(job.steps ?? {}));
    this.#checkpoint = job.checkpoint ?? undefined;
    this.signal = signal;
    const named = (text: string) => `execution ${job.execution_id}: ${text}`;
    this.log = {
      debug: (text) => log.debug(named(text)),
      info: (text) => log.info(named(text)),
      warn: (text) => log.warn(named(text)),
      error: (text) => log.error(named(text)),
    };
  }

  /** The id of the execution; also its MCP task id. */
  get executionId(): string {
    return this.#job.execution_id;
  }

  /** Which try this is, from 1. */
  get attempt(): number {
    return this.#job.attempt;
  }

  /** How many tries there will be at most. */
  get maxAttempts(): number | undefined {
    return this.#job.max_attempts;
  }

  /** The same for every attempt and retry: the idempotency key for what the tool writes elsewhere. */
  get effectKey(): string {
    return this.#job.effect_key;
  }

  /** Grows with every lease: lets what is written to tell a replaced writer from its successor. */
  get fencing(): number {
    return this.#job.fencing_token;
  }

  get tool(): string {
    return this.#job.tool;
  }

  get namespace(): string | undefined {
    return this.#job.namespace;
  }

  /** Who called. */
  get principal(): string | undefined {
    return this.#job.principal;
  }

  /** The `_meta` of the call. */
  get meta(): unknown {
    return this.#job.meta;
  }

  get cancelled(): boolean {
    return this.signal.aborted;
  }

  /** What `checkpoint` stored last, in this attempt or an earlier one. */
  get lastCheckpoint(): unknown {
    return this.#checkpoint;
  }

  /**
   * Stores how far the work is, for the next attempt. It goes with the next heartbeat, which is sent at once when the
   * last is a moment ago; a crash before that loses it. What must not be lost is a step.
   */
  checkpoint(value: unknown): void {
    this.signal.throwIfAborted();
    this.#line.checkpoint(this.#job, encode(value));
    this.#checkpoint = value;
  }

  /** Tells the caller how far the work is, as MCP progress. The newest one wins when many come at once. */
  progress(done: number, total?: number, message?: string): void {
    this.signal.throwIfAborted();
    this.#line.progress(this.#job, encode({ progress: done, total, message }));
  }

  /**
   * Runs `run` once and stores what it returns under `name`; a later attempt gets that instead of running it.
   *
   * What comes back is what JSON makes of the value, the first time too. A step that dies before its result is stored
   * runs again: pass `ctx.effectKey` on where that would do harm.
   */
  step<T>(name: string, run: () => T | Promise<T>): Promise<T> {
    const running = this.#running.get(name);
    if (running) return running as Promise<T>;
    const promise = this.#step(name, run).finally(() => this.#running.delete(name));
    this.#running.set(name, promise);
    return promise;
  }

  async #step<T>(name: string, run: () => T | Promise<T>): Promise<T> {
    if (!this.#steps.has(name)) {
      this.signal.throwIfAborted();
      const value: unknown = await run();
      // `undefined` has no JSON; a step that returns nothing is still done once.
      const stored = await this.#line.storeStep(this.#job, name, value === undefined ? "null" : encode(value));
      this.#steps.set(name, stored);
    }
    return this.#steps.get(name) as T;
  }
}
