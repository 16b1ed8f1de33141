//! Floor 0: what is told of this process to others while it works: spans of traces, and faults of ours. Does nothing
//! until the wiring gives it a sink; sends nothing itself, and knows no execution but by its id.

pub mod faults;
pub mod here;
pub mod place;
pub mod sampler;
pub mod span;

#[cfg(test)]
mod tests;

pub use place::Place;
pub use sampler::Sampler;
pub use span::{Counts, Made, Span, Traces};
