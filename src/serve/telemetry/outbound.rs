//! What both sinks have in common: a client for one address, with the program's own TLS, the end of their queue that is
//! kept for the end of the process, and words about a collector that can not be reached, at most once in a while.

use std::time::Duration;

use reqwest::{Client, Url};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::worker::http_client;

/// How long one delivery may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of the process waits for what is queued.
const FLUSH: Duration = Duration::from_secs(2);
/// How often it is said that nothing can be delivered.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// A client for this address.
pub(super) fn client(address: &str) -> Result<Client, String> {
    let url = Url::parse(address).map_err(|error| format!("it is no address: {error}"))?;
    http_client::builder(&url).timeout(TIMEOUT).build().map_err(http_client::describe)
}

/// What stands in the queue of a sink.
pub(super) enum Item<T> {
    /// Something to deliver.
    Told(Box<T>),
    /// Somebody waits until all before it is delivered.
    Flush(oneshot::Sender<()>),
}

/// The end of a queue that is kept to deliver what is left; of none where nothing is delivered.
pub struct Delivery<T>(pub(super) Option<mpsc::Sender<Item<T>>>);

impl<T> Clone for Delivery<T> {
    fn clone(&self) -> Self {
        Delivery(self.0.clone())
    }
}

impl<T> Delivery<T> {
    /// Waits until what is queued is delivered, for a moment.
    pub async fn finish(&self) {
        let Some(items) = &self.0 else { return };
        let (done, finished) = oneshot::channel();
        let flush = async {
            if items.send(Item::Flush(done)).await.is_ok() {
                // A task that is gone has nothing left.
                let _ = finished.await;
            }
        };
        let _ = tokio::time::timeout(FLUSH, flush).await;
    }
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
