//! Configuration: one struct tree, where every setting and every limit lives with its default, its bounds and its
//! description; reading it from TOML or another client's JSON, the environment and flags; showing it without secrets.
//! Prints nothing, opens no store and starts nothing: a file that passes here may still name a command that is missing.
//!
//! One truth: the structs of [`settings`] and [`tools`]. Their JSON Schema drives the checks, `config show`, the names of
//! the `DURABLE_MCP_*` variables and `docs/configuration.md`.

mod check;
mod defaults;
mod environment;
mod error;
mod forms;
mod http_tools;
mod interpolate;
pub mod json;
mod json_file;
mod load;
mod node;
mod policy;
pub mod redaction;
pub mod retention;
mod rules;
mod schema;
mod secret;
pub mod settings;
mod show;
pub mod sources;
mod store;
mod telemetry;
mod toml_file;
pub mod tools;
pub mod units;

pub use environment::{OTHER_VARIABLES, variables};
pub use error::{Error, ErrorKind};
pub use load::{Loaded, Overrides, Source, load};
pub use policy::{Idempotency, Policy, Queue, Retry, Timeout};
pub use schema::schema;
pub use secret::{Secret, Text, mask_url};
pub use settings::Config;
pub use show::show;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_errors;
#[cfg(test)]
mod tests_http_tools;
#[cfg(test)]
mod tests_reference;
#[cfg(test)]
mod tests_show;
#[cfg(test)]
mod tests_sources;
