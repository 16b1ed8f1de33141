//! What both sinks have in common: a client for one address, with the program's own TLS, and words about a collector that
//! can not be reached, at most once in a while.

use std::time::Duration;

use reqwest::{Client, Url};
use tokio::time::Instant;

use crate::worker::http_client;

/// How long one delivery may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is said that nothing can be delivered.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// A client for this address.
pub(super) fn client(address: &str) -> Result<Client, String> {
    let url = Url::parse(address).map_err(|error| format!("it is no address: {error}"))?;
    http_client::builder(&url).timeout(TIMEOUT).build().map_err(http_client::describe)
}

/// Says that nothing can be delivered, once in a while.
#[derive(Debug, Default)]
pub(super) struct Complaint(Option<Instant>);

impl Complaint {
    /// True when it is to be said now.
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.0.is_none_or(|said| said.elapsed() >= SAID_EVERY);
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }
}
