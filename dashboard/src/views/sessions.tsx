// MCP sessions of clients up to 2025-11-25: whose, with what client, since when; one can be closed.
import { useState } from "preact/hooks";
import { get, post, type Session } from "../api";
import { caller, may } from "../access";
import { useLoad, useNow } from "../load";
import { Dialog } from "../parts/dialog";
import { Empty, Shown } from "../parts/notice";
import { useSignal } from "../signal";
import { ago, moment } from "../words";

interface Page {
  sessions: Session[];
  next_after?: string | null;
}

export function Sessions() {
  const now = useNow();
  const who = useSignal(caller);
  const [closing, setClosing] = useState<Session>();
  const [pages, setPages] = useState<string[]>([]);
  const after = pages.at(-1);
  const loaded = useLoad(
    after ?? "",
    (signal) => get<Page>(`/api/v1/sessions?limit=100${after ? `&after=${encodeURIComponent(after)}` : ""}`, signal),
    5_000,
  );
  return (
    <>
      <h1>Sessions</h1>
      <p class="quiet">Of clients that speak a revision up to 2025-11-25. Newer ones have none.</p>
      <Shown of={loaded}>
        {({ sessions, next_after }) => (
          <>
            {sessions.length ? (
              <table class="rows">
                <caption class="hidden">Sessions</caption>
                <thead>
                  <tr>
                    <th>Client</th>
                    <th>State</th>
                    <th>Principal</th>
                    <th>Revision</th>
                    <th>Opened</th>
                    <th>Last used</th>
                    <th>Log level</th>
                    <th>Subscriptions</th>
                    <th>Id</th>
                    <th>
                    <span class="hidden">Orders</span>
                  </th>
                  </tr>
                </thead>
                <tbody>
                  {sessions.map((session) => (
                    <tr key={session.id}>
                      <td data-label="Client">{session.client_name ?? "?"}</td>
                      <td data-label="State">{session.state}</td>
                      <td data-label="Principal">{session.principal}</td>
                      <td data-label="Revision">{session.revision}</td>
                      <td data-label="Opened" title={moment(session.created_at)}>
                        {ago(session.created_at, now)}
                      </td>
                      <td data-label="Last used" title={moment(session.last_seen_at)}>
                        {ago(session.last_seen_at, now)}
                      </td>
                      <td data-label="Log level">{session.log_level ?? ""}</td>
                      <td data-label="Subscriptions">{session.subscriptions || ""}</td>
                      <td data-label="Id" title={session.id}>
                        <code>{session.id.slice(0, 8)}…</code>
                      </td>
                      <td>{may(who, "operate") && session.state === "open" && <button onClick={() => setClosing(session)}>Close…</button>}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : (
              <Empty>No session is open.</Empty>
            )}
            <p class="more">
              {pages.length > 0 && <button onClick={() => setPages(pages.slice(0, -1))}>Back</button>}
              {next_after && <button onClick={() => setPages([...pages, next_after])}>More</button>}
            </p>
          </>
        )}
      </Shown>
      {closing && (
        <Dialog
          title="Close this session"
          act="Close it"
          danger
          onAct={async () => {
            await post(`/api/v1/sessions/${closing.id}/close`, {});
            loaded.reload();
          }}
          onClose={() => setClosing(undefined)}
        >
          <p>
            {closing.client_name ?? "Its client"} of {closing.principal} has to initialize anew. Calls that run go on.
          </p>
        </Dialog>
      )}
    </>
  );
}
