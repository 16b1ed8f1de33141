/**
 * The side of a worker that speaks to the server: registers, keeps a claim parked while there are free slots, sends
 * heartbeats, and offers each outcome until the server takes or refuses it. Runs no handlers.
 */

import { ServerAddress } from "./address.js";
import { Away, Link, Problem } from "./link.js";
import type { Job, Level, Outcome, Settings, ToHandlers } from "./messages.js";
import { GIVEN, TAKEN_BACK } from "./messages.js";
import { failure } from "./results.js";
import { Bell, pause, within } from "./waiting.js";

const CLAIM_WAIT_MS = 20_000;
// A batch of results: so many, or so many characters, whichever is first.
const BATCH_RESULTS = 64;
const BATCH_CHARS = 1 << 20;
// Progress and checkpoints that come fast are sent together.
const HEARTBEAT_GAP_MS = 50;
const REQUEST_TIMEOUT_MS = 30_000;
const GOODBYE_TIMEOUT_MS = 3_000;
const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 5_000;

/** A call whose lease is ours. */
interface Held {
  job: Job;
  place: number;
  progress?: string | undefined;
  checkpoint?: string | undefined;
  outcome?: Outcome;
  isDropped?: boolean;
}

interface Registered {
  lease_ttl_ms: number;
  heartbeat_ms: number;
  claim_wait_max_ms: number;
  claim_max: number;
}

/** The server refuses this worker for good. */
export class Refused extends Error {}

export class Conversation {
  readonly #settings: Settings;
  readonly #link: Link;
  readonly #base: string;
  readonly #tell: (message: ToHandlers) => void;
  readonly #table: Int32Array;
  readonly #places: number[];
  // By lease token, until the server has taken what came of them.
  readonly #held = new Map<string, Held>();
  readonly #outbox: Held[] = [];
  #sending = 0;
  readonly #drainAsked = new Bell();
  readonly #news = new Bell();
  readonly #room = new Bell();
  readonly #mail = new Bell();
  readonly #fewer = new Bell();
  readonly #claimAbort = new AbortController();
  #generation = 0;
  #registering: Promise<void> | undefined;
  #terms: Registered = { lease_ttl_ms: 30_000, heartbeat_ms: 10_000, claim_wait_max_ms: CLAIM_WAIT_MS, claim_max: 64 };
  #isAway = false;
  #isDraining = false;
  #isOver = false;

  constructor(settings: Settings, tell: (message: ToHandlers) => void) {
    const address = new ServerAddress(settings.url, settings.token);
    this.#settings = settings;
    this.#base = address.base;
    this.#link = new Link(address);
    this.#tell = tell;
    this.#table = new Int32Array(settings.table);
    this.#places = Array.from(this.#table.keys());
  }

  /** From registration to the end of the drain. Rejects with `Refused`. */
  async run(): Promise<void> {
    try {
      const isAsked = await Promise.race([this.#register(0, true), this.#drainAsked.rung().then(() => "drain")]);
      if (isAsked === "drain") return;
      const claims = this.#claimLoop();
      const loops = Promise.race([claims.then(() => this.#drainAsked.rung()), this.#heartbeatLoop(), this.#outboxLoop()]);
      await Promise.race([loops, this.#drainAsked.rung()]);
      await this.#drain(claims);
    } finally {
      this.#isOver = true;
      for (const bell of [this.#news, this.#mail, this.#room]) bell.ring();
      this.#link.close();
    }
  }

  drain(): void {
    this.#drainAsked.ring();
  }

  /** The handler ended with this outcome, or with nothing to report. */
  finished(leaseToken: string, outcome: Outcome | null): void {
    const call = this.#held.get(leaseToken) ?? this.#dropped.get(leaseToken);
    if (!call) return;
    this.#dropped.delete(leaseToken);
    this.#places.push(call.place);
    if (outcome) {
      call.outcome = outcome;
      this.#outbox.push(call);
      this.#mail.ring();
    } else {
      this.#letGo(call);
    }
    this.#room.ring();
  }

  news(leaseToken: string, kind: "progress" | "checkpoint", text: string): void {
    const call = this.#held.get(leaseToken);
    if (!call) return;
    call[kind] = text;
    this.#news.ring();
  }

  async step(id: number, leaseToken: string, name: string, text: string): Promise<void> {
    const body = `{${this.#who},"lease_token":${JSON.stringify(leaseToken)},"name":${JSON.stringify(name)},"result":${text}}`;
    try {
      const answer = (await this.#ask("/worker/v1/step", body)) as { result: unknown };
      this.#tell({ kind: "stored", id, result: answer.result });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const isLost = error.status !== 400;
      if (isLost) this.#lose(leaseToken, "lost");
      this.#tell({ kind: "not_stored", id, message: `step ${JSON.stringify(name)}: ${error.detail}`, isLost });
    }
  }

  // Calls whose lease is gone while their handler has not ended: they still take a slot.
  readonly #dropped = new Map<string, Held>();

  get #who(): string {
    return `"worker_id":${JSON.stringify(this.#settings.workerId)}`;
  }

  #log(level: Level, text: string): void {
    this.#tell({ kind: "log", level, text });
  }

  /** Sends until the server takes or refuses it. Rejects with `Problem`. */
  async #ask(route: string, body: string, timeoutMs = REQUEST_TIMEOUT_MS, signal?: AbortSignal): Promise<unknown> {
    for (let pauseMs = PAUSE_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      const generation = this.#generation;
      try {
        const answer = await this.#link.post(route, body, timeoutMs, signal);
        this.#isHere();
        return answer;
      } catch (error) {
        if (signal?.aborted || this.#isOver) throw error;
        if (error instanceof Problem) {
          if (error.code === "worker_unknown") {
            this.#log("info", "the server does not know this worker any more; registering again");
            await this.#register(generation);
            continue;
          }
          if (error.status !== 401) throw error;
          // A restarted server has a new local token; a revoked one is the operator's to mend.
          if (this.#link.readToken()) continue;
        } else if (!(error instanceof Away)) {
          throw error;
        }
        this.#isNotHere(error);
      }
      await pause(pauseMs * (0.8 + 0.4 * Math.random()));
    }
  }

  /** Registers, unless somebody did since `generation` was read. */
  async #register(generation: number, isFirst = false): Promise<void> {
    while (generation === this.#generation && !this.#isOver) {
      this.#registering ??= this.#registerOnce(isFirst).finally(() => (this.#registering = undefined));
      await this.#registering;
    }
  }

  async #registerOnce(isFirst: boolean): Promise<void> {
    for (let pauseMs = PAUSE_MIN_MS; !this.#isOver; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
      try {
        const answer = await this.#link.post("/worker/v1/register", this.#settings.registration, REQUEST_TIMEOUT_MS);
        this.#terms = answer as Registered;
        this.#generation += 1;
        this.#isHere();
        this.#log("info", `registered at ${this.#base} as ${this.#settings.workerId}`);
        return;
      } catch (error) {
        if (error instanceof Problem) {
          if (error.status === 401 && this.#link.readToken()) continue;
          if (isFirst) throw new Refused(error.message);
        } else if (!(error instanceof Away)) {
          throw error;
        }
        this.#isNotHere(error);
      }
      await pause(pauseMs * (0.8 + 0.4 * Math.random()));
    }
  }

  #isHere(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#log("info", "the server answers again");
  }

  #isNotHere(why: Error): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#log("warn", `no use of the server for now, trying again: ${why.message}`);
  }

  // Claims.

  async #claimLoop(): Promise<void> {
    const { slots } = this.#settings;
    while (!this.#isDraining) {
      // While the server takes no results it shall give no work either.
      if (this.#places.length === 0 || this.#outbox.length > 4 * slots) {
        await this.#room.rung();
        this.#room.clear();
        continue;
      }
      const waitMs = Math.min(CLAIM_WAIT_MS, this.#terms.claim_wait_max_ms);
      const max = Math.min(this.#places.length, this.#terms.claim_max);
      const body = `{${this.#who},"max":${max},"wait_ms":${waitMs}}`;
      let answer: { jobs: Job[]; draining?: boolean };
      try {
        answer = (await this.#ask("/worker/v1/claim", body, waitMs + 10_000, this.#claimAbort.signal)) as typeof answer;
      } catch (error) {
        if (this.#claimAbort.signal.aborted || this.#isOver) return;
        this.#log("error", `a claim was refused: ${(error as Error).message}`);
        await pause(1_000);
        continue;
      }
      const jobs = answer.jobs.map((job) => {
        const place = this.#places.pop() ?? 0;
        Atomics.store(this.#table, place, GIVEN);
        this.#held.set(job.lease_token, { job, place });
        return { job, place };
      });
      if (jobs.length > 0) this.#tell({ kind: "jobs", jobs });
      if (answer.draining) {
        this.#drainAsked.ring();
        return;
      }
    }
  }

  // Heartbeats.

  async #heartbeatLoop(): Promise<void> {
    let pauseMs = this.#terms.heartbeat_ms;
    while (!this.#isOver) {
      const started = performance.now();
      if (await this.#news.rungWithin(pauseMs)) {
        // The first news goes at once; what follows closely goes together.
        await pause(Math.max(0, HEARTBEAT_GAP_MS - (performance.now() - started)));
      }
      if (this.#isOver) return;
      this.#news.clear();
      try {
        await this.#heartbeat([...this.#held.values()], Math.max(this.#terms.lease_ttl_ms / 2, 1_000));
        pauseMs = this.#terms.heartbeat_ms;
      } catch (error) {
        if (!(error instanceof Away || error instanceof Problem)) throw error;
        this.#isNotHere(error);
        pauseMs = Math.min(this.#terms.heartbeat_ms / 2, 1_000);
      }
    }
  }

  async #heartbeat(calls: Held[], timeoutMs: number): Promise<void> {
    try {
      await this.#beat(calls, timeoutMs);
    } catch (error) {
      if (!isTooMuch(error)) throw error;
      // One piece of news, such as a checkpoint that is too large, must not cost the other leases.
      await this.#beat(calls, timeoutMs, false);
      for (const call of calls.filter((call) => call.progress ?? call.checkpoint)) {
        await this.#beat([call], timeoutMs).catch((error: Error) => {
          if (!isTooMuch(error)) throw error;
          this.#log("warn", `execution ${call.job.execution_id}: its progress or checkpoint is refused: ${error.message}`);
          call.progress = call.checkpoint = undefined;
        });
      }
    }
  }

  async #beat(calls: Held[], timeoutMs: number, withNews = true): Promise<void> {
    const generation = this.#generation;
    const sent = calls.map((call) => ({
      call,
      progress: withNews ? call.progress : undefined,
      checkpoint: withNews ? call.checkpoint : undefined,
    }));
    const leases = sent.map(({ call, progress, checkpoint }) => {
      const more = `${progress ? `,"progress":${progress}` : ""}${checkpoint ? `,"checkpoint":${checkpoint}` : ""}`;
      return `{"lease_token":${JSON.stringify(call.job.lease_token)}${more}}`;
    });
    let answer: { leases: { lease_token: string; status: "ok" | "cancel" | "lost" }[]; draining?: boolean };
    try {
      const body = `{${this.#who},"leases":[${leases.join(",")}]}`;
      answer = (await this.#link.post("/worker/v1/heartbeat", body, timeoutMs)) as typeof answer;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.code === "worker_unknown") await this.#register(generation);
      else if (!(error.status === 401 && this.#link.readToken())) throw error;
      this.#news.ring();
      return;
    }
    this.#isHere();
    // What a handler has set meanwhile stays for the next one.
    for (const { call, progress, checkpoint } of sent) {
      if (progress && call.progress === progress) call.progress = undefined;
      if (checkpoint && call.checkpoint === checkpoint) call.checkpoint = undefined;
    }
    for (const lease of answer.leases) {
      if (lease.status !== "ok") this.#lose(lease.lease_token, lease.status);
    }
    if (answer.draining) {
      this.#drainAsked.ring();
    }
  }

  #lose(leaseToken: string, why: "cancel" | "lost"): void {
    const call = this.#held.get(leaseToken);
    if (!call || call.isDropped) return;
    call.isDropped = true;
    this.#log("info", `execution ${call.job.execution_id}: ${why === "cancel" ? "cancelled" : "the lease is lost"}`);
    if (!call.outcome) this.#dropped.set(leaseToken, call);
    this.#letGo(call);
    this.#tell({ kind: "drop", leaseToken, why });
  }

  #letGo(call: Held): void {
    this.#held.delete(call.job.lease_token);
    this.#fewer.ring();
  }

  // Outcomes.

  async #outboxLoop(): Promise<void> {
    while (!this.#isOver) {
      if (this.#outbox.length === 0) {
        this.#mail.clear();
        await this.#mail.rung();
        continue;
      }
      const batch: Held[] = [];
      const others: Held[] = [];
      let chars = 0;
      for (let call = this.#outbox[0]; call && batch.length < BATCH_RESULTS; call = this.#outbox[0]) {
        const length = call.outcome?.text.length ?? 0;
        if (call.outcome?.route !== "complete") others.push(call);
        else if (batch.length > 0 && chars + length > BATCH_CHARS) break;
        else {
          batch.push(call);
          chars += length;
        }
        this.#outbox.shift();
      }
      this.#sending = batch.length + others.length;
      await Promise.all([batch.length > 0 ? this.#complete(batch) : undefined, ...others.map((call) => this.#sendOther(call))]);
      this.#sending = 0;
      this.#fewer.ring();
      this.#room.ring();
    }
  }

  async #complete(batch: Held[]): Promise<void> {
    const results = batch.map(
      (call) => `{"lease_token":${JSON.stringify(call.job.lease_token)},"result":${call.outcome?.text ?? "null"}}`,
    );
    let answers: { results: { status: string; code?: string; detail?: string }[] };
    try {
      const body = `{${this.#who},"results":[${results.join(",")}]}`;
      answers = (await this.#ask("/worker/v1/complete", body)) as typeof answers;
    } catch (error) {
      if (this.#isOver) return;
      const [only] = batch;
      if (!(error instanceof Problem) || !only) throw error;
      if (batch.length > 1) {
        // One of them spoils it for the others.
        for (const call of batch) await this.#complete([call]);
      } else if (isTooMuch(error)) {
        only.outcome = { route: "fail", text: failure("result_refused", error.detail, false) };
        await this.#sendOther(only);
      } else {
        this.#refused(only, error.message);
      }
      return;
    }
    for (const [at, call] of batch.entries()) {
      const answer = answers.results[at];
      if (answer?.status === "refused") this.#refused(call, `${answer.code}: ${answer.detail ?? ""}`);
      else this.#letGo(call);
    }
  }

  async #sendOther(call: Held): Promise<void> {
    const { route, text } = call.outcome ?? { route: "release", text: "" };
    try {
      // The next attempt shall find it.
      if (call.checkpoint !== undefined && route === "fail") await this.#heartbeat([call], REQUEST_TIMEOUT_MS);
    } catch (error) {
      this.#log("warn", `execution ${call.job.execution_id}: the last checkpoint was not stored: ${(error as Error).message}`);
    }
    const lease = `"lease_token":${JSON.stringify(call.job.lease_token)}`;
    try {
      await this.#ask(`/worker/v1/${route}`, `{${this.#who},${lease}${text ? `,${text}` : ""}}`);
      this.#letGo(call);
    } catch (error) {
      if (this.#isOver) return;
      if (!(error instanceof Problem)) throw error;
      this.#refused(call, error.message);
    }
  }

  #refused(call: Held, why: string): void {
    const { execution_id: id, attempt } = call.job;
    this.#log("warn", `execution ${id}: the server refuses what came of attempt ${attempt}: ${why}`);
    this.#letGo(call);
  }

  // The end.

  async #drain(claims: Promise<void>): Promise<void> {
    this.#isDraining = true;
    const deadline = performance.now() + this.#settings.graceMs;
    this.#room.ring();
    await this.#endClaims(claims);
    this.#log("info", `draining: nothing more is claimed, ${this.#held.size} calls are held`);
    for (const call of [...this.#held.values()]) {
      // A blocked thread has been given them and has not begun.
      if (call.outcome || Atomics.compareExchange(this.#table, call.place, GIVEN, TAKEN_BACK) !== GIVEN) continue;
      call.outcome = { route: "release", text: "" };
      this.#outbox.push(call);
      this.#mail.ring();
    }
    while (this.#held.size > 0 || this.#outbox.length > 0 || this.#sending > 0) {
      this.#fewer.clear();
      if (!(await this.#fewer.rungWithin(Math.max(0, deadline - performance.now())))) break;
    }
    const left = [...this.#held.values()];
    if (left.length > 0) {
      this.#log("warn", `the grace time is over: ${left.length} calls are given up`);
      for (const call of left) this.#tell({ kind: "drop", leaseToken: call.job.lease_token, why: "lost" });
      const withCheckpoint = left.filter((call) => call.checkpoint !== undefined);
      await this.#heartbeat(withCheckpoint, GOODBYE_TIMEOUT_MS).catch(() => undefined);
    }
    try {
      await this.#link.post("/worker/v1/deregister", `{${this.#who}}`, GOODBYE_TIMEOUT_MS);
      this.#log("info", "deregistered");
    } catch (error) {
      this.#log("warn", `not deregistered, the server will notice: ${(error as Error).message}`);
    }
  }

  /** Ends the parked claim without losing what it may be bringing: who offers no tools any more is answered now. */
  async #endClaims(claims: Promise<void>): Promise<void> {
    try {
      const leaving = JSON.stringify({ ...(JSON.parse(this.#settings.registration) as object), tools: [] });
      await this.#link.post("/worker/v1/register", leaving, GOODBYE_TIMEOUT_MS);
      await within(claims, GOODBYE_TIMEOUT_MS);
    } catch (error) {
      this.#log("debug", `the server was not told of the drain: ${(error as Error).message}`);
    }
    this.#claimAbort.abort();
    await claims;
  }
}

/** The body itself is refused: sending it again is of no use. */
function isTooMuch(error: unknown): boolean {
  return error instanceof Problem && (error.status === 400 || error.status === 413);
}
