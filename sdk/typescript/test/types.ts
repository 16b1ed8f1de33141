/** The types inferred from schemas, held by the compiler: `npm run check` fails when one is wrong. Runs nothing. */

import type { FromSchema } from "../src/index.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Is<T extends true> = T;

const schema = {
  type: "object",
  properties: {
    name: { type: "string" },
    count: { type: "integer" },
    ratio: { type: "number" },
    yes: { type: "boolean" },
    kind: { enum: ["a", "b"] },
    tags: { type: "array", items: { type: "string" } },
    maybe: { type: ["string", "null"] },
    inner: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
    open: { type: "object", additionalProperties: { type: "number" } },
    any: {},
    either: { anyOf: [{ type: "string" }, { type: "number" }] },
    one: { const: 1 },
  },
  required: ["name", "kind"],
} as const;

export type Checked = Is<
  Same<
    FromSchema<typeof schema>,
    {
      name: string;
      kind: "a" | "b";
      count?: number;
      ratio?: number;
      yes?: boolean;
      tags?: string[];
      maybe?: string | null;
      inner?: { id: number };
      open?: Record<string, number>;
      any?: unknown;
      either?: string | number;
      one?: 1;
    }
  >
>;
