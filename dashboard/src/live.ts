// Events as they happen, for views that stay fresh: one stream for the page's view, told at most four times a second.
import { useEffect, useRef, useState } from "preact/hooks";
import { follow, type Problem, type StreamEvent } from "./api";
import { credential } from "./access";
import { useSignal } from "./signal";

const TELL_EVERY_MS = 250;
/** Events of one telling; a view that gets more is told that it missed some, and asks anew. */
const TOLD_MAX = 500;

export interface Live {
  alive: boolean;
  problem: Problem | undefined;
}

/** Follows what `query` selects while `on`; absent: everything the caller may see. */
export function useLive(query: string, on: boolean, told: (events: StreamEvent[], missed: boolean) => void): Live {
  const token = useSignal(credential);
  const [live, setLive] = useState<Live>({ alive: false, problem: undefined });
  const latest = useRef(told);
  latest.current = told;

  useEffect(() => {
    if (!on) {
      setLive({ alive: false, problem: undefined });
      return;
    }
    const stop = new AbortController();
    let waiting: StreamEvent[] = [];
    let missed = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tell = () => {
      timer = undefined;
      const events = waiting;
      waiting = [];
      latest.current(events, missed);
      missed = false;
    };
    const hear = (event: StreamEvent) => {
      if (waiting.length < TOLD_MAX) waiting.push(event);
      else missed = true;
      timer ??= setTimeout(tell, TELL_EVERY_MS);
    };
    void follow(new URLSearchParams(query), hear, (alive, problem) => setLive({ alive, problem }), stop.signal);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [query, on, token]);
  return live;
}
