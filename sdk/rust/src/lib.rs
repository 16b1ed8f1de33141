//! Write tools for DurableMCP in Rust: a [`Worker`] registers tools at a server, claims their calls under a lease, runs
//! them and reports what came of them. The wire protocol is docs/worker-protocol.md. Runs no server.
//!
//! From the caller's side to the wire: `worker` (register, run), `tool` (a handler and its definition), `context` (what
//! a handler sees), `failure` (how it says no), `results` (what it returns, as MCP); `conversation` (claims, heartbeats,
//! outcomes, on a thread of its own), `held` (a call between the two), `link` (one request), `address` (where, and with
//! which token).

mod address;
mod context;
mod conversation;
mod failure;
mod held;
mod link;
mod results;
mod tool;
mod worker;

pub use address::{AddressError, ServerAddress};
pub use context::Context;
pub use failure::{Cancelled, Failure, Retry, ToolError};
pub use schemars;
pub use tokio_util::sync::CancellationToken;
pub use tool::{Delivery, NoArguments, Tool};
pub use worker::{RunError, Worker};
