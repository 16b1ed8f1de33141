// Asks for a credential, once: an API key, or the token that the server wrote for this machine.
import { useState } from "preact/hooks";
import { credential } from "../access";
import { Signal, useSignal } from "../signal";
import { Dialog } from "./dialog";

const open = new Signal(false);

export function signIn(): void {
  open.value = true;
}

export function SignIn() {
  const shown = useSignal(open);
  const [token, setToken] = useState("");
  if (!shown) return null;
  const close = () => {
    setToken("");
    open.value = false;
  };
  return (
    <Dialog
      title="Enter a token"
      act="Use it"
      ready={token.trim() !== ""}
      onAct={async () => void (credential.value = token.trim())}
      onClose={close}
    >
      <p>
        An API key (<code>durable-mcp token create</code>), or, on a server without authentication, the token in its data folder:{" "}
        <code>servers/&lt;host&gt;_&lt;port&gt;.token</code>. It is forgotten when this tab is closed.
      </p>
      <label>
        Token
        <input type="password" autocomplete="off" value={token} onInput={(e) => setToken(e.currentTarget.value)} />
      </label>
    </Dialog>
  );
}
