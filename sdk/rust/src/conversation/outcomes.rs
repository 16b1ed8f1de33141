//! What came of calls: results in batches, everything else by itself, each until the server takes or refuses it; steps.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Conversation, REQUEST_TIMEOUT, lease};
use crate::context::lock;
use crate::failure::{Cancelled, Failure};
use crate::held::{Held, Job, Report};
use crate::link::LinkError;
use crate::results::{failure, quoted};

/// A batch of results: so many, or so many bytes, whichever is first.
const BATCH_RESULTS: usize = 64;
const BATCH_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
struct Completed {
    results: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    detail: String,
}

#[derive(Deserialize)]
struct Step {
    result: Box<RawValue>,
}

impl Conversation {
    pub(super) async fn outbox_loop(&self) {
        loop {
            let (batch, others) = self.next_batch();
            if batch.is_empty() && others.is_empty() {
                self.mail.notified().await;
                continue;
            }
            self.sending.set(batch.len() + others.len());
            let others = async {
                for call in &others {
                    self.send_other(call).await;
                }
            };
            tokio::join!(self.complete(&batch), others);
            self.sending.set(0);
            self.fewer.notify_one();
            self.room.notify_one();
        }
    }

    /// Results that go together, and what else is to be told on the way.
    fn next_batch(&self) -> (Vec<Arc<Held>>, Vec<Arc<Held>>) {
        let (mut batch, mut others, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut outbox = self.outbox.borrow_mut();
        while let Some(call) = outbox.front().filter(|_| batch.len() < BATCH_RESULTS) {
            let length = match &*lock(&call.report) {
                Some(Report::Complete(text)) => Some(text.len()),
                _ => None,
            };
            if length.is_some_and(|length| !batch.is_empty() && bytes + length > BATCH_BYTES) {
                break;
            }
            bytes += length.unwrap_or_default();
            let Some(call) = outbox.pop_front() else { break };
            if length.is_some() { &mut batch } else { &mut others }.push(call);
        }
        (batch, others)
    }

    async fn complete(&self, batch: &[Arc<Held>]) {
        if batch.is_empty() {
            return;
        }
        match self.ask::<Completed>("complete", self.completion(batch), REQUEST_TIMEOUT).await {
            Ok(completed) => {
                for (call, answer) in batch.iter().zip(completed.results) {
                    match answer.status.as_str() {
                        "refused" => self.refused(call, &format!("{}: {}", answer.code, answer.detail)),
                        _ => self.let_go(call),
                    }
                }
            }
            // One of them spoils it for the others.
            Err(_) if batch.len() > 1 => {
                for call in batch {
                    Box::pin(self.complete(std::slice::from_ref(call))).await;
                }
            }
            Err(LinkError::Refused { status: 400 | 413, detail, .. }) => {
                *lock(&batch[0].report) = Some(Report::Fail(failure("result_refused", &detail, false)));
                self.send_other(&batch[0]).await;
            }
            Err(error) => self.refused(&batch[0], &error.to_string()),
        }
    }

    fn completion(&self, batch: &[Arc<Held>]) -> String {
        let results: Vec<String> = batch
            .iter()
            .filter_map(|call| match &*lock(&call.report) {
                Some(Report::Complete(text)) => Some(format!("{{{},\"result\":{text}}}", lease(call))),
                _ => None,
            })
            .collect();
        format!("{{{},\"results\":[{}]}}", self.who(), results.join(","))
    }

    async fn send_other(&self, call: &Arc<Held>) {
        let (route, members) = match lock(&call.report).clone() {
            Some(Report::Fail(members)) => ("fail", format!(",{members}")),
            _ => ("release", String::new()),
        };
        // The next attempt shall find it.
        if route == "fail"
            && lock(&call.news).checkpoint.is_some()
            && let Err(error) = self.heartbeat(std::slice::from_ref(call), REQUEST_TIMEOUT).await
        {
            tracing::warn!("execution {}: the last checkpoint was not stored: {error}", call.job.execution_id);
        }
        let body = format!("{{{},{}{members}}}", self.who(), lease(call));
        match self.ask::<IgnoredAny>(route, body, REQUEST_TIMEOUT).await {
            Ok(_) => self.let_go(call),
            Err(error) => self.refused(call, &error.to_string()),
        }
    }

    fn refused(&self, call: &Held, why: &str) {
        let Job { execution_id, attempt, .. } = &call.job;
        tracing::warn!("execution {execution_id}: the server refuses what came of attempt {attempt}: {why}");
        self.let_go(call);
    }

    pub(super) async fn store_step(
        &self,
        call: &Held,
        name: &str,
        result: &RawValue,
    ) -> Result<Box<RawValue>, Failure> {
        let body = format!("{{{},{},\"name\":{},\"result\":{result}}}", self.who(), lease(call), quoted(name));
        match self.ask::<Step>("step", body, REQUEST_TIMEOUT).await {
            Ok(step) => Ok(step.result),
            Err(LinkError::Refused { status: 400, detail, .. }) => {
                Err(Failure::new("invalid_step", format!("step {name:?}: {detail}")))
            }
            Err(_) => {
                self.lose(call.token(), "lost");
                Err(Cancelled.into())
            }
        }
    }
}
