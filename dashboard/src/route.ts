// Where the page is: a view, an id, and a query, all behind the `#`, so that the page works below any path and every
// state of it is an address.
import { Signal } from "./signal";

export interface Route {
  view: string;
  id: string | undefined;
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", id] = path.split("/");
  return { view: view || "overview", id: id ? decodeURIComponent(id) : undefined, query: new URLSearchParams(query) };
}

export const route = new Signal<Route>(read());
addEventListener("hashchange", () => (route.value = read()));

/** The address of a place. */
export function href(view: string, id?: string, query?: URLSearchParams): string {
  const text = query?.toString();
  return `#/${view}${id === undefined ? "" : `/${encodeURIComponent(id)}`}${text ? `?${text}` : ""}`;
}

/** Changes the query of the place one is at. A filter that is typed makes no history. */
export function setQuery(query: URLSearchParams): void {
  const { view, id } = route.value;
  history.replaceState(null, "", href(view, id, query));
  route.value = read();
}
