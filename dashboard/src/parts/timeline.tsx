// The life of a call: one lane per lease, by attempt and worker; the gap where a worker was lost, and who took over.
import { lifeOf, type Gap, type Hold } from "../lives";
import type { Event } from "../api";
import { clock, duration } from "../words";

const WIDTH = 1_000;
const LANE = 30;
const ENDS: Record<Hold["end"], string> = {
  held: "running",
  completed: "completed",
  failed: "failed",
  lost: "lost",
  released: "given back unstarted",
  parked: "gave its lease up, waits for input",
  cancelled: "cancelled",
};
const WAITS: Record<Gap["why"], string> = {
  queued: "waited for a worker",
  recovery: "nobody worked on it",
  "back-off": "waited for its next attempt",
  input: "waited for its client",
  decision: "waits for a decision",
};

export function Timeline({ events, now }: { events: Event[]; now: number }) {
  const life = lifeOf(events);
  const endMs = life.endMs ?? Math.max(now, life.startMs + 1);
  const spanMs = Math.max(endMs - life.startMs, 1);
  const x = (ms: number) => ((ms - life.startMs) / spanMs) * WIDTH;
  const height = Math.max(life.holds.length, 1) * LANE + 8;
  const sentence = (hold: Hold) =>
    `Attempt ${hold.attempt} at ${hold.worker}: ${ENDS[hold.end]} after ${duration((hold.toMs ?? now) - hold.fromMs)}`;
  const shownGaps = life.gaps.filter((gap) => (gap.toMs ?? endMs) - gap.fromMs > spanMs / 400);
  return (
    <figure class="timeline">
      <svg viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" role="img" aria-label="The leases of this call over time">
        {shownGaps.map((gap) => (
          <rect
            key={`gap ${gap.fromMs}`}
            class={`gap gap-${gap.why}`}
            x={x(gap.fromMs)}
            width={Math.max(x(gap.toMs ?? endMs) - x(gap.fromMs), 1)}
            y={0}
            height={height}
          >
            <title>{`${WAITS[gap.why]} for ${duration((gap.toMs ?? now) - gap.fromMs)}`}</title>
          </rect>
        ))}
        {life.holds.map((hold, lane) => (
          <rect
            key={hold.token}
            class={`lease lease-${hold.end}`}
            x={x(hold.fromMs)}
            width={Math.max(x(hold.toMs ?? endMs) - x(hold.fromMs), 3)}
            y={lane * LANE + 6}
            height={LANE - 8}
            rx={2}
          >
            <title>{sentence(hold)}</title>
          </rect>
        ))}
      </svg>
      <div class="timeline-ends">
        <span>{clock(new Date(life.startMs).toISOString())}</span>
        <span>{duration(spanMs)}</span>
        <span>{life.endMs ? clock(new Date(life.endMs).toISOString()) : "now"}</span>
      </div>
      <ol class="lanes">
        {life.holds.map((hold) => {
          const before = life.gaps.find((gap) => gap.toMs === hold.fromMs && gap.toMs > gap.fromMs);
          return (
            <li key={hold.token}>
              {before && (
                <span class="lane-gap">
                  {WAITS[before.why]} for {duration(before.toMs! - before.fromMs)}
                  {before.why === "recovery" && `, then ${hold.worker} took over`}
                </span>
              )}
              <span class={`swatch lease-${hold.end}`} aria-hidden="true" /> {sentence(hold)}
              <span class="quiet"> · fencing token {hold.token}</span>
              {hold.why && hold.end !== "completed" && <span class="lane-why">{hold.why}</span>}
            </li>
          );
        })}
        {life.gaps
          .filter((gap) => gap.toMs === undefined)
          .map((gap) => (
            <li key="open" class="lane-gap">
              {WAITS[gap.why]}, for {duration(Math.max(now - gap.fromMs, 0))} now
            </li>
          ))}
      </ol>
    </figure>
  );
}
