/** Waiting for a signal or for a time, and no longer. */

/** Stays rung until it is cleared, so that a ring before the wait is not lost. */
export class Bell {
  #isRung = false;
  #waiters: (() => void)[] = [];

  ring(): void {
    this.#isRung = true;
    for (const wake of this.#waiters.splice(0)) wake();
  }

  clear(): void {
    this.#isRung = false;
  }

  /** Resolves when it is rung; at once when it is already. */
  rung(): Promise<void> {
    return this.#isRung ? Promise.resolve() : new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** True when it is rung within the time. */
  rungWithin(ms: number): Promise<boolean> {
    if (this.#isRung) return Promise.resolve(true);
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        this.#waiters = this.#waiters.filter((waiter) => waiter !== wake);
        resolve(false);
      }, ms);
      this.#waiters.push(wake);
    });
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** True when the promise resolves within the time. */
export async function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
