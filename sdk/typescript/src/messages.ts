/** What the thread that runs handlers and the one that speaks to the server tell each other. Types only. */

/** A job of the wire protocol. */
export interface Job {
  execution_id: string;
  lease_token: string;
  fencing_token: number;
  attempt: number;
  max_attempts?: number;
  tool: string;
  arguments: unknown;
  meta?: unknown;
  effect_key: string;
  principal?: string;
  namespace?: string;
  steps?: Record<string, unknown>;
  checkpoint?: unknown;
}

/** A job, and its place in the shared table that says who has begun it. */
export interface Given {
  job: Job;
  place: number;
}

/** Places of the shared table: whoever changes `GIVEN` first decides what happens to the call. */
export const GIVEN = 0;
export const BEGUN = 1;
export const TAKEN_BACK = 2;

/** The route that an outcome goes to, and its members beside worker and lease as JSON text. */
export interface Outcome {
  route: "complete" | "fail" | "release";
  text: string;
}

export type Level = "debug" | "info" | "warn" | "error";

/** Where the thread finds everything when it starts. */
export interface Settings {
  url: string | undefined;
  token: string | undefined;
  registration: string;
  workerId: string;
  slots: number;
  graceMs: number;
  table: SharedArrayBuffer;
}

export type ToThread =
  | { kind: "finished"; calls: { leaseToken: string; outcome: Outcome | null }[] }
  | { kind: "progress" | "checkpoint"; leaseToken: string; text: string }
  | { kind: "step"; id: number; leaseToken: string; name: string; text: string }
  | { kind: "drain" };

export type ToHandlers =
  | { kind: "jobs"; jobs: Given[] }
  | { kind: "drop"; leaseToken: string; why: "cancel" | "lost" }
  | { kind: "stored"; id: number; result: unknown }
  | { kind: "not_stored"; id: number; message: string; isLost: boolean }
  | { kind: "log"; level: Level; text: string }
  | { kind: "end"; refusal: string | null };
