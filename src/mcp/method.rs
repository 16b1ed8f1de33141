//! What `initialize` says, the methods that ask no upstream, and notifications of clients. The others are in `requests`;
//! sessions and transports are elsewhere.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::face::Face;
use super::id::Id;
use super::meta::{Meta, Params};
use super::reject::{RpcError, Source, code};
use super::session::{InFlight, is_timeout_reason};
use crate::engine::client::ClientContext;
use crate::model::payload::Payload;
use crate::model::revision::Revision;

/// A result as JSON text, or an error and where it came to be.
pub type Answer = Result<Arc<str>, (Source, RpcError)>;

/// What `initialize` says of the client.
#[derive(Debug)]
pub struct Hello {
    /// What was negotiated.
    pub revision: Revision,
    /// `clientInfo.name`.
    pub client_name: Option<String>,
    /// `clientInfo`, as the client wrote it.
    pub client_info: Option<Payload>,
    /// `capabilities`, as the client wrote them.
    pub capabilities: Option<Payload>,
}

impl Hello {
    /// Reads the parameters of `initialize`. Errors: no `protocolVersion`, or not a string.
    pub fn read(params: &Params<'_>) -> Result<Hello, RpcError> {
        let Some(requested) = params.text("protocolVersion") else {
            return Err(RpcError::new(code::INVALID_PARAMS, "initialize needs protocolVersion, a string"));
        };
        let client_name = params.get("clientInfo").and_then(client_name);
        let kept = |name: &str| params.get(name).filter(|raw| raw.get().starts_with('{')).map(|raw| raw.get().into());
        Ok(Hello {
            revision: Revision::negotiate(&requested),
            client_name,
            client_info: kept("clientInfo"),
            capabilities: kept("capabilities"),
        })
    }
}

/// The name in a `clientInfo` object.
pub fn client_name(info: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Info<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    serde_json::from_str::<Info<'_>>(info.get()).ok().map(|info| info.name.chars().take(128).collect())
}

/// The client of a request of 2026-07-28, as it describes itself in each. `connection` is the fixed id of a pipe.
pub fn modern_client(meta: &Meta<'_>, connection: Option<&str>) -> Arc<ClientContext> {
    let protocol = &meta.protocol;
    Arc::new(ClientContext {
        revision: protocol.version.as_deref().map(str::to_owned),
        session: connection.map(str::to_owned),
        capabilities: protocol.client_capabilities.map(ToOwned::to_owned),
        log_level: protocol.log_level.as_deref().map(str::to_owned),
    })
}

/// The same client, where it cannot be asked: in a batch, whose answer is one array.
pub fn unasked(client: &ClientContext) -> Arc<ClientContext> {
    Arc::new(ClientContext { capabilities: None, ..client.clone() })
}

impl Face {
    /// A request of 2026-07-28.
    pub async fn modern_method(&self, method: &str, params: &Params<'_>, namespace: &str) -> Answer {
        match method {
            "server/discover" => Ok(self.discover_result(namespace).await.into()),
            "tools/list" => self.list_tools(Revision::V2026_07_28, params, namespace).await,
            _ => Err(unknown_method(method)),
        }
    }

    /// A request in a legacy session or connection, `initialize` apart.
    pub async fn legacy_method(
        &self,
        method: &str,
        params: &Params<'_>,
        (revision, namespace): (Revision, &str),
    ) -> Answer {
        match method {
            "ping" => Ok("{}".into()),
            "tools/list" => self.list_tools(revision, params, namespace).await,
            _ => Err(unknown_method(method)),
        }
    }

    async fn list_tools(&self, revision: Revision, params: &Params<'_>, namespace: &str) -> Answer {
        let cursor = cursor_of(params)?;
        let page = self.tools_list(revision, namespace, cursor.as_deref()).await;
        page.map_err(|bad| (Source::Handler, bad.rpc_error()))
    }
}

/// The cursor of a list request. Errors: it is no string.
pub(super) fn cursor_of<'a>(params: &Params<'a>) -> Result<Option<Cow<'a, str>>, (Source, RpcError)> {
    match (params.get("cursor"), params.text("cursor")) {
        (None, _) => Ok(None),
        (_, Some(cursor)) => Ok(Some(cursor)),
        (Some(_), None) => {
            let error = RpcError::new(code::INVALID_PARAMS, "the cursor must be a string");
            Err((Source::Handler, error))
        }
    }
}

/// A notification of a legacy client, or of any client over stdio.
pub fn notified(in_flight: &InFlight, method: &str, params: &Params<'_>) {
    if method != "notifications/cancelled" {
        return;
    }
    let Some(Ok(id)) = params.get("requestId").map(Id::parse) else { return };
    let timed_out = params.text("reason").is_some_and(|reason| is_timeout_reason(&reason));
    in_flight.withdraw(&id, timed_out);
}

fn unknown_method(method: &str) -> (Source, RpcError) {
    let shown: String = method.chars().take(80).collect();
    (Source::Envelope, RpcError::new(code::METHOD_NOT_FOUND, format!("unknown method: {shown}")))
}
