// One call: why it stands where it stands, its life over workers, its log, its payloads, and what can be ordered.
import { useEffect, useState } from "preact/hooks";
import { get, type Event, type Execution as Row, type Piece, type Why } from "../api";
import { caller, may } from "../access";
import { useLive } from "../live";
import { useLoad, useNow } from "../load";
import { Copy } from "../parts/copy";
import { Empty, Failure, Loading, Shown } from "../parts/notice";
import { isSettled, State } from "../parts/state";
import { Orders } from "../parts/orders";
import { Payload } from "../parts/payload";
import { Timeline } from "../parts/timeline";
import { href } from "../route";
import { useSignal } from "../signal";
import { clock, duration, moment } from "../words";

interface Whole {
  row: Row;
  events: Event[];
  why: Why;
}

async function whole(id: string, signal: AbortSignal): Promise<Whole> {
  const at = `/api/v1/executions/${encodeURIComponent(id)}`;
  const [row, why, events] = await Promise.all([get<Row>(at, signal), get<Why>(`${at}/why`, signal), log(at, signal)]);
  return { row, why, events };
}

async function log(at: string, signal: AbortSignal): Promise<Event[]> {
  const events: Event[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page: { events: Event[]; next_after: number | null } = await get(`${at}/events?after=${after}`, signal);
    events.push(...page.events);
    after = page.next_after ?? null;
  }
  return events;
}

export function Execution({ id }: { id: string }) {
  const loaded = useLoad(id, (signal) => whole(id, signal));
  const row = loaded.data?.row;
  const goesOn = row !== undefined && (!isSettled(row) || row.state === "unknown");
  useLive(new URLSearchParams({ id_prefix: id }).toString(), goesOn, loaded.reload);
  return (
    <>
      <p class="back">
        <a href={href("executions")}>← Executions</a>
      </p>
      <Shown of={loaded}>
        {({ row, events, why }) => (
          <>
            <header class="view-head">
              <h1>
                {row.tool} <span class="quiet">of {row.upstream}</span>
              </h1>
              <State state={row.state} isError={row.is_error ?? null} />
              <Orders
                execution={row}
                onDone={(of) => {
                  if (of.id !== row.id) location.hash = href("executions", of.id);
                  loaded.reload();
                }}
              />
            </header>
            <Sentences why={why} />
            <Life events={events} />
            <Facts row={row} />
            <Log events={events} />
            <Payloads row={row} />
          </>
        )}
      </Shown>
    </>
  );
}

function Sentences({ why }: { why: Why }) {
  return (
    <section aria-labelledby="why">
      <h2 id="why">What happened</h2>
      <ul class="sentences">
        {[why.asked, why.ran, why.lost, why.decided, why.next].map((sentence, index) => (
          <li key={index}>{sentence}</li>
        ))}
      </ul>
    </section>
  );
}

function Life({ events }: { events: Event[] }) {
  const now = useNow();
  return (
    <section aria-labelledby="life">
      <h2 id="life">Attempts and workers</h2>
      <Timeline events={events} now={now} />
    </section>
  );
}

function Facts({ row }: { row: Row }) {
  const facts: [string, string | undefined | null][] = [
    ["Id", row.id],
    ["Principal", `${row.principal} in ${row.namespace}`],
    ["Idempotency key", row.key],
    ["Effect key", row.effect_key === row.id ? "its own id" : row.effect_key],
    ["Delivery", `${row.delivery} (${row.delivery_source})`],
    ["Submitted", moment(row.created_at)],
    ["Ended", row.ended_at && moment(row.ended_at)],
    ["Runs at", row.run_at && moment(row.run_at)],
    ["Lease", row.lease && `${row.lease.worker}, until ${clock(row.lease.expires_at)} without a heartbeat`],
    ["Result from", row.source],
    ["Effect of the cancelled call", row.effect],
    ["Last error", row.error && `${row.error.code}: ${row.error.message}`],
  ];
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">Facts</h2>
      <dl class="facts">
        {facts.map(([name, value]) =>
          value ? (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ) : null,
        )}
        {row.retry_of && (
          <div>
            <dt>Repeats</dt>
            <dd>
              <a href={href("executions", row.retry_of)}>{row.retry_of}</a>
            </dd>
          </div>
        )}
      </dl>
    </section>
  );
}

function Log({ events }: { events: Event[] }) {
  const firstMs = events[0] ? Date.parse(events[0].at) : 0;
  return (
    <section aria-labelledby="log">
      <h2 id="log">Log</h2>
      <table class="rows log">
        <thead>
          <tr>
            <th>No.</th>
            <th>At</th>
            <th>After</th>
            <th>Event</th>
            <th>Members</th>
          </tr>
        </thead>
        <tbody>
          {events.map(({ seq, type, at, ...members }) => (
            <tr key={seq}>
              <td data-label="No.">{seq}</td>
              <td data-label="At" title={moment(at)}>
                {clock(at)}
              </td>
              <td data-label="After">{duration(Date.parse(at) - firstMs)}</td>
              <td data-label="Event">
                <code>{type}</code>
              </td>
              <td data-label="Members">
                <code class="members">
                  {Object.entries(members)
                    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
                    .join("   ")}
                </code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The exact texts. They are read when somebody wants to see them: reading is a right of its own. */
function Payloads({ row }: { row: Row }) {
  const who = useSignal(caller);
  const [wanted, setWanted] = useState(false);
  useEffect(() => setWanted(false), [row.id]);
  return (
    <section aria-labelledby="payloads">
      <h2 id="payloads">Arguments and result</h2>
      {!may(who, "payloads") ? (
        <Empty>Your credential does not permit to read payloads.</Empty>
      ) : wanted ? (
        <Texts row={row} />
      ) : (
        <button onClick={() => setWanted(true)}>Show them</button>
      )}
    </section>
  );
}

/** The first piece of an exact text; absent when there is none. */
async function first(row: Row, kind: string, signal: AbortSignal): Promise<Piece | undefined> {
  const found = await piece(row, kind, 0, signal);
  return found.pieces > 0 ? found : undefined;
}

function piece(row: Row, kind: string, number: number, signal?: AbortSignal): Promise<Piece> {
  return get<Piece>(`/api/v1/executions/${row.id}/payloads/${kind}?piece=${number}`, signal);
}

function Texts({ row }: { row: Row }) {
  const kind = row.state === "failed" ? "error" : "result";
  const loaded = useLoad(`${row.id} ${row.updated_at}`, async (signal) => {
    const [args, ending] = await Promise.all([first(row, "arguments", signal), first(row, kind, signal)]);
    return { args, ending };
  });
  if (loaded.problem) return <Failure problem={loaded.problem} reload={loaded.reload} />;
  if (!loaded.data) return <Loading />;
  const { args, ending } = loaded.data;
  const more = (kind: string) => (number: number) => piece(row, kind, number);
  return (
    <>
      {args ? <Payload name="Arguments" first={args} more={more("arguments")} /> : <Empty>The arguments were deleted by retention.</Empty>}
      {args?.pieces === 1 && <Copy what="as a command" text={command(row, args.text)} />}
      {ending ? (
        <Payload name={kind === "error" ? "Error of the server" : "Result"} first={ending} more={more(kind)} />
      ) : (
        <Empty>{row.state === "completed" ? "The result was deleted by retention." : "There is no result."}</Empty>
      )}
    </>
  );
}

/** The call as the command line makes it; the quotes are a POSIX shell's. */
function command(row: Row, args: string): string {
  return `durable-mcp call ${quoted(row.tool)} --args ${quoted(args)} --url ${quoted(new URL("mcp", document.baseURI).href.replace(/#.*$/, ""))}`;
}

function quoted(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
