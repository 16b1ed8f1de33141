//! Where traces and faults go: the sinks that a process is given at its start. Makes no span and no fault.

pub mod otlp;
pub mod outbound;
pub mod sentry;
