// The calls, newest first: filters in the address, a tail that can be paused, orders for what a filter finds.
import { useEffect, useState } from "preact/hooks";
import { get, post, type BulkDone, type BulkOrder, type Execution, type ExecutionPage } from "../api";
import { caller, may } from "../access";
import { useLive } from "../live";
import { useLoad, useNow } from "../load";
import { BulkOrders } from "../parts/bulk";
import { ExecutionTable } from "../parts/execution-table";
import { Empty, Shown } from "../parts/notice";
import { STATES } from "../parts/state";
import { route, setQuery } from "../route";
import { useSignal } from "../signal";

const PAGE = 50;
const SPANS: [string, string][] = [["", "any time"], ["15m", "15 minutes"], ["1h", "1 hour"], ["24h", "24 hours"], ["7d", "7 days"]];
const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const TEXTS: [string, string][] = [
  ["tool", "Tool"],
  ["upstream", "Server"],
  ["principal", "Principal"],
  ["key", "Key"],
  ["error_code", "Error code"],
  ["id_prefix", "Id begins with"],
];

/** The API's parameters for the filters in the address. `within` is counted back from the present. */
export function parameters(query: URLSearchParams): URLSearchParams {
  const wanted = new URLSearchParams();
  for (const name of ["state", "recovered", "attempts_over", ...TEXTS.map(([name]) => name)]) {
    const value = query.get(name);
    if (value) wanted.set(name, value);
  }
  const [, number, unit] = /^(\d+)([mhd])$/.exec(query.get("within") ?? "") ?? [];
  if (unit) {
    // A whole minute, so that the same filter asks the same question for a while.
    const since = Math.floor((Date.now() - Number(number) * UNITS[unit]!) / 60_000) * 60_000;
    wanted.set("since", new Date(since).toISOString());
  }
  return wanted;
}

/** The same as the body of an order by filter. */
function filterOf(wanted: URLSearchParams): NonNullable<BulkOrder["filter"]> {
  const filter: Record<string, unknown> = Object.fromEntries(wanted);
  if (filter.state) filter.state = (filter.state as string).split(",");
  if (filter.recovered) filter.recovered = true;
  if (filter.attempts_over) filter.attempts_over = Number(filter.attempts_over);
  return filter as NonNullable<BulkOrder["filter"]>;
}

export function Executions() {
  const { query } = useSignal(route);
  const who = useSignal(caller);
  const wanted = parameters(query);
  const key = wanted.toString();
  const [live, setLive] = useState(true);
  const [older, setOlder] = useState<Execution[]>([]);
  const [next, setNext] = useState<string | null>();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const now = useNow();
  const page = useLoad(key, (signal) => get<ExecutionPage>(`/api/v1/executions?${withLimit(wanted)}`, signal));
  useEffect(() => {
    setOlder([]);
    setNext(undefined);
    setSelected(new Set());
  }, [key]);
  const tail = useLive(new URLSearchParams().toString(), live, page.reload);

  const more = async () => {
    const before = next ?? page.data?.next_before;
    if (!before) return;
    const asked = withLimit(wanted);
    asked.set("before", before);
    const answer = await get<ExecutionPage>(`/api/v1/executions?${asked}`);
    setOlder((rows) => [...rows, ...answer.executions]);
    setNext(answer.next_before ?? null);
  };
  const act = async (order: BulkOrder) => {
    const done = await post<BulkDone>("/api/v1/executions/actions", order);
    if (!order.preview) page.reload();
    return done;
  };

  return (
    <>
      <header class="view-head">
        <h1>Executions</h1>
        <button aria-pressed={live} onClick={() => setLive(!live)}>
          {live ? "Pause" : "Go on"}
        </button>
        <span class={`tail ${tail.alive ? "tail-on" : ""}`} role="status">
          {!live ? "paused" : tail.alive ? "live" : tail.problem ? `not live: ${tail.problem.message}` : "connecting…"}
        </span>
      </header>
      <Filters query={query} />
      {may(who, "operate") && <BulkOrders filter={filterOf(wanted)} selected={selected} act={act} onDone={() => setSelected(new Set())} />}
      <Shown of={page}>
        {(data) => {
          const rows = merged(data.executions, older);
          if (!rows.length) {
            return <Empty>{key ? "No call fits these filters." : "No call yet. The first one shows up here by itself."}</Empty>;
          }
          const hasMore = next === undefined ? data.next_before : next;
          return (
            <>
              <ExecutionTable rows={rows} now={now} {...(may(who, "operate") && { selected, onSelect: setSelected })} />
              {hasMore && (
                <p class="more">
                  <button onClick={more}>Show older ones</button>
                </p>
              )}
            </>
          );
        }}
      </Shown>
    </>
  );
}

function withLimit(wanted: URLSearchParams): URLSearchParams {
  const asked = new URLSearchParams(wanted);
  asked.set("limit", String(PAGE));
  return asked;
}

/** A fresh first page over the older ones, each execution once. */
function merged(first: Execution[], older: Execution[]): Execution[] {
  const seen = new Set(first.map((row) => row.id));
  return [...first, ...older.filter((row) => !seen.has(row.id))];
}

function Filters({ query }: { query: URLSearchParams }) {
  const set = (name: string, value: string) => {
    const changed = new URLSearchParams(query);
    if (value) changed.set(name, value);
    else changed.delete(name);
    setQuery(changed);
  };
  const states = new Set((query.get("state") ?? "").split(",").filter(Boolean));
  const toggle = (state: string) => {
    const changed = new Set(states);
    if (!changed.delete(state)) changed.add(state);
    set("state", STATES.filter((one) => changed.has(one)).join(","));
  };
  const given = [...query.keys()].length;
  const fieldsGiven = given > (query.has("state") ? 1 : 0);
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
      <fieldset class="chips">
        <legend class="hidden">State</legend>
        {STATES.map((state) => (
          <label key={state} class={`chip state-${state}`}>
            <input type="checkbox" checked={states.has(state)} onChange={() => toggle(state)} /> {state}
          </label>
        ))}
      </fieldset>
      <details open={wide.matches || fieldsGiven}>
        <summary>More filters</summary>
        <div class="fields">
        {TEXTS.map(([name, label]) => (
          <label key={name}>
            {label}
            <Typed value={query.get(name) ?? ""} onValue={(value) => set(name, value)} />
          </label>
        ))}
        <label>
          Submitted within
          <select value={query.get("within") ?? ""} onChange={(event) => set("within", event.currentTarget.value)}>
            {SPANS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={query.get("attempts_over") === "1"}
            onChange={(event) => set("attempts_over", event.currentTarget.checked ? "1" : "")}
          />{" "}
          more than one attempt
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={query.get("recovered") === "true"}
            onChange={(event) => set("recovered", event.currentTarget.checked ? "true" : "")}
          />{" "}
          recovered
        </label>
        {given > 0 && (
          <button type="button" onClick={() => setQuery(new URLSearchParams())}>
            Clear filters
          </button>
        )}
        </div>
      </details>
    </form>
  );
}

/** On a phone the fields would push the calls out of sight. */
const wide = matchMedia("(min-width: 46rem)");
const TYPING_PAUSE_MS = 300;

/** A text that is taken when somebody stops typing. */
function Typed({ value, onValue }: { value: string; onValue: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onValue(text.trim()), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return <input type="search" value={text} maxLength={300} onInput={(event) => setText(event.currentTarget.value)} />;
}
