/** What a handler throws to say how a call ended, and what the worker throws itself. Decides nothing. */

/** The tool says no: the caller gets this text as a result with `isError`. It is not retried. */
export class ToolError extends Error {
  override name = "ToolError";
}

export interface RetryOptions {
  /** The earliest time of the next attempt, from now; without it the server's back-off decides. */
  afterMs?: number;
  /** The effect provably was not begun: only then does an `at_most_once` call run again. */
  notStarted?: boolean;
}

/** No result this time: run the call again, if its delivery permits another attempt. */
export class Retry extends Error {
  override name = "Retry";
  readonly afterMs: number | undefined;
  readonly notStarted: boolean;

  constructor(message: string, options: RetryOptions = {}) {
    super(message);
    this.afterMs = options.afterMs;
    this.notStarted = options.notStarted ?? false;
  }
}

/** The reason of `ctx.signal`: the call was cancelled, or its lease was lost. */
export class CallCancelled extends Error {
  override name = "CallCancelled";
  readonly why: "cancel" | "lost";

  constructor(why: "cancel" | "lost") {
    super(why === "cancel" ? "the call was cancelled" : "the lease was lost");
    this.why = why;
  }
}

/** The server refuses this worker for good: a wrong credential, a tool name that is another's, a bad definition. */
export class NotWelcome extends Error {
  override name = "NotWelcome";
}

/** The arguments are not what the schema says; the text is for the caller. */
export class InvalidArguments extends Error {
  override name = "InvalidArguments";
}
