//! Arrays of messages, as revisions up to 2025-03-26 allowed them. Admits none of later revisions.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::super::admit::{self, Body as Params};
use super::super::envelope::Message;
use super::super::requests::Request;
use super::super::session::Session;
use super::super::{answer, frame, input, method, stream};
use super::exchange::Occupied;
use super::post::Post;
use super::reply::json;
use crate::model::revision::Era;
use crate::telemetry::here;

impl Post<'_> {
    /// An array of messages (up to 2025-03-26): answered as one array, in the order of the requests.
    pub(super) async fn batch(self, items: &[&RawValue], session: Arc<Session>) -> Response {
        here::note("durable_mcp.batch", items.len() as i64);
        let answers = items.iter().map(|item| here::within(here::part(), self.batch_item(item, &session)));
        let answers: Vec<String> = futures_util::future::join_all(answers).await.into_iter().flatten().collect();
        if answers.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        json(200, format!("[{}]", answers.join(",")))
    }

    async fn batch_item(&self, item: &RawValue, session: &Arc<Session>) -> Option<String> {
        let mut out = String::new();
        let admitted = match admit::batch_element(item, session.revision) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                frame::error(&mut out, refusal.id.as_ref(), &refusal.rejection.error);
                return Some(out);
            }
        };
        admit::told_of(&admitted.message, &admitted.body);
        match (&admitted.message, &admitted.body) {
            (Message::Request { id, .. }, Params::Call(call)) => {
                let name = session.client_name.clone().unwrap_or_default();
                let caller = self.caller(name, Era::Legacy, method::unasked(&session.context()));
                let Some(place) = session.in_flight.enter(id, self.face.settings.in_flight_max) else {
                    let error = answer::overload("too many calls are in flight in this session".into());
                    frame::error(&mut out, Some(id), &error);
                    return Some(out);
                };
                let place = Occupied::new(session.clone(), place);
                let begun = self.face.call(call, &caller, Some(place.flight())).await;
                let answered = stream::end_of(begun).await;
                answered.reply.write(&mut out, id);
                answered.written();
            }
            (Message::Request { id, method, params: raw }, Params::Other { params, meta }) => {
                let asker = session.asker(self.principal.clone(), CancellationToken::new());
                let request = Request { id, method, params, raw: *raw, meta };
                self.face.request(request, &asker).await.end().await.write(&mut out, id);
            }
            (Message::Notification { method, .. }, Params::Other { params, .. }) => {
                method::notified(&session.in_flight, method, params);
                return None;
            }
            (Message::Response { id, outcome }, _) => {
                if let Some(told) = input::told(id.as_ref(), outcome) {
                    self.face.told_by_client(told, &self.principal).await;
                }
                return None;
            }
            _ => return None,
        }
        Some(out)
    }
}
