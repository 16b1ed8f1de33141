/**
 * Write tools for DurableMCP in TypeScript: a `Worker` registers tools at a server, claims their calls under a lease,
 * runs them and reports what came of them. The wire protocol is docs/worker-protocol.md.
 */

export { ServerAddress } from "./address.js";
export { Context, type Log } from "./context.js";
export { CallCancelled, NotWelcome, Retry, type RetryOptions, ToolError } from "./errors.js";
export type { FromSchema, JsonSchema, ObjectSchema } from "./schema.js";
export { VERSION } from "./version.js";
export { type Handler, type ToolOptions, Worker, type WorkerOptions } from "./worker.js";
