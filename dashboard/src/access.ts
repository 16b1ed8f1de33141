// Who the page speaks for. The credential lives as long as the tab; it is in no URL and in no storage that outlives it.
import { Signal } from "./signal";
import type { Caller } from "./api";

const KEY = "durable-mcp-credential";

/** The bearer credential, if one was given. */
export const credential = new Signal<string | undefined>(sessionStorage.getItem(KEY) ?? undefined);
credential.watch(() => {
  if (credential.value) sessionStorage.setItem(KEY, credential.value);
  else sessionStorage.removeItem(KEY);
});

/** Who the server says the caller is; absent until it said so. */
export const caller = new Signal<Caller | undefined>(undefined);

/** Whether the caller may do something. The server decides again for each request: this only spares useless buttons. */
export function may(who: Caller | undefined, scope: "operate" | "cancel" | "payloads"): boolean {
  if (!who) return false;
  if (scope === "payloads") return who.payloads;
  return who.actions && who.scopes.some((held) => held === scope || held === "operate" || held === "admin");
}
