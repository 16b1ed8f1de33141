/** The worker that `sdk/vectors` drive, in TypeScript. `sdk/vectors/README.md` says what each tool does. */

import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

import { type Context, Retry, ToolError, Worker } from "durable-mcp-worker";

const name = process.env["CONFORMANCE_NAME"] ?? "";
const ledger = process.env["CONFORMANCE_LEDGER"] ?? "";
const slots = Number(process.env["CONFORMANCE_SLOTS"] ?? 8);
const graceMs = Number(process.env["CONFORMANCE_GRACE_MS"] ?? 5000);

const worker = new Worker({ name, slots, graceMs });
const RETURNS: Record<string, unknown> = {
  text: "plain",
  object: { sum: 3, of: [1, 2] },
  nothing: undefined,
  list: [1, 2],
  number: 7,
  result: { content: [{ type: "text", text: "as it is" }], structuredContent: { n: 1 } },
  unicode: 'naïve ☃ 𝄞 "quoted"\n',
};

function note(text: string): void {
  appendFileSync(ledger, `${name} ${text}\n`);
}

worker.tool(
  "echo",
  {
    description: "Answers with the text it is given.",
    annotations: { readOnlyHint: true },
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
  ({ text }) => text,
);

worker.tool(
  "returns",
  {
    delivery: "at_least_once",
    inputSchema: { type: "object", properties: { kind: { type: "string" } }, required: ["kind"] },
  },
  ({ kind }) => RETURNS[kind],
);

const failsSchema = {
  type: "object",
  properties: {
    how: { enum: ["tool_error", "error", "retry", "retry_not_started"] },
    until_attempt: { type: "integer" },
  },
  required: ["how"],
} as const;

function fails({ how, until_attempt = 2 }: { how: string; until_attempt?: number }, ctx: Context): unknown {
  if (how === "tool_error") throw new ToolError("the tool says no");
  if (how === "error") throw new RangeError("nothing there");
  if (ctx.attempt < until_attempt) throw new Retry("not yet", { afterMs: 10, notStarted: how === "retry_not_started" });
  return { attempt: ctx.attempt };
}

worker.tool("fails", { delivery: "at_least_once", maxAttempts: 3, inputSchema: failsSchema }, fails);
worker.tool("fails_once", { delivery: "at_most_once", maxAttempts: 3, inputSchema: failsSchema }, fails);

worker.tool(
  "steps",
  {
    delivery: "at_least_once",
    maxAttempts: 5,
    inputSchema: { type: "object", properties: { pause_in: { type: "string" } } },
  },
  async ({ pause_in }, ctx) => {
    const step = (step: string) =>
      ctx.step(step, async () => {
        note(`${step} attempt ${ctx.attempt}`);
        if (step === pause_in && ctx.attempt === 1) await pause(60_000);
        return { by: name };
      });
    const [one, two, three] = [await step("one"), await step("two"), await step("three")];
    return { one, two, three, attempt: ctx.attempt, fencing: ctx.fencing, key: ctx.effectKey, id: ctx.executionId };
  },
);

worker.tool(
  "block",
  {
    delivery: "at_least_once",
    inputSchema: { type: "object", properties: { ms: { type: "integer" } }, required: ["ms"] },
  },
  ({ ms }, ctx) => {
    note("block begun");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    return { attempt: ctx.attempt };
  },
);

worker.tool(
  "hold",
  {
    delivery: "at_least_once",
    maxAttempts: 5,
    inputSchema: { type: "object", properties: { gate: { type: "string" } }, required: ["gate"] },
  },
  async ({ gate }, ctx) => {
    note(`hold begun ${ctx.attempt}`);
    try {
      while (!existsSync(gate)) await pause(10, undefined, { signal: ctx.signal });
    } catch (error) {
      note(ctx.cancelled ? "hold cancelled" : "hold was never cancelled");
      throw error;
    }
    note("hold ended");
    return { by: name, attempt: ctx.attempt };
  },
);

worker.tool(
  "progress",
  {
    delivery: "at_least_once",
    inputSchema: { type: "object", properties: { count: { type: "integer" } }, required: ["count"] },
  },
  async ({ count }, ctx) => {
    for (let at = 1; at <= count; at += 1) {
      ctx.progress(at, count, `${at} of ${count}`);
      await pause(100);
    }
    return "done";
  },
);

worker.tool("checkpoint", { delivery: "at_least_once" }, (_args, ctx) => {
  if (ctx.attempt === 1) {
    ctx.checkpoint({ row: 300 });
    throw new Retry("from here", { afterMs: 0 });
  }
  return { last: ctx.lastCheckpoint, attempt: ctx.attempt };
});

worker.tool(
  "typed",
  {
    annotations: { readOnlyHint: true },
    inputSchema: {
      type: "object",
      properties: {
        customer: { type: "string", description: "Who pays." },
        amount: { type: "integer" },
        rate: { type: "number", default: 1 },
        urgent: { type: "boolean", default: false },
        tags: { type: ["array", "null"], items: { type: "string" }, default: null },
        kind: { type: "string", enum: ["card", "cash"], default: "card" },
      },
      required: ["customer", "amount"],
      additionalProperties: false,
    },
  },
  ({ customer, amount, rate = 1, urgent = false, tags = null, kind = "card" }) => ({
    customer,
    amount,
    rate,
    urgent,
    tags,
    kind,
  }),
);

await worker.run();
