//! Floor 3: what MCP clients see. Raw JSON in, raw JSON out: envelope, revisions, calls, sessions, transports. Runs no
//! tool and knows no upstream: it speaks to the engine and reads its catalog.

pub mod admit;
pub mod answer;
pub mod builtin;
pub mod call;
pub mod call_params;
pub mod conversation;
pub mod cursor;
pub mod envelope;
pub mod era;
pub mod face;
pub mod frame;
pub mod headers;
pub mod http;
pub mod id;
pub mod keys;
pub mod listing;
pub mod meta;
pub mod method;
pub mod names;
pub mod progress;
pub mod rate;
pub mod reject;
pub mod session;
pub mod splice;
pub mod stdio;
pub mod stream;
pub mod task;

#[cfg(test)]
mod tests;
