//! Every request but `tools/call` and `initialize`: from its method to its answer, for both eras. Knows no transport;
//! what the methods do is in their own modules.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::face::Face;
use super::going::{Answering, Finished, ProgressTo};
use super::id::Id;
use super::meta::{Meta, Params};
use super::offering::{Kind, Offering};
use super::reject::{RpcError, require};
use super::session::Session;
use super::task;
use super::wishes::Wishes;
use crate::engine::client::ClientContext;
use crate::model::principal::{Principal, Scope};
use crate::model::revision::{Era, Revision};

/// Who asks.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Who.
    pub principal: Principal,
    /// The revision of the request.
    pub revision: Revision,
    /// What an upstream may need to know of the client.
    pub client: Arc<ClientContext>,
    /// What a legacy session or connection has asked to hear; a modern client asks on each request.
    pub wishes: Option<Arc<Wishes>>,
    /// The session, if it is one that is kept.
    pub session: Option<Arc<Session>>,
    /// Ends when the client takes the request back.
    pub withdrawn: CancellationToken,
}

impl Asker {
    /// The era of the request.
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// True when the credential may have something done at an upstream.
    pub(super) fn may_call(&self) -> Result<(), RpcError> {
        require(&self.principal, Scope::Call)
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// Its id.
    pub id: &'r Id<'r>,
    /// Its method.
    pub method: &'r str,
    /// Its parameters, split.
    pub params: &'r Params<'r>,
    /// Its parameters, as written.
    pub raw: Option<&'r RawValue>,
    /// Their `_meta`.
    pub meta: &'r Meta<'r>,
}

impl Request<'_> {
    /// The parameters as an object.
    pub(super) fn text(&self) -> &str {
        self.raw.map_or("{}", RawValue::get)
    }

    /// Where progress goes, if it was asked for.
    pub(super) fn progress(&self, revision: Revision) -> Option<ProgressTo> {
        let token = self.meta.progress_token.clone()?.into_owned();
        Some(ProgressTo { token, with_message: revision.facts().progress_message })
    }
}

impl Face {
    /// Answers a request.
    pub async fn request(self: &Arc<Self>, request: Request<'_>, asker: &Asker) -> Answering {
        let namespace = &asker.principal.namespace;
        match (asker.era(), request.method) {
            (era, "resources/list") => self.list(Kind::Resources, era, (request.params, namespace)).await.into(),
            (era, "resources/templates/list") => {
                self.list(Kind::Templates, era, (request.params, namespace)).await.into()
            }
            (era, "prompts/list") => self.list(Kind::Prompts, era, (request.params, namespace)).await.into(),
            (_, "resources/read") => self.read_resource(request, asker).await,
            (_, "prompts/get") => self.get_prompt(request, asker).await,
            (_, "completion/complete") => self.complete(request, asker).await,
            (Era::Legacy, "resources/subscribe") => self.subscribe_legacy(request, asker).await,
            (Era::Legacy, "resources/unsubscribe") => self.unsubscribe_legacy(request, asker).await.into(),
            (Era::Legacy, "logging/setLevel") => self.set_level(request, asker).await.into(),
            (Era::Modern, "subscriptions/listen") => self.listen(request, asker).await,
            (Era::Modern, "tasks/get" | "tasks/update" | "tasks/cancel") => {
                Finished::from(self.extension_task(request, asker).await).into()
            }
            (Era::Legacy, "tasks/get" | "tasks/cancel" | "tasks/list")
                if task::experimental::is_offered(request.method, asker) =>
            {
                Finished::from(self.experimental_task(request, asker).await).into()
            }
            (Era::Modern, method) => Finished::from(self.modern_method(method, request.params, namespace).await).into(),
            (Era::Legacy, method) => {
                let whose = (asker.revision, namespace.as_str());
                Finished::from(self.legacy_method(method, request.params, whose).await).into()
            }
        }
    }

    /// What a namespace sees besides tools, once something was heard of every upstream or the patience is spent.
    pub async fn offering(&self, namespace: &str) -> Arc<Offering> {
        let listing = self.listing().await;
        self.offerings.of(&listing, &self.settings.exposure, namespace)
    }

    /// What a namespace sees besides tools now.
    pub fn offering_now(&self, namespace: &str) -> Arc<Offering> {
        self.offerings.of(&self.engine.catalog().listing(), &self.settings.exposure, namespace)
    }
}
