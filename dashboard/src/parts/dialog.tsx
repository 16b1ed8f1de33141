// A question over the page: the browser's own dialog, which keeps the keyboard inside and closes on Escape.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api";

interface Props {
  title: string;
  act: string;
  danger?: boolean;
  ready?: boolean;
  onAct: () => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, act, danger, ready = true, onAct, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    const opened = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    return () => opened?.focus();
  }, []);

  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || !ready) return;
    setBusy(true);
    try {
      await onAct();
      onClose();
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem("page", 0, String(error), ""));
      setBusy(false);
    }
  };

  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="dialog-title">
      <form method="dialog" onSubmit={submit}>
        <h2 id="dialog-title">{title}</h2>
        {children}
        {problem && (
          <p class="dialog-problem" role="alert">
            {problem.message} {problem.next}
          </p>
        )}
        <p class="dialog-acts">
          <button type="button" onClick={() => dialog.current?.close()}>
            Back
          </button>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy || !ready}>
            {act}
          </button>
        </p>
      </form>
    </dialog>
  );
}
