//! (see lib.rs)

pub mod admit;
pub mod call_params;
pub mod cursor;
pub mod envelope;
pub mod era;
pub mod frame;
pub mod headers;
pub mod id;
pub mod keys;
pub mod members;
pub mod meta;
pub mod names;
pub mod reject;
pub mod revision;
pub mod scan;
pub mod splice;

#[cfg(test)]
mod tests;
