//! Floor 0: the rules. Ids, executions and every transition of theirs, events, retries, argument identity.
//! Knows no database, no clock, no randomness, and of the protocol only the
//! names of its revisions: what it needs of these comes in as a parameter.

pub mod arguments;
pub mod command;
pub mod decide;
pub mod event;
pub mod execution;
pub mod header_arguments;
pub mod id;
pub mod json;
pub mod payload;
pub mod policy;
pub mod principal;
pub mod redact;
pub mod retry;
pub mod revision;
pub mod scan;
pub mod submit;
pub mod tally;
pub mod trace;
pub mod transitions;

#[cfg(test)]
mod tests;
