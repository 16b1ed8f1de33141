// A value that views watch. Small, since it is all the state the page shares between its parts.
import { useEffect, useState } from "preact/hooks";

export class Signal<T> {
  private readonly watchers = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set value(value: T) {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const watcher of [...this.watchers]) watcher();
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

/** The value, in a view that is drawn again when it changes. */
export function useSignal<T>(signal: Signal<T>): T {
  const [, redraw] = useState(0);
  useEffect(() => signal.watch(() => redraw((count) => count + 1)), [signal]);
  return signal.value;
}
