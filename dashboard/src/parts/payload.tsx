// An exact JSON text: as it is, or laid out for reading. Always text, never markup.
import { useState } from "preact/hooks";
import { bytes } from "../words";
import { Copy } from "./copy";

/** A longer text is shown in part until somebody asks for all of it. */
const SHOWN_MAX = 20_000;

export function Payload({ name, text }: { name: string; text: string }) {
  const [exact, setExact] = useState(false);
  const [all, setAll] = useState(false);
  const shown = exact ? text : laidOut(text);
  const cut = !all && shown.length > SHOWN_MAX;
  return (
    <figure class="payload">
      <figcaption>
        <strong>{name}</strong> <span class="quiet">{bytes(new Blob([text]).size)}</span>
        <button aria-pressed={exact} onClick={() => setExact(!exact)}>
          {exact ? "Lay out" : "Exact text"}
        </button>
        <Copy what="the exact text" text={text} />
      </figcaption>
      <pre tabIndex={0} aria-label={name}>{cut ? shown.slice(0, SHOWN_MAX) : shown}</pre>
      {cut && <button onClick={() => setAll(true)}>Show all of it</button>}
    </figure>
  );
}

/** Line breaks and indentation between the tokens; no token is changed, so numbers keep their spelling. */
export function laidOut(json: string): string {
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token === "{" || token === "[") {
      const empty = next === "}" || next === "]";
      if (!empty) depth++;
      out += empty ? token : token + line();
    } else if (token === "}" || token === "]") {
      const empty = tokens[index - 1] === "{" || tokens[index - 1] === "[";
      if (!empty) depth--;
      out += empty ? token : line() + token;
    } else if (token === ",") out += token + line();
    else out += token === ":" ? ": " : token;
  });
  return out;
}
