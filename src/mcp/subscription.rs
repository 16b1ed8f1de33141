//! One client's subscription to one resource: made at the resource's upstream, taken back when it is dropped. The
//! upstream's side counts who else has it.

use std::sync::Arc;

use serde_json::json;

use crate::engine::Engine;
use crate::engine::forward::Forward;

/// A subscription that holds until it is dropped.
pub struct Subscription {
    engine: Arc<Engine>,
    /// The request that takes it back.
    back: Option<Forward>,
    /// Whose resource.
    upstream: String,
}

impl Subscription {
    /// What `subscribe` made at its upstream.
    pub fn made(engine: Arc<Engine>, uri: &str, subscribe: &Forward) -> Subscription {
        let back = Forward {
            method: "resources/unsubscribe".to_owned(),
            params: Some(json!({ "uri": uri }).to_string().into()),
            ..subscribe.clone()
        };
        Subscription { engine, upstream: subscribe.upstream.clone(), back: Some(back) }
    }

    /// Whose resource it is.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(back) = self.back.take() else { return };
        let engine = self.engine.clone();
        self.engine.spawn(async move {
            let upstream = back.upstream.clone();
            let ended = tokio::select! {
                ended = engine.forward(back, &|_| ()) => ended,
                () = engine.stopping().cancelled() => return,
            };
            if let Err(error) = ended {
                tracing::debug!(upstream, code = error.code(), "a subscription was not taken back: {error}");
            }
        });
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

/// True when a change of `changed` is what a subscriber of `subscribed` wants to hear: it may be a part of it
/// (2025-11-25, resources, subscriptions).
pub fn covers(subscribed: &str, changed: &str) -> bool {
    match changed.strip_prefix(subscribed) {
        Some("") => true,
        Some(part) => subscribed.ends_with('/') || part.starts_with(['/', '#', '?']),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_subscription_covers_the_resource_and_its_parts() {
        assert!(covers("file:///a", "file:///a"));
        assert!(covers("file:///a", "file:///a/b") && covers("file:///a/", "file:///a/b"));
        assert!(covers("db://t", "db://t#row"));
        assert!(!covers("file:///a", "file:///ab"));
        assert!(!covers("file:///a/b", "file:///a"));
    }
}
