//! DurableMCP: a durable execution layer for MCP tool calls. One sentence a module, in floor order;
//! imports go down only, never sideways on floor 3 (`tests/it/tidy.rs` enforces it).
//!
//! - [`model`] (floor 0): the pure rules: ids, executions and every transition, events, retries, arguments.
//! - [`telemetry`] (floor 0): spans and faults on their way to others; handles that do nothing until they get a sink.
//! - [`store`] (floor 1): the trait, the SQLite driver, the conformance suite; knows SQL, decides nothing.
//! - [`engine`] (floor 2): the verbs; the only writer of executions; scheduler, waiters, catalog, the one clock.
//! - [`worker`] (floor 3): leases executions and runs them: upstream servers, commands, demo tools.
//! - [`mcp`] (floor 3): what MCP clients see: envelope, revisions, transports, calls, sessions, tasks, questions, lists.
//! - [`http`] (floor 3): what operators see and what guards every listener: auth, Host and Origin, health.
//! - [`config`] (floor 4): one struct; every limit lives here.
//! - [`cli`] and [`serve`] (floor 4): wiring.

pub mod cli;
pub mod config;
pub mod engine;
pub mod http;
pub mod mcp;
pub mod model;
pub mod serve;
pub mod store;
pub mod telemetry;
pub mod worker;
