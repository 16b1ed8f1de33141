// What is shown in the place of data: loading, nothing there, or a failure with its next step. Never alike.
import type { ComponentChildren } from "preact";
import type { Loaded } from "../load";
import type { Problem } from "../api";
import { signIn } from "./sign-in";

export function Failure({ problem, reload }: { problem: Problem; reload?: () => void }) {
  const credentialHelps = ["unauthorized", "local_token_needed", "insufficient_scope"].includes(problem.code);
  return (
    <div class="notice notice-failure" role="alert">
      <strong>{problem.message}</strong>
      {problem.next && <p>{problem.next}</p>}
      <p class="notice-acts">
        {credentialHelps && <button onClick={signIn}>Enter a token</button>}
        {reload && <button onClick={reload}>Try again</button>}
        <code>{problem.code}</code>
      </p>
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="notice notice-empty">{children}</div>;
}

export function Loading() {
  return (
    <div class="notice notice-loading" role="status">
      <span class="spinner" aria-hidden="true" /> Loading…
    </div>
  );
}

/** Data once it is there; a failure stands above data that was there before. */
export function Shown<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      {of.problem && <Failure problem={of.problem} reload={of.reload} />}
      {of.data !== undefined ? children(of.data) : of.loading && !of.problem && <Loading />}
    </>
  );
}
