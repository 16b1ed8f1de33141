//! Arrays of messages, as revisions up to 2025-03-26 allowed them: answered as one array, in the order of the requests.

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::super::admit::{self, Body};
use super::super::envelope::Message;
use super::super::requests::Request;
use super::super::stream::end_of;
use super::super::{frame, input, method};
use super::Connection;
use super::opening::Opened;
use crate::model::revision::{Era, Revision};
use crate::telemetry::here;

impl Connection {
    pub(super) async fn batch(&self, items: Vec<String>, revision: Revision) {
        let opened = self.opened();
        here::note("durable_mcp.batch", items.len() as i64);
        let answers = items.iter().map(|item| here::within(here::part(), self.batch_item(item, revision, &opened)));
        let answers: Vec<String> = futures_util::future::join_all(answers).await.into_iter().flatten().collect();
        if !answers.is_empty() {
            self.send(&format!("[{}]", answers.join(",")), None).await;
        }
    }

    async fn batch_item(&self, item: &str, revision: Revision, opened: &Opened) -> Option<String> {
        let raw: &RawValue = serde_json::from_str(item).ok()?;
        let mut out = String::new();
        let admitted = match admit::batch_element(raw, revision) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                frame::error(&mut out, refusal.id.as_ref(), &refusal.rejection.error);
                return Some(out);
            }
        };
        admit::told_of(&admitted.message, &admitted.body);
        match (&admitted.message, &admitted.body) {
            (Message::Request { id, .. }, Body::Call(call)) => {
                let name = opened.client_name.clone().unwrap_or_default();
                let caller = self.caller(name, Era::Legacy, method::unasked(&self.legacy_client(opened)));
                let answered = end_of(self.face.call(call, &caller, None).await).await;
                answered.reply.write(&mut out, id);
                answered.written();
                Some(out)
            }
            (Message::Request { id, method, params: raw }, Body::Other { params, meta }) => {
                let asker = self.asker(opened, (revision, meta), CancellationToken::new());
                let request = Request { id, method, params, raw: *raw, meta };
                self.face.request(request, &asker).await.end().await.write(&mut out, id);
                Some(out)
            }
            (Message::Notification { method, .. }, Body::Other { params, .. }) => {
                method::notified(&self.in_flight, method, params);
                None
            }
            (Message::Response { id, outcome }, _) => {
                if let Some(told) = input::told(id.as_ref(), outcome) {
                    self.face.told_by_client(told, &self.principal).await;
                }
                None
            }
            _ => None,
        }
    }
}
