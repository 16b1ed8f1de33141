// From the log of an execution to what the timeline shows: who held a lease when, how that ended, and the gaps in between.
// Pure, so that it can be tested without a page.
import type { Event } from "./api";

/** One lease. */
export interface Hold {
  attempt: number;
  worker: string;
  token: number;
  fromMs: number;
  /** Absent while it is held. */
  toMs?: number;
  end: "held" | "completed" | "failed" | "lost" | "released" | "parked" | "cancelled";
  why?: string;
}

/** A time in which nobody worked although the call was not ended. */
export interface Gap {
  fromMs: number;
  toMs?: number;
  /** What it waited for. */
  why: "queued" | "recovery" | "back-off" | "input" | "decision";
  /** Who took over. */
  by?: string;
}

export interface Life {
  holds: Hold[];
  gaps: Gap[];
  startMs: number;
  /** Absent while it goes on. */
  endMs?: number;
}

/** An attempt that ended without the tool's word: its worker died, or went silent. */
const LOST = new Set(["lease_expired", "process_died", "child_died", "connection_lost", "worker_gone"]);

interface Members {
  worker?: string;
  attempt?: number;
  fencing_token?: number;
  error?: { code: string; message: string };
}

export function lifeOf(events: Event[]): Life {
  const life: Life = { holds: [], gaps: [], startMs: 0 };
  let hold: Hold | undefined;
  let gap: Gap | undefined;
  const close = (atMs: number, end: Hold["end"], why?: string) => {
    if (!hold) return;
    Object.assign(hold, { toMs: atMs, end }, why !== undefined && { why });
    hold = undefined;
  };
  const wait = (fromMs: number, why: Gap["why"]) => {
    gap ??= { fromMs, why };
  };
  for (const event of events) {
    const atMs = Date.parse(event.at);
    const { worker = "?", attempt = 0, fencing_token = 0, error } = event as Members;
    switch (event.type) {
      case "submitted":
        life.startMs = atMs;
        wait(atMs, "queued");
        break;
      case "leased":
        if (gap) {
          if (atMs > gap.fromMs) life.gaps.push({ ...gap, toMs: atMs, by: worker });
          gap = undefined;
        }
        close(atMs, "lost", "another worker took over");
        hold = { attempt, worker, token: fencing_token, fromMs: atMs, end: "held" };
        life.holds.push(hold);
        break;
      case "released":
        close(atMs, "released");
        wait(atMs, "queued");
        break;
      case "parked":
        close(atMs, "parked");
        wait(atMs, "input");
        break;
      case "retried":
      case "lost": {
        const lost = event.type === "lost" || (error && LOST.has(error.code));
        close(atMs, lost ? "lost" : "failed", error?.message);
        // Ordered by a person, after the call had become unknown.
        if (gap) life.gaps.push({ ...gap, toMs: atMs });
        gap = undefined;
        wait(atMs, event.type === "lost" ? "decision" : lost ? "recovery" : "back-off");
        break;
      }
      case "completed":
      case "failed":
      case "cancelled": {
        const lost = event.type === "failed" && error && LOST.has(error.code);
        close(atMs, lost ? "lost" : (event.type as "completed" | "failed" | "cancelled"), error?.message);
        if (gap && atMs > gap.fromMs) life.gaps.push({ ...gap, toMs: atMs });
        gap = undefined;
        life.endMs = atMs;
        break;
      }
    }
  }
  if (gap) life.gaps.push(gap);
  return life;
}
