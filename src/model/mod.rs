//! Floor 0: the rules. Ids, executions and every transition of theirs, events, retries, argument identity.
//! Knows no database, no clock, no randomness and no protocol: what it needs of these comes in as a parameter.

pub mod arguments;
pub mod decide;
pub mod event;
pub mod execution;
pub mod id;
pub mod policy;
pub mod principal;
pub mod retry;
pub mod submit;
pub mod transitions;

#[cfg(test)]
mod tests;
