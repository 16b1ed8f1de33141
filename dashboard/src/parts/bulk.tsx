// Orders for many: for the rows that are selected, one by one; or for all that the filter finds, with a count first.
import { useState } from "preact/hooks";
import { post, Problem, type BulkDone, type BulkOrder } from "../api";
import { count } from "../words";
import { Dialog } from "./dialog";

type Action = BulkOrder["action"];
const NAMES: Record<Action, string> = { cancel: "Cancel", retry: "Run again", resolve: "Resolve" };

interface Props {
  filter: NonNullable<BulkOrder["filter"]>;
  selected: ReadonlySet<string>;
  act: (order: BulkOrder) => Promise<BulkDone>;
  onDone: () => void;
}

interface Pending {
  action: Action;
  /** Absent: everything the filter finds. */
  ids?: string[];
  found: number;
}

export function BulkOrders({ filter, selected, act, onDone }: Props) {
  const [pending, setPending] = useState<Pending>();
  const [reason, setReason] = useState("");
  const [outcome, setOutcome] = useState<"completed" | "failed">("failed");
  const [said, setSaid] = useState("");

  const ask = async (action: Action) => {
    setSaid("");
    if (selected.size) {
      setPending({ action, ids: [...selected], found: selected.size });
      return;
    }
    try {
      const preview = await act({ action, filter, preview: true });
      if (preview.more) setSaid(`More than ${preview.matching.toLocaleString()} fit: narrow the filter first.`);
      else if (!preview.matching) setSaid("The filter finds nothing with which that can be done.");
      else setPending({ action, found: preview.matching });
    } catch (error) {
      setSaid(error instanceof Problem ? `${error.message} ${error.next}` : String(error));
    }
  };
  const order = async () => {
    if (!pending) return;
    const members = { reason, ...(pending.action === "resolve" && { outcome }) };
    let done = 0;
    let refused = 0;
    if (pending.ids) {
      for (const id of pending.ids) {
        await post(`/api/v1/executions/${id}/${pending.action}`, members).then(
          () => done++,
          (error: unknown) => {
            if (!(error instanceof Problem) || error.status !== 409) throw error;
            refused++;
          },
        );
      }
    } else {
      const answer = await act({ action: pending.action, filter, expected: pending.found, preview: false, ...members });
      for (const one of answer.outcomes ?? []) one.ok ? done++ : refused++;
    }
    setSaid(`Done with ${count(done, "call")}${refused ? `; ${count(refused, "call")} did not permit it` : ""}.`);
    setReason("");
    onDone();
  };

  return (
    <div class="bulk">
      <span>{selected.size ? `${count(selected.size, "row")} selected:` : "All that fit the filters:"}</span>
      {(Object.keys(NAMES) as Action[]).map((action) => (
        <button key={action} onClick={() => ask(action)}>
          {NAMES[action]}…
        </button>
      ))}
      <span role="status">{said}</span>
      {pending && (
        <Dialog
          title={`${NAMES[pending.action]}: ${count(pending.found, "call")}`}
          act={`${NAMES[pending.action]} ${pending.found.toLocaleString()}`}
          danger={pending.action !== "resolve"}
          ready={reason.trim() !== ""}
          onAct={order}
          onClose={() => setPending(undefined)}
        >
          {pending.action === "resolve" && (
            <label>
              As
              <select value={outcome} onChange={(event) => setOutcome(event.currentTarget.value as "completed" | "failed")}>
                <option value="failed">failed: it did not take effect</option>
                <option value="completed">completed: it took effect</option>
              </select>
            </label>
          )}
          <label>
            Reason
            <input value={reason} maxLength={1000} onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
          <p class="quiet">Each order is kept in the log of its call with your name and the reason.</p>
        </Dialog>
      )}
    </div>
  );
}
