// Where the server is and which token is used: `sdk/vectors/addresses.json`.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { ServerAddress } from "../dist/index.js";

const vectors = JSON.parse(readFileSync(new URL("../../vectors/addresses.json", import.meta.url), "utf8"));
const data = mkdtempSync(join(tmpdir(), "durable-mcp-worker-"));
after(() => rmSync(data, { recursive: true }));
mkdirSync(join(data, "servers"));
for (const [path, text] of Object.entries(vectors.tokens)) writeFileSync(join(data, path), text);

for (const { url, given, env, base, token } of vectors.good) {
  test(`base and token of ${url} ${JSON.stringify(env)}`, () => {
    const address = new ServerAddress(url ?? undefined, given, { ...env, DURABLE_MCP_DATA_DIR: data });
    assert.deepEqual([address.base, address.token() ?? null], [base, token]);
  });
}

for (const url of vectors.bad) {
  test(`${url} is refused and not repeated`, () => {
    assert.throws(() => new ServerAddress(url, undefined, {}), (error) => !error.message.includes("secret"));
  });
}
