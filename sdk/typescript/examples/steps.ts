/**
 * A booking in three steps. Kill the worker in the middle and start it again: what is booked is not booked twice.
 *
 *     durable-mcp serve &
 *     node steps.js
 */

import { setTimeout as pause } from "node:timers/promises";

import { Retry, ToolError, Worker } from "durable-mcp-worker";

const worker = new Worker({ name: "travel" });

worker.tool(
  "book_trip",
  {
    description: "Books a flight, then a hotel, then writes the confirmation.",
    delivery: "at_least_once",
    timeoutMs: 300_000,
    maxAttempts: 5,
    inputSchema: {
      type: "object",
      properties: { city: { type: "string" }, nights: { type: "integer" }, room: { enum: ["single", "double"] } },
      required: ["city"],
      additionalProperties: false,
    },
  },
  async ({ city, nights = 1, room = "single" }, ctx) => {
    if (nights < 1) throw new ToolError("a trip has at least one night");
    const flight = await ctx.step("flight", () => reserve("flight", city, ctx.effectKey));
    ctx.progress(1, 3, "the flight is booked");
    const hotel = await ctx.step("hotel", () => reserve(`hotel-${room}`, city, ctx.effectKey));
    ctx.progress(2, 3, "the hotel is booked");
    const letter = await ctx.step("letter", () => `Flight ${flight.id}, hotel ${hotel.id}, ${nights} nights in ${city}.`);
    return { flight, hotel, letter };
  },
);

/** Stands for a request to a service that knows idempotency keys: the same key books once. */
async function reserve(what: string, city: string, key: string): Promise<{ id: string }> {
  await pause(3_000);
  if (!key) throw new Retry("the service is busy", { afterMs: 2_000, notStarted: true });
  return { id: `${what}-${city}-${key.slice(-4)}`.toLowerCase() };
}

await worker.run();
