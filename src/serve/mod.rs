//! Floor 4: wiring. Opens the store, starts the engine, the worker and the protocol face, and ends them in order.
//! Decides nothing: see the floors below.

pub mod assembly;
pub mod failure;
pub mod http;
pub mod http_tools;
pub mod known_tools;
pub mod pipes;
pub mod settings;
pub mod shadow;
pub mod signals;
pub mod telemetry;
pub mod upstreams;
pub mod wrap;

pub use failure::Failure;
pub use http::{ServeOptions, serve};
pub use known_tools::{known_tools, sources};
pub use shadow::{ShadowOptions, shadow};
pub use wrap::{WrapOptions, wrap};
