// Orders of a person: cancel, retry, resolve. The server decides whether they are permitted and keeps the reason.
import { useState } from "preact/hooks";
import { post, type Execution, type OrderDone } from "../api";
import { caller, may } from "../access";
import { useSignal } from "../signal";
import { Dialog } from "./dialog";

type Order = "cancel" | "retry" | "resolve";

/** The orders that the state of an execution permits. */
export function ordersFor(state: string): Order[] {
  if (state === "unknown") return ["resolve", "retry"];
  if (state === "failed" || state === "cancelled") return ["retry"];
  return state === "completed" ? [] : ["cancel"];
}

export function Orders({ execution, onDone }: { execution: Execution; onDone: (of: Execution) => void }) {
  const who = useSignal(caller);
  const [order, setOrder] = useState<Order>();
  const permitted = ordersFor(execution.state).filter((order) => may(who, order === "cancel" ? "cancel" : "operate"));
  return (
    <span class="orders">
      {permitted.map((order) => (
        <button key={order} class={order === "cancel" ? "danger" : ""} onClick={() => setOrder(order)}>
          {order === "cancel" ? "Cancel…" : order === "retry" ? "Run again…" : "Resolve…"}
        </button>
      ))}
      {order && <Ask order={order} execution={execution} onClose={() => setOrder(undefined)} onDone={onDone} />}
    </span>
  );
}

const TITLES: Record<Order, string> = { cancel: "Cancel this call", retry: "Run this call again", resolve: "Say what became of it" };

interface Asked {
  order: Order;
  execution: Execution;
  onClose: () => void;
  onDone: (of: Execution) => void;
}

function Ask({ order, execution, onClose, onDone }: Asked) {
  const [reason, setReason] = useState("");
  const [outcome, setOutcome] = useState<"completed" | "failed">("completed");
  const act = async () => {
    const body = order === "resolve" ? { outcome, reason } : { reason: reason || null };
    const done = await post<OrderDone>(`/api/v1/executions/${execution.id}/${order}`, body);
    onDone(done.execution);
  };
  const ready = order === "cancel" || reason.trim() !== "";
  return (
    <Dialog title={TITLES[order]} act={TITLES[order]} danger={order === "cancel"} ready={ready} onAct={act} onClose={onClose}>
      <p>
        <code>{execution.tool}</code> of <code>{execution.upstream}</code>, called by {execution.principal}
      </p>
      {order === "retry" && execution.state === "unknown" && (
        <p class="warning">It may have had its effect already. Running it again may repeat that effect, unless the tool honours its key.</p>
      )}
      {order === "cancel" && <p>Cancelling is final. What runs is told to stop; what it did until then stays done.</p>}
      {order === "resolve" && (
        <fieldset>
          <legend>What you found out</legend>
          {(["completed", "failed"] as const).map((one) => (
            <label key={one}>
              <input type="radio" name="outcome" checked={outcome === one} onChange={() => setOutcome(one)} />{" "}
              {one === "completed" ? "It took effect: completed" : "It did not take effect: failed"}
            </label>
          ))}
        </fieldset>
      )}
      <label>
        Reason{order === "cancel" && " (optional)"}
        <input value={reason} maxLength={1000} onInput={(e) => setReason(e.currentTarget.value)} />
      </label>
      <p class="quiet">The reason is kept in the log with your name.</p>
    </Dialog>
  );
}
