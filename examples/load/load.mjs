#!/usr/bin/env node
// Load from a Node program: N clients in a closed loop, each answer checked. Needs nothing but Node 20 or newer.
//
//     node examples/load/load.mjs http://127.0.0.1:7400/mcp --clients 16 --seconds 5
//
// Each call has an idempotency key and a message of its own, and its answer has to hold that message. One call in ten is
// sent twice: the second answer has to name the execution of the first. Prints one JSON object; ends with 1 when an answer
// was wrong or none came. The token of a server that asks for one is taken from DURABLE_MCP_TOKEN.

import { randomUUID } from "node:crypto";
import { parseArgs } from "node:util";

const REVISION = "2026-07-28";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { clients: { type: "string", default: "16" }, seconds: { type: "string", default: "5" } },
});
const [url] = positionals;
if (!url) {
  console.error("usage: load.mjs URL [--clients N] [--seconds S]");
  process.exit(2);
}

async function call(tool, args, key) {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": REVISION,
    "mcp-method": "tools/call",
    "mcp-name": tool,
  };
  const token = process.env.DURABLE_MCP_TOKEN;
  if (token) headers.authorization = `Bearer ${token}`;
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "load.mjs", version: "1" },
    "durable-mcp/idempotencyKey": key,
  };
  const params = { name: tool, arguments: args, _meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const response = await fetch(url, { method: "POST", headers, body, signal: AbortSignal.timeout(60_000) });
  const text = await response.text();
  if (!response.ok) throw new Error(`status ${response.status}: ${text.slice(0, 200)}`);
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return JSON.parse(text);
  // The last event of a stream is the answer.
  const events = text.split("\n").filter((line) => line.startsWith("data:"));
  return JSON.parse(events.at(-1).slice("data:".length));
}

const executionOf = (answer) => answer.result?._meta?.["durable-mcp/execution"]?.id;
const latenciesMs = [];
const tally = { repeats: 0, wrong: 0, errors: {} };
const run = randomUUID().slice(0, 8);

async function work(number, end) {
  for (let n = 1; performance.now() < end; n += 1) {
    const key = `${run}-${number}-${n}`;
    const begun = performance.now();
    try {
      const answer = await call("demo_echo", { message: key }, key);
      latenciesMs.push(performance.now() - begun);
      let right = answer.result?.content?.[0]?.text === key;
      if (right && n % 10 === 0) {
        const again = await call("demo_echo", { message: key }, key);
        tally.repeats += 1;
        right = executionOf(again) === executionOf(answer);
      }
      if (!right) tally.wrong += 1;
    } catch (error) {
      const name = error.cause?.code ?? error.name;
      tally.errors[name] = (tally.errors[name] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

const begun = performance.now();
const end = begun + Number(values.seconds) * 1000;
await Promise.all(Array.from({ length: Number(values.clients) }, (_, number) => work(number, end)));
const elapsedS = (performance.now() - begun) / 1000;
latenciesMs.sort((a, b) => a - b);
const percentile = (part) => {
  const at = Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * part));
  return latenciesMs.length ? Number(latenciesMs[at].toFixed(3)) : null;
};
console.log(
  JSON.stringify({
    calls: latenciesMs.length,
    calls_per_s: Number((latenciesMs.length / elapsedS).toFixed(1)),
    p50_ms: percentile(0.5),
    p99_ms: percentile(0.99),
    ...tally,
  }),
);
process.exit(latenciesMs.length && !tally.wrong ? 0 : 1);
