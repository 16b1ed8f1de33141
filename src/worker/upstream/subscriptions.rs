//! Resources that somebody wants to be told of: counted per URI, asked for once, and asked for again on each new leg and
//! in each new session. Legacy servers are asked by `resources/subscribe`, those of 2026-07-28 through
//! `subscriptions/listen`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::call::{Answer, CallError};
use super::leg::Leg;
use super::message;
use super::request::Request;
use crate::model::json;

/// Distinct resources that one upstream is asked to tell of.
const URIS_MAX: usize = 10_000;

/// The pause before a new session is told: a server may forget each one as soon as it is opened.
const FORGOTTEN_PAUSE: Duration = Duration::from_millis(100);

/// Who wants what.
pub(super) struct Subscriptions {
    counts: Mutex<BTreeMap<String, usize>>,
    uris: watch::Sender<Vec<String>>,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self { counts: Mutex::default(), uris: watch::Sender::new(Vec::new()) }
    }
}

impl Subscriptions {
    /// What is wanted, and each change of it.
    pub fn follow(&self) -> watch::Receiver<Vec<String>> {
        self.uris.subscribe()
    }

    /// Counts a subscriber in; the first one of a URI asks the server and is told what it says.
    pub async fn add(&self, leg: &Leg, request: &Request, uri: &str) -> Result<Answer, CallError> {
        let is_known = {
            let counts = self.counts();
            if !counts.contains_key(uri) && counts.len() >= URIS_MAX {
                return Err(CallError::not_started("too many resources are subscribed to"));
            }
            counts.contains_key(uri)
        };
        if !is_known && !leg.facts().revision.is_modern() {
            let answer = leg.ask(request).await?;
            if matches!(answer, Answer::Error(_)) {
                return Ok(answer);
            }
            leg.told().subscribed.insert(uri.to_owned());
        }
        *self.counts().entry(uri.to_owned()).or_default() += 1;
        self.publish();
        Ok(message::pong())
    }

    /// Counts a subscriber out.
    pub async fn remove(&self, leg: Option<&Leg>, uri: &str) -> Result<Answer, CallError> {
        let is_last = {
            let mut counts = self.counts();
            match counts.get_mut(uri) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    false
                }
                Some(_) => counts.remove(uri).is_some(),
                None => false,
            }
        };
        if is_last {
            self.publish();
            if let Some(leg) = leg.filter(|leg| leg.told().subscribed.remove(uri)) {
                return leg.ask(&of("resources/unsubscribe", uri)).await;
            }
        }
        Ok(message::pong())
    }

    pub fn are_any(&self) -> bool {
        !self.counts().is_empty()
    }

    fn publish(&self) {
        self.uris.send_replace(self.counts().keys().cloned().collect());
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a leg's server told of what is wanted, for as long as the leg lives.
pub(super) async fn keep(leg: &Leg, mut wanted: watch::Receiver<Vec<String>>) {
    let modern = leg.facts().revision.is_modern();
    let mut first = true;
    loop {
        let uris = wanted.borrow_and_update().clone();
        if modern && !(std::mem::take(&mut first) && uris.is_empty()) {
            leg.listen(&uris);
        }
        let generation = leg.generation();
        if !modern {
            for uri in uris {
                if leg.told().subscribed.insert(uri.clone()) {
                    // A server that refuses now what it granted before tells nothing of it; nobody is there to hear why.
                    let _ = leg.ask(&of("resources/subscribe", &uri)).await;
                }
            }
        }
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() {
                // The upstream is being dropped.
                return std::future::pending().await;
            },
            () = leg.forgotten(generation) => sleep(FORGOTTEN_PAUSE).await,
        }
    }
}

fn of(method: &'static str, uri: &str) -> Request {
    Request::new(method).with("uri", &json::quoted(uri))
}
