// Copies a text, and says whether it worked.
import { useState } from "preact/hooks";

export function Copy({ text, what }: { text: string; what: string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    const done = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    setSaid(done ? "Copied" : "Select and copy it by hand");
    setTimeout(() => setSaid(""), 2_000);
  };
  return (
    <button class="copy" onClick={copy} title={`Copy ${what}`}>
      {said || `Copy ${what}`}
      <span class="hidden" role="status">
        {said}
      </span>
    </button>
  );
}
