// Asking the server from a view: loading, loaded and failed never look alike, and a failure keeps what was there before.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api";
import { credential } from "./access";
import { useSignal } from "./signal";

export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  reload: () => void;
}

/** Loads when `key` or the credential changes, on `reload`, and every `everyMs` while the page is seen. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>, everyMs?: number): Loaded<T> {
  const token = useSignal(credential);
  const [round, setRound] = useState(0);
  const [state, setState] = useState<{ key: string; data?: T; problem?: Problem; loading: boolean }>({ key, loading: true });
  const latest = useRef(load);
  latest.current = load;

  useEffect(() => {
    const stop = new AbortController();
    setState((before) => (before.key === key ? { ...before, loading: true } : { key, loading: true }));
    latest.current(stop.signal).then(
      (data) => setState({ key, data, loading: false }),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const problem = error instanceof Problem ? error : new Problem("page", 0, String(error), "Reload the page.");
        setState((before) => ({ ...before, problem, loading: false }));
      },
    );
    return () => stop.abort();
  }, [key, token, round]);

  const reload = useCallback(() => setRound((round) => round + 1), []);
  useEffect(() => {
    if (!everyMs) return;
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, reload]);

  const current = state.key === key ? state : { loading: true, data: undefined, problem: undefined };
  return { data: current.data, problem: current.problem, loading: current.loading, reload };
}

/** The present, for ages; ticks each second while the page is seen. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
