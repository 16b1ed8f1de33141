//! Floor 3: what MCP clients see. Raw JSON in, raw JSON out. Runs no tool and knows no upstream: it speaks to the engine
//! and reads its catalog. `face` is what all of it shares.
//!
//! - A message comes in: `envelope`, `id`, `meta`, `era`, `headers`, `param_headers`, `admit`, `rate`; `reject` says
//!   why not.
//! - Transports: `http` and `stream`, `stdio`; `frame` writes messages, `written` long ones in pieces,
//!   `going` what comes before an answer.
//! - Calls: `call_params`, `keys`, `call`, `conversation`, `progress`, `answer`, `builtin`; `splice` adds our members.
//! - Questions to the client: `input`, with `request_state`; `sealed_state` for what no execution stands behind; `sealing`.
//! - Tasks: `task`. Sessions up to 2025-11-25: `session`, and what they wish to hear: `standing`, `wishes`, `subscription`.
//! - Everything else that is asked: `method`, `requests`, `forwards`, `bridge` and `earlier` between eras; lists in `listing`,
//!   `offering`, `exposure`, `names`, `cursor`, `uri_template`; `capabilities`.
//! - What is told unasked: `hearing` (up to 2025-11-25), `listen` (2026-07-28), `log_level`.

pub mod admit;
pub mod answer;
pub mod bridge;
pub mod builtin;
pub mod call;
pub mod call_params;
pub mod capabilities;
pub mod connection;
pub mod conversation;
pub mod cursor;
mod cut;
pub mod earlier;
pub mod envelope;
pub mod era;
pub mod exposure;
pub mod face;
pub mod forwards;
pub mod frame;
pub mod going;
pub mod headers;
pub mod hearing;
pub mod http;
pub mod id;
pub mod input;
pub mod keys;
pub mod listen;
pub mod listing;
pub mod log_level;
pub mod meta;
pub mod method;
pub mod names;
pub mod offering;
pub mod param_headers;
pub mod progress;
pub mod rate;
pub mod reject;
pub mod request_state;
pub mod requests;
pub mod sealed_state;
pub mod sealing;
pub mod session;
pub mod splice;
pub mod standing;
pub mod stdio;
pub mod stream;
pub mod subscription;
pub mod task;
pub mod uri_template;
pub mod wishes;
pub mod written;

#[cfg(test)]
mod tests;
