// The check of arguments, and what handlers return.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Worker } from "../dist/index.js";
import { errorResult, failure, toolResult } from "../dist/results.js";
import { check } from "../dist/schema.js";

const schema = {
  type: "object",
  properties: {
    price: { type: "object", properties: { amount: { type: "integer" } }, required: ["amount"] },
    colour: { enum: ["red", "blue"] },
    tags: { type: ["array", "null"], items: { type: "string" } },
    either: { anyOf: [{ type: "string" }, { type: "number" }] },
    one: { const: 1 },
    rest: { type: "object", additionalProperties: { type: "boolean" } },
  },
  required: ["price"],
  additionalProperties: false,
};

test("arguments that fit", () => {
  const price = { amount: 3 };
  for (const more of [{}, { colour: "red" }, { tags: null }, { tags: ["a"] }, { either: 1 }, { one: 1 }, { rest: { a: true } }]) {
    check(schema, { price, ...more });
  }
});

test("arguments that do not fit are named and not shown", () => {
  const price = { amount: 3 };
  const cases = [
    [{}, "price: is missing"],
    [{ price: {} }, "price.amount: is missing"],
    [{ price: { amount: "secret" } }, "price.amount: expected integer, got string"],
    [{ price: { amount: 1.5 } }, "price.amount: expected integer, got number"],
    [{ price, colour: "secret" }, 'colour: expected one of "red", "blue"'],
    [{ price, tags: [1] }, "tags[0]: expected string, got number"],
    [{ price, either: true }, "either: fits none of the permitted forms"],
    [{ price, one: 2 }, "one: expected one of 1"],
    [{ price, rest: { a: 1 } }, "rest.a: expected boolean, got number"],
    [{ price, toString: 1 }, "toString: there is no such argument"],
    [[], "the arguments: expected object, got array"],
  ];
  for (const [args, message] of cases) assert.throws(() => check(schema, args), { name: "InvalidArguments", message });
});

test("an object with a content of its own is no result", () => {
  assert.deepEqual(JSON.parse(toolResult({ content: "page" })).structuredContent, { content: "page" });
});

test("what is no JSON is an error", () => {
  for (const value of [Number.NaN, { a: Infinity }, 1n, () => 1]) assert.throws(() => toolResult(value), TypeError);
});

test("errors", () => {
  assert.deepEqual(JSON.parse(errorResult('"no"')), { content: [{ type: "text", text: '"no"' }], isError: true });
  const { error } = JSON.parse(`{${failure(`Größen Fehler${"x".repeat(99)}`, "m", true, { retry_after_ms: 5 })}}`);
  assert.match(error.code, /^Gr__en_Fehlerx{51}$/);
});

test("a worker says at once what can not be", async () => {
  assert.throws(() => new Worker({ slots: 0 }), RangeError);
  assert.throws(() => new Worker({ url: "nowhere" }), TypeError);
  const worker = new Worker();
  await assert.rejects(worker.serve(), /without tools/);
  worker.tool("a", {}, () => "a");
  assert.throws(() => worker.tool("a", {}, () => "b"), /already/);
});
