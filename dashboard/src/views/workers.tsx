// Who runs tools: processes of the server and remote workers, what each has, and when it was heard of.
import { useState } from "preact/hooks";
import { get, post, type Worker } from "../api";
import { caller, may } from "../access";
import { useLoad, useNow } from "../load";
import { Dialog } from "../parts/dialog";
import { Empty, Shown } from "../parts/notice";
import { useSignal } from "../signal";
import { ago, moment } from "../words";

const EVERY_MS = 2_000;

export function Workers() {
  const now = useNow();
  const who = useSignal(caller);
  const [draining, setDraining] = useState<Worker>();
  const loaded = useLoad("workers", (signal) => get<{ workers: Worker[] }>("/api/v1/workers", signal), EVERY_MS);
  return (
    <>
      <h1>Workers</h1>
      <Shown of={loaded}>
        {({ workers }) =>
          workers.length ? (
            <table class="rows">
              <caption class="hidden">Workers</caption>
              <thead>
                <tr>
                  <th>Name</th>
                  <th>State</th>
                  <th>Kind</th>
                  <th>Calls</th>
                  <th>Tools</th>
                  <th>Registered</th>
                  <th>Heard of</th>
                  <th>Made with</th>
                  <th>
                    <span class="hidden">Orders</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {inOrder(workers).map((worker) => (
                  <tr key={worker.id} class={worker.state === "gone" ? "past" : ""}>
                    <td data-label="Name" title={worker.id}>
                      {worker.name}
                    </td>
                    <td data-label="State">{worker.state}</td>
                    <td data-label="Kind">{worker.kind}</td>
                    <td data-label="Calls">
                      <span><meter min={0} max={worker.slots} value={worker.leased} aria-label="Slots in use" /> {worker.leased} of {worker.slots}</span>
                    </td>
                    <td data-label="Tools">{worker.tools.length ? worker.tools.join(", ") : "what its process is configured with"}</td>
                    <td data-label="Registered" title={moment(worker.registered_at)}>
                      {ago(worker.registered_at, now)}
                    </td>
                    <td data-label="Heard of">
                      {worker.gone_at ? `gone ${ago(worker.gone_at, now)}` : worker.last_seen_at ? ago(worker.last_seen_at, now) : "in this store"}
                    </td>
                    <td data-label="Made with">{worker.sdk ?? ""}</td>
                    <td>
                      {may(who, "operate") && worker.state === "running" && <button onClick={() => setDraining(worker)}>Drain…</button>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          ) : (
            <Empty>No worker has registered.</Empty>
          )
        }
      </Shown>
      {draining && (
        <Dialog
          title={`Drain ${draining.name}`}
          act="Drain it"
          danger
          onAct={async () => {
            await post(`/api/v1/workers/${draining.id}/drain`, {});
            loaded.reload();
          }}
          onClose={() => setDraining(undefined)}
        >
          <p>It finishes the calls it has and takes nothing more. This can not be taken back: the worker has to be started again.</p>
        </Dialog>
      )}
    </>
  );
}

/** The living first, the newest first among each. */
function inOrder(workers: Worker[]): Worker[] {
  const rank = (worker: Worker) => (worker.state === "gone" ? 1 : 0);
  return [...workers].sort((one, other) => rank(one) - rank(other) || other.registered_at.localeCompare(one.registered_at));
}
