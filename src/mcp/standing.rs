//! What a legacy client asks for once and hears from then on: `logging/setLevel`, `resources/subscribe` and
//! `resources/unsubscribe`. The wish is the session's; the upstreams are told as well. Delivers nothing.

use std::sync::Arc;
use std::time::Duration;

use super::answer;
use super::bridge::{self, Bridge};
use super::face::Face;
use super::forwards::{missing, resource_not_found, unreachable};
use super::going::{Answering, Finished, Going};
use super::log_level::LogLevel;
use super::reject::{RpcError, Source, code};
use super::requests::{Asker, Request};
use super::session::Session;
use super::subscription::Subscription;
use crate::engine::client::ClientContext;
use crate::engine::forward::{Forward, Forwarded};
use crate::store::{Payload, SessionChanged};

/// How long `logging/setLevel` waits for upstreams; slower ones learn the level a moment later.
const LEVEL_PATIENCE: Duration = Duration::from_secs(5);

impl Face {
    /// `logging/setLevel`: the session's from here on, and its upstreams' as well.
    pub(super) async fn set_level(self: &Arc<Self>, request: Request<'_>, asker: &Asker) -> Finished {
        let Some(level) = request.params.text("level").as_deref().and_then(LogLevel::find) else {
            let names: Vec<&str> = LogLevel::ALL.iter().map(|level| level.as_str()).collect();
            let words = format!("params.level must be one of {}", names.join(", "));
            return Finished::error(RpcError::new(code::INVALID_PARAMS, words));
        };
        if let Some(session) = &asker.session
            && let Err(error) = self.set_log_level(session, level.as_str()).await
        {
            return Finished::error(answer::refused(&error));
        }
        if let Some(wishes) = &asker.wishes {
            wishes.set_level(level);
        }
        let client = ClientContext { log_level: Some(level.as_str().to_owned()), ..(*asker.client).clone() };
        let asker = Asker { client: Arc::new(client), ..asker.clone() };
        let offering = self.offering_now(&asker.principal.namespace);
        let params: Payload = request.text().into();
        let sources = offering.sources.iter().filter(|source| source.declared.logging);
        let forwards: Vec<_> =
            sources.map(|source| asker.forward(&source.name, request.method, params.clone())).collect();
        let engine = self.engine.clone();
        let told = tokio::spawn(async move {
            let told = forwards.into_iter().map(|forward| {
                let engine = &engine;
                async move {
                    let upstream = forward.upstream.clone();
                    match engine.forward(forward, &|_| ()).await {
                        Ok(Forwarded::Result(_)) => {}
                        Ok(Forwarded::Error(error)) => tracing::debug!(upstream, "it refused a log level: {error}"),
                        Err(error) => tracing::debug!(upstream, code = error.code(), "a log level: {error}"),
                    }
                }
            });
            futures_util::future::join_all(told).await;
        });
        // The level holds here either way; who was not told by then is told later.
        let _ = tokio::time::timeout(LEVEL_PATIENCE, told).await;
        Finished::result("{}")
    }

    /// `resources/subscribe`.
    pub(super) async fn subscribe_legacy(self: &Arc<Self>, request: Request<'_>, asker: &Asker) -> Answering {
        let Some(uri) = request.params.text("uri").map(|uri| uri.into_owned()) else { return missing("params.uri") };
        let Some(wishes) = asker.wishes.clone() else {
            return Finished::error(RpcError::new(code::INVALID_REQUEST, "there is no session to subscribe in")).into();
        };
        if let Err(error) = asker.may_call() {
            return Finished::error(error).into();
        }
        if wishes.has(&uri) {
            return Finished::result("{}").into();
        }
        if wishes.count() >= self.engine.settings().sessions.subscriptions_max {
            return Finished::error(too_many()).into();
        }
        let params: Payload = request.text().into();
        let (face, asker) = (self.clone(), asker.clone());
        Answering::Going(Going::begin(asker.withdrawn.clone(), false, |_| async move {
            let _expected = wishes.expect(&uri);
            let (subscription, finished) = match face.subscribed(&uri, params, &asker).await {
                Ok(made) => made,
                Err(finished) => return Some(finished),
            };
            if let Some(session) = &asker.session {
                match face.subscribe(session, &uri).await {
                    Ok(SessionChanged::Full) => return Some(Finished::error(too_many())),
                    Ok(SessionChanged::Done | SessionChanged::Missing) => {}
                    Err(error) => return Some(Finished::error(answer::refused(&error))),
                }
            }
            wishes.keep(uri, subscription);
            Some(finished)
        }))
    }

    /// `resources/unsubscribe`.
    pub(super) async fn unsubscribe_legacy(&self, request: Request<'_>, asker: &Asker) -> Finished {
        let Some(uri) = request.params.text("uri") else {
            return Finished::error(RpcError::new(code::INVALID_PARAMS, "params.uri is missing"));
        };
        if let Some(session) = &asker.session
            && let Err(error) = self.unsubscribe(session, &uri).await
        {
            return Finished::error(answer::refused(&error));
        }
        if let Some(wishes) = &asker.wishes {
            drop(wishes.give_up(&uri));
        }
        Finished::result("{}")
    }

    /// Subscribes at whoever may have the resource.
    ///
    /// # Errors
    /// What to answer instead.
    pub(super) async fn subscribed(
        &self,
        uri: &str,
        params: Payload,
        asker: &Asker,
    ) -> Result<(Subscription, Finished), Finished> {
        let offering = self.offering(&asker.principal.namespace).await;
        let owners = offering.owners_of(uri).into_iter().filter(|source| source.declared.subscribe);
        let mut refused = None;
        for source in owners {
            let forward: Forward = asker.forward(&source.name, "resources/subscribe", params.clone());
            let bridge = Bridge { method: "resources/subscribe", upstream: source.era, client: asker.era() };
            match self.engine.forward(forward.clone(), &|_| ()).await {
                Ok(Forwarded::Result(result)) => {
                    let made = Subscription::made(self.engine.clone(), uri, &forward);
                    let reply = bridge::result(&result, bridge);
                    return Ok((made, Finished { reply, source: Source::Handler }));
                }
                Ok(Forwarded::Error(error)) => {
                    let finished = Finished { reply: bridge::error(&error, bridge), source: Source::Handler };
                    if !bridge::is_not_found(&error) {
                        return Err(finished);
                    }
                    refused.get_or_insert(finished);
                }
                Err(error) => {
                    refused.get_or_insert(Finished::error(unreachable(&source.name, &error)));
                }
            }
        }
        Err(refused.unwrap_or_else(|| Finished::error(resource_not_found(uri, asker.era()))))
    }

    /// Makes the subscriptions of a session anew that another process, or an earlier life of this one, had made for it.
    /// Resources that cannot be subscribed to again are left out and logged.
    pub async fn restore_subscriptions(&self, session: &Arc<Session>) {
        let stored = session.subscriptions();
        for uri in session.wishes.uris() {
            if !stored.contains(&uri) {
                drop(session.wishes.give_up(&uri));
            }
        }
        let asker = session.asker(session.principal.clone(), session.closed.clone());
        for uri in stored.iter().filter(|uri| !session.wishes.has(uri)) {
            let params = serde_json::json!({ "uri": uri }).to_string().into();
            let _expected = session.wishes.expect(uri);
            match self.subscribed(uri, params, &asker).await {
                Ok((subscription, _)) => session.wishes.keep(uri.clone(), subscription),
                Err(_) => tracing::warn!(uri, session = %session.key, "a subscription could not be made again"),
            }
        }
    }
}

fn too_many() -> RpcError {
    answer::overload("this session has too many subscriptions; end some of them first".into())
}
