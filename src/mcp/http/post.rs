//! POST: one message, or an old batch. Leaves the writing of answers to its neighbours.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;

use super::super::admit::{self, Admitted, Body as Params, Entered};
use super::super::call::Caller;
use super::super::call_params::CallParams;
use super::super::envelope::Message;
use super::super::era::{self, Ruling};
use super::super::face::Face;
use super::super::id::Id;
use super::super::reject::Source;
use super::super::requests::{Asker, Request};
use super::super::{answer, headers, input, method, param_headers};
use super::body::{check_media_types, read};
use super::exchange::{Exchange, Occupied};
use super::going;
use super::reply::{respond, rpc};
use super::sessions::session_of;
use crate::engine::client::ClientContext;
use crate::model::principal::Principal;
use crate::model::revision::{Era, Revision};

/// Takes in a POST.
pub(super) async fn post(face: Arc<Face>, principal: Principal, headers: &HeaderMap, body: Body) -> Response {
    if let Err(refusal) = check_media_types(headers) {
        return *refusal;
    }
    let bytes = match read(body, &face.settings).await {
        Ok(bytes) => bytes,
        Err(refusal) => return *refusal,
    };
    let entered = match admit::http(&bytes, &face.settings.envelope, headers) {
        Ok(entered) => entered,
        Err(refusal) => return rpc(refusal.rejection.status, refusal.id.as_ref(), &refusal.rejection.error),
    };
    match entered {
        Entered::One(admitted) => {
            let Admitted { message, ruling, body } = *admitted;
            admit::told_of(&message, &body);
            let post = Post { face, principal, headers };
            match ruling {
                Ruling::Modern { revision } => post.modern(message, body, revision).await,
                Ruling::Legacy { opens: true, .. } => Box::pin(post.open(message, body)).await,
                Ruling::Legacy { .. } => Box::pin(post.legacy(message, body)).await,
            }
        }
        Entered::Batch(items) => {
            let session = match session_of(&face, &principal, headers).await {
                Ok(session) => session,
                Err(refusal) => return *refusal,
            };
            if let Err(rejection) = era::decide_batch(Some(session.revision)) {
                return rpc(rejection.status, None, &rejection.error);
            }
            let post = Post { face, principal, headers };
            Box::pin(post.batch(&items, session)).await
        }
    }
}

/// A POST whose message was admitted.
pub(super) struct Post<'h> {
    /// The protocol face.
    pub face: Arc<Face>,
    /// Who sent it.
    pub principal: Principal,
    /// Its headers.
    pub headers: &'h HeaderMap,
}

impl Post<'_> {
    async fn modern(self, message: Message<'_>, body: Params<'_>, revision: Revision) -> Response {
        let Message::Request { id, method, .. } = &message else {
            return StatusCode::ACCEPTED.into_response();
        };
        match body {
            Params::Call(call) => {
                if let Err(mismatch) = self.check_param_headers(&call).await {
                    return respond(Era::Modern, id, Err((Source::Envelope, mismatch.rpc_error())));
                }
                let name = call.meta.protocol.client_info.and_then(method::client_name).unwrap_or_default();
                let caller = self.caller(name, Era::Modern, method::modern_client(&call.meta, None));
                let token = call.meta.progress_token.clone().map(Id::into_owned);
                let begun = self.face.call(&call, &caller, None).await;
                self.answer_call(id, begun, Exchange { era: Era::Modern, revision, token, session: None, _place: None })
                    .await
            }
            Params::Other { params, meta } => {
                let asker = Asker {
                    principal: self.principal.clone(),
                    revision,
                    client: method::modern_client(&meta, None),
                    wishes: None,
                    session: None,
                    withdrawn: CancellationToken::new(),
                };
                let raw = message.params();
                let request = Request { id, method, params: &params, raw, meta: &meta };
                let answering = Box::pin(self.face.request(request, &asker)).await;
                Box::pin(going::answer(&self.face, id, answering, (Era::Modern, None))).await
            }
        }
    }

    async fn legacy(self, message: Message<'_>, body: Params<'_>) -> Response {
        let session = match session_of(&self.face, &self.principal, self.headers).await {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        match (&message, body) {
            (Message::Request { id, .. }, Params::Call(call)) => {
                let Some(place) = session.in_flight.enter(id, self.face.settings.in_flight_max) else {
                    let error = answer::overload("too many calls are in flight in this session".into());
                    return respond(Era::Legacy, id, Err((Source::Handler, error)));
                };
                let place = Occupied::new(session.clone(), place);
                let name = session.client_name.clone().unwrap_or_default();
                let caller = self.caller(name, Era::Legacy, session.context());
                let token = call.meta.progress_token.clone().map(Id::into_owned);
                let begun = self.face.call(&call, &caller, Some(place.flight())).await;
                let exchange = Exchange {
                    era: Era::Legacy,
                    revision: session.revision,
                    token,
                    session: Some(session),
                    _place: Some(place),
                };
                self.answer_call(id, begun, exchange).await
            }
            (Message::Request { id, method, .. }, Params::Other { params, .. })
                if *method == "tasks/result" && session.revision == Revision::V2025_11_25 =>
            {
                let Some(place) = session.in_flight.enter(id, self.face.settings.in_flight_max) else {
                    let error = answer::overload("too many calls are in flight in this session".into());
                    return respond(Era::Legacy, id, Err((Source::Handler, error)));
                };
                let place = Occupied::new(session.clone(), place);
                let revision = session.revision;
                let name = session.client_name.clone().unwrap_or_default();
                let caller = self.caller(name, Era::Legacy, session.context());
                let begun = self.face.task_result(&params, &caller, Some(place.flight())).await;
                let exchange =
                    Exchange { era: Era::Legacy, revision, token: None, session: Some(session), _place: Some(place) };
                self.answer_call(id, begun, exchange).await
            }
            (Message::Request { id, method, params: raw }, Params::Other { params, meta }) => {
                let Some(place) = session.in_flight.enter(id, self.face.settings.in_flight_max) else {
                    let error = answer::overload("too many calls are in flight in this session".into());
                    return respond(Era::Legacy, id, Err((Source::Handler, error)));
                };
                let place = Occupied::new(session.clone(), place);
                let asker = session.asker(self.principal, place.flight().withdrawn.clone());
                let request = Request { id, method, params: &params, raw: *raw, meta: &meta };
                let answering = self.face.request(request, &asker).await;
                going::answer(&self.face, id, answering, (Era::Legacy, Some(place))).await
            }
            (Message::Notification { method, .. }, Params::Other { params, .. }) => {
                method::notified(&session.in_flight, method, &params);
                StatusCode::ACCEPTED.into_response()
            }
            (Message::Response { id, outcome }, _) => {
                if let Some(told) = input::told(id.as_ref(), outcome) {
                    self.face.told_by_client(told, &self.principal).await;
                }
                StatusCode::ACCEPTED.into_response()
            }
            _ => StatusCode::ACCEPTED.into_response(),
        }
    }

    /// Compares the arguments with the headers that repeat them. An unknown tool has none.
    async fn check_param_headers(&self, call: &CallParams<'_>) -> Result<(), param_headers::Mismatch> {
        let Some(tool) = self.face.tool(&call.name, &self.principal.namespace).await else { return Ok(()) };
        param_headers::check(self.headers, &tool.definition, call.arguments)
    }

    pub(super) fn caller(&self, name: String, era: Era, client: Arc<ClientContext>) -> Caller {
        Caller {
            principal: self.principal.clone(),
            name,
            era,
            client,
            key_headers: self
                .headers
                .get_all(headers::IDEMPOTENCY_KEY)
                .iter()
                .map(|value| value.as_bytes().to_vec())
                .collect(),
            trace: headers::trace(self.headers),
        }
    }
}
