/**
 * The smallest worker: one tool that answers what it is told.
 *
 *     durable-mcp serve &
 *     node echo.js
 */

import { Worker } from "durable-mcp-worker";

const worker = new Worker({ name: "echo", slots: 64 });

worker.tool(
  "echo",
  {
    description: "Answers with the text it is given.",
    annotations: { readOnlyHint: true },
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
  ({ text }) => text,
);

await worker.run();
