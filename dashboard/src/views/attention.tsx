// What waits for a person: outcomes nobody knows, and calls that failed lately.
import { get, type ExecutionPage } from "../api";
import { useLive } from "../live";
import { useLoad, useNow } from "../load";
import { ExecutionTable } from "../parts/execution-table";
import { Empty, Shown } from "../parts/notice";
import { href } from "../route";

const DAY_MS = 86_400_000;

export function Attention() {
  const now = useNow();
  const unknown = useLoad("unknown", (signal) => get<ExecutionPage>("/api/v1/executions?state=unknown&limit=200", signal));
  const waiting = useLoad("waiting", (signal) => get<ExecutionPage>("/api/v1/executions?state=waiting&limit=100", signal));
  const failed = useLoad("failed", (signal) => {
    const since = new Date(Date.now() - DAY_MS).toISOString();
    return get<ExecutionPage>(`/api/v1/executions?state=failed&since=${encodeURIComponent(since)}&limit=100`, signal);
  });
  useLive("", true, () => {
    unknown.reload();
    waiting.reload();
    failed.reload();
  });
  const section = (id: string, title: string, sentence: string, of: typeof unknown, none: string, query: string) => (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <p class="quiet">{sentence}</p>
      <Shown of={of}>
        {(page) =>
          page.executions.length ? (
            <>
              <ExecutionTable rows={page.executions} now={now} />
              {page.next_before && (
                <p>
                  <a href={href("executions", undefined, new URLSearchParams(query))}>All of them</a>
                </p>
              )}
            </>
          ) : (
            <Empty>{none}</Empty>
          )
        }
      </Shown>
    </section>
  );
  return (
    <>
      <h1>Needs attention</h1>
      {section(
        "unknown",
        "Outcome unknown",
        "Started at most once, and its end was never learnt. It is not run again until somebody says what became of it.",
        unknown,
        "No call's outcome is unknown.",
        "state=unknown",
      )}
      {section("waiting", "Waits for input", "A tool asked something, and nobody has answered yet.", waiting, "No call waits for input.", "state=waiting")}
      {section("failed", "Failed in the last day", "No result, and no attempt left.", failed, "No call failed.", "state=failed&within=24h")}
    </>
  );
}
