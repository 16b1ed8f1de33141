//! What a legacy client has asked to hear: log notices from which level on, and which resources. Belongs to a session or
//! a connection. Stores and sends nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::log_level::LogLevel;
use super::offering::Marks;
use super::subscription::{Subscription, covers};

/// What a client has asked to hear.
#[derive(Debug, Default)]
pub struct Wishes(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    level: Option<LogLevel>,
    subscriptions: HashMap<String, Subscription>,
    /// Resources that are being subscribed to: their upstream may tell of one before it is known to be subscribed.
    expected: Vec<String>,
    told: Option<Marks>,
}

impl Wishes {
    /// From which level on the client hears log notices; `None` while it has not said.
    pub fn level(&self) -> Option<LogLevel> {
        self.held().level
    }

    /// Sets the level.
    pub fn set_level(&self, level: LogLevel) {
        self.held().level = Some(level);
    }

    /// Takes over the level as it was stored.
    pub fn take_level(&self, stored: Option<&str>) {
        self.held().level = stored.and_then(LogLevel::find);
    }

    /// True when there is a subscription to exactly this URI.
    pub fn has(&self, uri: &str) -> bool {
        self.held().subscriptions.contains_key(uri)
    }

    /// How many resources are subscribed to.
    pub fn count(&self) -> usize {
        self.held().subscriptions.len()
    }

    /// Keeps a subscription; of two to one URI the first stays.
    pub fn keep(&self, uri: String, subscription: Subscription) {
        self.held().subscriptions.entry(uri).or_insert(subscription);
    }

    /// Hears of a resource, whoever tells, for as long as what is returned lives.
    pub fn expect(self: &Arc<Self>, uri: &str) -> Expected {
        self.held().expected.push(uri.to_owned());
        Expected { wishes: self.clone(), uri: uri.to_owned() }
    }

    /// Gives a subscription up; dropping what is returned ends it.
    pub fn give_up(&self, uri: &str) -> Option<Subscription> {
        self.held().subscriptions.remove(uri)
    }

    /// True when the client wants to hear that this resource of this upstream has changed.
    pub fn cover(&self, upstream: &str, changed: &str) -> bool {
        let held = self.held();
        let is_covered =
            held.subscriptions.iter().any(|(uri, made)| made.upstream() == upstream && covers(uri, changed));
        is_covered || held.expected.iter().any(|uri| covers(uri, changed))
    }

    /// The URIs that are subscribed to.
    pub fn uris(&self) -> Vec<String> {
        let mut uris: Vec<String> = self.held().subscriptions.keys().cloned().collect();
        uris.sort_unstable();
        uris
    }

    /// The lists that the client was told of last; `None` before it was told of any.
    pub fn told(&self) -> Option<Marks> {
        self.held().told
    }

    /// The client knows these lists, or knows that they have changed.
    pub fn set_told(&self, marks: Marks) {
        self.held().told = Some(marks);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A resource that is being subscribed to.
#[derive(Debug)]
pub struct Expected {
    wishes: Arc<Wishes>,
    uri: String,
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut held = self.wishes.held();
        if let Some(at) = held.expected.iter().position(|uri| *uri == self.uri) {
            held.expected.swap_remove(at);
        }
    }
}
