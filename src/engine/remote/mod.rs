//! Remote workers: who is registered, what their tools are, and the verbs of the worker protocol. A remote worker holds
//! its leases as the worker of this process does: the same commands, decided by the same rules. Knows no HTTP.

pub mod claim;
mod drain;
pub mod error;
pub mod held;
pub mod listing;
pub mod registry;
pub mod report;
mod token;

pub use claim::{Ask, Handed};
pub use drain::{DrainRefused, drain};
pub use error::Refused;
pub use registry::{Registered, Registration, RemoteTool, RemoteWorker, Settings, ToolOffers, is_lane, lane};
pub use report::{Beat, LeaseStatus, StepAnswer};
pub use token::mint as lease_token;
