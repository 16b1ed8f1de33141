// How it goes: what stands now, what happened lately, and over time. Every number is the server's own; most lead to the calls
// that they count.
import type { ComponentChildren } from "preact";
import { get, type Numbers, type Series, type Totals } from "../api";
import { useLoad } from "../load";
import { Chart, type Line } from "../parts/chart";
import { Empty, Shown } from "../parts/notice";
import { href, route, setQuery } from "../route";
import { useSignal } from "../signal";
import { count, duration, moment } from "../words";

const EVERY_MS = 3_000;
const RANGES: [string, string, number][] = [
  ["15m", "15 minutes", 15 * 60_000],
  ["1h", "1 hour", 3_600_000],
  ["24h", "24 hours", 86_400_000],
];

export function Overview() {
  const { query } = useSignal(route);
  const [range, words, spanMs] = RANGES.find(([name]) => name === query.get("range")) ?? RANGES[0]!;
  const totals = useLoad("totals", (signal) => get<Totals>("/api/v1/totals", signal), EVERY_MS);
  const series = useLoad(range, (signal) => get<Series>(`/api/v1/series?range=${range}`, signal), EVERY_MS);
  return (
    <>
      <header class="view-head">
        <h1>Overview</h1>
        <div class="ranges" role="group" aria-label="How far back">
          {RANGES.map(([name, text]) => (
            <button key={name} aria-pressed={name === range} onClick={() => setQuery(new URLSearchParams({ range: name }))}>
              {text}
            </button>
          ))}
        </div>
        {series.data && !series.problem && <span class="tail tail-on">live</span>}
      </header>
      <section aria-labelledby="now">
        <h2 id="now">Now</h2>
        <Shown of={totals}>{(data) => <Now totals={data} />}</Shown>
      </section>
      <section aria-labelledby="lately">
        <h2 id="lately">In the last {words}</h2>
        <Shown of={series}>
          {(data) => (
            <>
              <Lately sum={data.sum} range={range} spanMs={spanMs} />
              {happened(data.sum) ? <Charts series={data} /> : <Empty>No call in the last {words}. What happens next shows up here by itself.</Empty>}
            </>
          )}
        </Shown>
      </section>
    </>
  );
}

function Now({ totals }: { totals: Totals }) {
  const { executions, queue, workers } = totals;
  const stalled = queue.depth > 0 && workers.running === 0;
  return (
    <dl class="cards">
      <Card label="Running" to={calls("leased")} value={executions.leased} />
      <Card label="In the queue" to={calls("ready,scheduled")} value={queue.depth} warn={stalled}>
        {queue.oldest_age_ms == null ? "none waits" : `the oldest for ${duration(queue.oldest_age_ms)}`}
      </Card>
      <Card label="Waiting for input" to={calls("waiting")} value={executions.waiting} />
      <Card label="Outcome unknown" to={href("attention")} value={executions.unknown} warn={executions.unknown > 0}>
        {executions.unknown ? "needs a decision" : "none is open"}
      </Card>
      <Card label="Workers" to={href("workers")} value={workers.running} warn={workers.running === 0}>
        {[workers.draining && `${workers.draining} draining`, workers.gone && `${workers.gone} gone today`].filter(Boolean).join(", ") || "all well"}
      </Card>
      <Card label="Stored calls" to={href("executions")} value={executions.all}>
        {`${executions.completed.toLocaleString()} completed`}
      </Card>
    </dl>
  );
}

function Lately({ sum, range, spanMs }: { sum: Numbers; range: string; spanMs: number }) {
  const ended = sum.completed + sum.failed + sum.cancelled;
  const within = (more: Record<string, string>) => href("executions", undefined, new URLSearchParams({ ...more, within: range }));
  const { latency } = sum;
  return (
    <dl class="cards cards-four">
      <Card label="Calls that ended" to={within({ state: "completed,failed,cancelled" })} value={ended}>
        {`${rate(ended, spanMs)}, ${count(sum.submitted, "call")} came in`}
      </Card>
      <Card label="Latency, the median" text={latency ? duration(latency.p50_ms) : "–"}>
        {latency ? `p95 ${duration(latency.p95_ms)}, p99 ${duration(latency.p99_ms)}` : "no result yet"}
      </Card>
      <Card label="Failed" to={within({ state: "failed" })} value={sum.failed} bad={sum.failed > 0}>
        {`${count(sum.tool_errors, "tool error")} besides`}
      </Card>
      <Card label="Attempts lost" to={within({ attempts_over: "1" })} value={sum.lost} warn={sum.lost > 0}>
        {sum.crash_rate == null ? "none was started" : `crash rate ${percent(sum.crash_rate)} of ${count(sum.attempts, "attempt")}`}
      </Card>
      <Card label="Recovered" to={within({ recovered: "true" })} value={sum.recovered}>
        completed after a loss
      </Card>
      <Card label="Became unknown" to={within({ state: "unknown" })} value={sum.unknown} warn={sum.unknown > 0}>
        and were not run again
      </Card>
      <Card label="Stale writes rejected" value={sum.stale_writes}>
        changed nothing
      </Card>
      <Card label="Duplicates answered" value={sum.repeats}>
        {sum.conflicts ? `${count(sum.conflicts, "conflict")} refused` : "without running again"}
      </Card>
    </dl>
  );
}

interface CardProps {
  label: string;
  value?: number;
  text?: string;
  to?: string;
  warn?: boolean;
  bad?: boolean;
  children?: ComponentChildren;
}

/** A number with its name, what it means, and the calls it counts. */
function Card({ label, value, text, to, warn, bad, children }: CardProps) {
  const shown = text ?? value?.toLocaleString();
  return (
    <div class={`card ${bad ? "card-bad" : warn ? "card-warn" : ""}`}>
      <dt>{label}</dt>
      <dd>
        <span class="card-number">{to ? <a href={to} aria-label={`${label}: ${shown}`}>{shown}</a> : shown}</span>
        {children && <span class="quiet">{children}</span>}
      </dd>
    </div>
  );
}

function Charts({ series }: { series: Series }) {
  const times = series.steps.map((step) => step.at);
  const of = (pick: (numbers: Numbers) => number | null | undefined) => series.steps.map(({ numbers }) => pick(numbers) ?? null);
  const each = series.step_ms >= 600_000 ? "ten minutes" : "minute";
  const line = (label: string, colour: string, values: (number | null)[], dash?: number[]): Line => ({ label, colour, values, ...(dash && { dash }) });
  return (
    <div class="charts">
      <Chart
        title={`Calls that ended, each ${each}`}
        times={times}
        say={whole}
        atLeast={4}
        lines={[
          line("completed", "--good", of((numbers) => numbers.completed)),
          line("failed", "--bad", of((numbers) => numbers.failed), [6, 4]),
          line("cancelled", "--quiet", of((numbers) => numbers.cancelled), [2, 4]),
        ]}
      />
      <Chart
        title="Latency of completed calls"
        times={times}
        say={duration}
        atLeast={10}
        lines={[
          line("p50", "--accent", of((numbers) => numbers.latency?.p50_ms)),
          line("p95", "--warn", of((numbers) => numbers.latency?.p95_ms), [6, 4]),
          line("p99", "--bad", of((numbers) => numbers.latency?.p99_ms), [2, 4]),
        ]}
      />
      <Chart
        title={`Losses and recoveries, each ${each}`}
        times={times}
        say={whole}
        atLeast={4}
        lines={[
          line("attempts lost", "--bad", of((numbers) => numbers.lost)),
          line("recovered", "--good", of((numbers) => numbers.recovered), [6, 4]),
          line("became unknown", "--warn", of((numbers) => numbers.unknown), [2, 4]),
        ]}
      />
      <Chart
        title={`Refused and answered again, each ${each}`}
        times={times}
        say={whole}
        atLeast={4}
        lines={[
          line("duplicates answered", "--accent", of((numbers) => numbers.repeats)),
          line("stale writes", "--warn", of((numbers) => numbers.stale_writes), [6, 4]),
          line("conflicts", "--bad", of((numbers) => numbers.conflicts), [2, 4]),
        ]}
      />
      <p class="quiet">
        Counted from the log of events; latencies are at most 3.2 % off. As of <time dateTime={series.at}>{moment(series.at)}</time>; the last step goes on.
      </p>
    </div>
  );
}

const calls = (state: string) => href("executions", undefined, new URLSearchParams({ state }));
const whole = (value: number) => (Number.isInteger(value) ? value.toLocaleString() : "");
const percent = (share: number) => `${(share * 100).toLocaleString(undefined, { maximumFractionDigits: share < 0.01 ? 2 : 1 })} %`;

function rate(number: number, spanMs: number): string {
  const perSecond = (number * 1_000) / spanMs;
  const say = (value: number) => value.toLocaleString(undefined, { maximumFractionDigits: value < 10 ? 1 : 0 });
  return perSecond >= 1 ? `${say(perSecond)} a second` : `${say(perSecond * 60)} a minute`;
}

function happened(sum: Numbers): boolean {
  return Object.values(sum).some((value) => typeof value === "number" && value > 0);
}
