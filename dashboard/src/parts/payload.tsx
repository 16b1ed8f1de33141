// An exact JSON text: as it is, or laid out for reading. Always text, never markup.
import { useEffect, useState } from "preact/hooks";
import type { Piece } from "../api";
import { bytes } from "../words";
import { Copy } from "./copy";

/** A longer text is shown in part until somebody asks for all of it. */
const SHOWN_MAX = 20_000;

interface Props {
  name: string;
  /** Of how many it is, it says. */
  first: Pick<Piece, "text" | "pieces">;
  more?: (number: number) => Promise<Piece>;
}

export function Payload({ name, first, more }: Props) {
  const [text, setText] = useState(first.text);
  const [read, setRead] = useState(1);
  const [exact, setExact] = useState(false);
  const [all, setAll] = useState(false);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    setText(first.text);
    setRead(1);
  }, [first.text, first.pieces]);
  // What is there in part has no end, and so no lay-out.
  const whole = first.pieces === 1;
  const shown = exact || !whole ? text : laidOut(text);
  const cut = !all && shown.length > SHOWN_MAX;
  const next = () =>
    more?.(read).then(
      (piece) => {
        setText(text + piece.text);
        setRead(read + 1);
        setProblem(undefined);
      },
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
  return (
    <figure class="payload">
      <figcaption>
        <strong>{name}</strong> <span class="quiet">{whole ? bytes(new Blob([text]).size) : `large: ${read} of ${first.pieces} pieces are here`}</span>
        {whole && (
          <button aria-pressed={exact} onClick={() => setExact(!exact)}>
            {exact ? "Lay out" : "Exact text"}
          </button>
        )}
        {read === first.pieces && <Copy what="the exact text" text={text} />}
      </figcaption>
      <pre tabIndex={0} aria-label={name}>{cut ? shown.slice(0, SHOWN_MAX) : shown}</pre>
      {cut && <button onClick={() => setAll(true)}>Show all that is here</button>} {read < first.pieces && <button onClick={next}>Get the next piece</button>}
      {problem && <p role="alert">{problem}</p>}
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
