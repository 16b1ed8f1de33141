// A state as a word with a shape: never by colour alone.
import type { Execution } from "../api";

const MARKS: Record<string, string> = {
  scheduled: "◷",
  ready: "○",
  leased: "▶",
  waiting: "?",
  completed: "✓",
  failed: "✕",
  cancelled: "–",
  unknown: "!",
};

export const STATES = Object.keys(MARKS);

export function State({ state, isError }: { state: string; isError?: boolean | null }) {
  const shown = isError ? `${state}, with an error` : state;
  return (
    <span class={`state state-${state}${isError ? " state-error" : ""}`}>
      <span aria-hidden="true">{MARKS[state] ?? "·"}</span> {shown}
    </span>
  );
}

/** Ended, or waits for a person: nothing more happens by itself. */
export function isSettled(execution: Execution): boolean {
  return ["completed", "failed", "cancelled", "unknown"].includes(execution.state);
}
