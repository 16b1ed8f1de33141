//! Floor 3: what guards and serves every HTTP listener, and what operators read there. Knows nothing of MCP: that face
//! comes in as a router. Writes no execution.

pub mod auth;
pub mod caller;
pub mod dashboard;
pub mod events;
pub mod executions;
pub mod front;
pub mod guard;
pub mod health;
pub mod listener;
pub mod local_token;
pub mod metrics;
pub mod network;
pub mod openapi;
pub mod proxy;
pub mod refusal;
pub mod router;
pub mod series;
pub mod sessions;
pub mod token;
pub mod tools;
pub mod totals;
pub mod worker;
pub mod workers;
