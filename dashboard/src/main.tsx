// The page: who calls, where one is, and what is shown there.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { get, type Caller, type ExecutionPage, type StreamEvent } from "./api";
import { caller, credential } from "./access";
import { useLive } from "./live";
import { useLoad } from "./load";
import { Empty } from "./parts/notice";
import { signIn, SignIn } from "./parts/sign-in";
import { href, route } from "./route";
import { useSignal } from "./signal";
import { theme, THEMES } from "./theme";
import { Attention } from "./views/attention";
import { Connect } from "./views/connect";
import { Execution } from "./views/execution";
import { Executions } from "./views/executions";
import { Overview } from "./views/overview";
import { Sessions } from "./views/sessions";
import { OneTool, Tools } from "./views/tools";
import { Workers } from "./views/workers";
import "./style.css";

const VIEWS: [string, string][] = [
  ["overview", "Overview"],
  ["executions", "Executions"],
  ["attention", "Needs attention"],
  ["workers", "Workers"],
  ["tools", "Tools"],
  ["sessions", "Sessions"],
  ["connect", "Connect"],
];

function Page() {
  const { view, id } = useSignal(route);
  const known = VIEWS.find(([name]) => name === view);
  useEffect(() => {
    document.title = `${known?.[1] ?? "Not found"} · DurableMCP`;
    document.querySelector("main")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [view, id]);
  return (
    <>
      <Top view={view} />
      <main tabIndex={-1}>
        <View view={view} id={id} />
      </main>
      <SignIn />
    </>
  );
}

function View({ view, id }: { view: string; id: string | undefined }) {
  switch (view) {
    case "overview":
      return <Overview />;
    case "executions":
      return id === undefined ? <Executions /> : <Execution key={id} id={id} />;
    case "attention":
      return <Attention />;
    case "workers":
      return <Workers />;
    case "tools":
      return id === undefined ? <Tools /> : <OneTool key={id} name={id} />;
    case "sessions":
      return <Sessions />;
    case "connect":
      return <Connect />;
    default:
      return (
        <Empty>
          There is no such view. <a href={href("overview")}>Overview</a>
        </Empty>
      );
  }
}

function Top({ view }: { view: string }) {
  const shown = useSignal(theme);
  return (
    <header class="top">
      <button class="skip" onClick={() => document.querySelector("main")?.focus()}>
        To the content
      </button>
      <a class="brand" href={href("overview")}>
        <img src="./icon.svg" alt="" width="22" height="22" /> DurableMCP
      </a>
      <nav aria-label="Views">
        {VIEWS.map(([name, title]) => (
          <a key={name} href={href(name)} aria-current={view === name ? "page" : undefined}>
            {title}
            {name === "attention" && <Unknown />}
          </a>
        ))}
      </nav>
      <span class="top-right">
        <Who />
        <button onClick={() => (theme.value = THEMES[(THEMES.indexOf(shown) + 1) % THEMES.length]!)} title="Light, dark, or as the system says">
          {shown}
        </button>
      </span>
    </header>
  );
}

const UNKNOWN_SHOWN_MAX = 99;

/** Whether a call became unknown, or may have been one until now: a person, a late result or a look at the tool decided. */
function decidesAnUnknown(event: StreamEvent): boolean {
  return event.type === "lost" || event.by !== undefined || event.source === "late_result" || event.source === "reconcile";
}

/** How many calls wait for a decision. */
function Unknown() {
  const loaded = useLoad("unknown", (signal) => get<ExecutionPage>(`/api/v1/executions?state=unknown&limit=${UNKNOWN_SHOWN_MAX + 1}`, signal), 30_000);
  useLive("", true, (events, missed) => {
    if (missed || events.some(decidesAnUnknown)) loaded.reload();
  });
  const number = loaded.data?.executions.length ?? 0;
  if (!number) return null;
  return <span class="badge">{number > UNKNOWN_SHOWN_MAX ? `${UNKNOWN_SHOWN_MAX}+` : number}</span>;
}

function Who() {
  const token = useSignal(credential);
  const loaded = useLoad("caller", (signal) => get<Caller>("/api/v1/caller", signal));
  useEffect(() => {
    caller.value = loaded.data;
  }, [loaded.data]);
  const who = loaded.data;
  return (
    <span class="who">
      {who ? `${who.principal}${who.namespace === "default" ? "" : ` in ${who.namespace}`}` : loaded.problem ? loaded.problem.message : "…"}{" "}
      {token ? (
        <button onClick={() => (credential.value = undefined)}>Forget token</button>
      ) : (
        (!who || !who.actions || !who.payloads) && <button onClick={signIn}>Enter a token</button>
      )}
    </span>
  );
}

render(<Page />, document.getElementById("dashboard")!);
