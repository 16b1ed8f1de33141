//! What became of an execution as spans, made from its log once it has settled, by the process that settled it: the
//! execution itself and what happened under each lease, whoever held it. A process that was killed made no span; the log
//! knows what it did. Also the parts of a trace that go with a call: its stored context, and the one its tool is given.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;
use tokio::sync::mpsc;

use super::Engine;
use super::client::string_member;
use crate::model::event::{Event, EventRecord};
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::model::json::{members, quoted};
use crate::store::{self, Payload, PayloadKind};
use crate::telemetry::{Made, Place};

/// The member of a call's stored `_meta` that names the request's own span, where its client named none. Like every
/// member with our prefix it goes to no tool.
pub const MEMBER: &str = "durable-mcp/traceparent";

/// Settled executions whose spans are not made yet; beyond it they get none.
const WAITING_MAX: usize = 1_024;
/// Events of an execution that become spans.
const EVENTS_MAX: usize = 1_000;
/// How long closing waits for spans that are not made yet.
pub(super) const MADE_WITHIN: Duration = Duration::from_secs(1);

/// The span of the caller that a stored `_meta` names: the client's, else that of the request here.
pub fn caller(meta: Option<&str>) -> Option<Place> {
    let meta = meta?;
    let member = |name| string_member(meta, name).and_then(|text| Place::parse(&text));
    member("traceparent").or_else(|| member(MEMBER))
}

/// `meta` with `place` as the trace context of whoever gets it.
pub fn meta_at(meta: Option<&str>, place: Place) -> Payload {
    let kept = members(meta.unwrap_or("{}")).unwrap_or_default();
    let kept = kept.into_iter().filter(|(name, _)| name != "traceparent" && name != MEMBER);
    let mut out: Vec<String> = kept.map(|(name, value)| format!("{}:{}", quoted(&name), value.get())).collect();
    out.push(format!("\"traceparent\":{}", quoted(&place.traceparent())));
    format!("{{{}}}", out.join(",")).into()
}

impl Engine {
    /// The place of what happens under a lease; absent where no spans are made, or those of this trace are not recorded.
    pub fn place_of_lease(&self, id: ExecutionId, fencing_token: i64, meta: Option<&str>) -> Option<Place> {
        if !self.settings.traces.is_on() {
            return None;
        }
        let place = self.settings.traces.of_execution(id, caller(meta)).of_lease(id, fencing_token);
        place.sampled.then_some(place)
    }

    /// Makes the spans of executions that settle here, until the engine stops.
    pub(super) fn make_spans(self: &Arc<Self>) {
        if !self.settings.traces.is_on() {
            return;
        }
        let (sender, mut settled) = mpsc::channel(WAITING_MAX);
        self.meter.tell_settled(sender);
        let engine = self.clone();
        self.spawn(async move {
            let stop = engine.stop.clone();
            loop {
                let next = tokio::select! {
                    biased;
                    next = settled.recv() => next,
                    () = stop.cancelled() => return,
                };
                let Some(Settled { id, again }) = next else { return };
                if let Err(error) = engine.spans_of(id, again).await {
                    tracing::debug!(execution = %id, code = error.code(), "its spans could not be made: {error}");
                }
                engine.meter.made_spans();
            }
        });
    }

    async fn spans_of(&self, id: ExecutionId, again: bool) -> store::Result<()> {
        let meta = self.store.payload(id, PayloadKind::Meta).await?;
        let caller = caller(meta.as_deref());
        let place = self.settings.traces.of_execution(id, caller);
        if !place.sampled {
            return Ok(());
        }
        let Some(head) = self.store.heads(&[id]).await?.pop() else { return Ok(()) };
        let records = self.store.events(id, 0, EVENTS_MAX).await?;
        for made in spans(&head, &records, (place, caller), again) {
            self.settings.traces.made(made);
        }
        Ok(())
    }
}

/// An execution that has settled; `again`: it was `unknown` before, and its spans up to then were made.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// Which.
    pub id: ExecutionId,
    /// See above.
    pub again: bool,
}

/// The spans of an execution, from its log.
fn spans(head: &Head, records: &[EventRecord], (place, caller): (Place, Option<Place>), again: bool) -> Vec<Made> {
    let told_until = if again { unknown_at(records) } else { 0 };
    let mut made = Vec::new();
    let mut open: Option<(&EventRecord, i64, u32)> = None;
    for record in records {
        if let Some((since, token, attempt)) = open
            && ends_lease(&record.event)
        {
            open = None;
            if record.seq > told_until {
                made.push(lease(head, place, (since, token, attempt), record));
            }
        }
        if let Event::Leased { fencing_token, attempt, .. } = &record.event {
            open = Some((record, *fencing_token, *attempt));
        }
    }
    let Some(last) = records.last() else { return made };
    let failure = head.error.as_ref().map(|error| error.code.clone());
    let mut attributes = of(head);
    attributes.push(KeyValue::new("durable_mcp.state", head.state.as_str()));
    attributes.push(KeyValue::new("durable_mcp.attempts", i64::from(head.attempt)));
    if again {
        // The execution's own span is there already: what was decided since is a span of its own.
        let at = time(last.at_ms);
        made.push(Made {
            name: "decided".into(),
            kind: SpanKind::Internal,
            place: place.child(),
            parent: Some(place),
            start: at,
            end: at,
            attributes,
            links: Vec::new(),
            failure,
        });
        return made;
    }
    let first = records.first().map_or(head.created_at_ms, |record| record.at_ms);
    made.push(Made {
        name: "execution".into(),
        kind: SpanKind::Internal,
        place,
        parent: caller,
        start: time(first),
        end: time(head.ended_at_ms.unwrap_or(last.at_ms)),
        attributes,
        links: Vec::new(),
        failure,
    });
    made
}

fn lease(head: &Head, execution: Place, (since, token, attempt): (&EventRecord, i64, u32), end: &EventRecord) -> Made {
    let id = head.id();
    let mut attributes = of(head);
    attributes.push(KeyValue::new("durable_mcp.attempt", i64::from(attempt)));
    attributes.push(KeyValue::new("durable_mcp.fencing_token", token));
    attributes.push(KeyValue::new("durable_mcp.outcome", end.event.name()));
    if let Event::Leased { worker, process, .. } = &since.event {
        attributes.push(KeyValue::new("durable_mcp.worker", worker.clone()));
        attributes.push(KeyValue::new("durable_mcp.process", process.to_string()));
    }
    let failure = match &end.event {
        Event::Retried { error, .. } | Event::Lost { error, .. } | Event::Failed { error, .. } => {
            Some(error.code.clone())
        }
        _ => None,
    };
    Made {
        name: "attempt".into(),
        kind: SpanKind::Internal,
        place: execution.of_lease(id, token),
        parent: Some(execution),
        start: time(since.at_ms),
        end: time(end.at_ms),
        attributes,
        // The one before it, whoever made that.
        links: (token > 1).then(|| execution.of_lease(id, token - 1)).into_iter().collect(),
        failure,
    }
}

fn of(head: &Head) -> Vec<KeyValue> {
    vec![
        KeyValue::new("durable_mcp.execution", head.id().to_string()),
        KeyValue::new("durable_mcp.upstream", head.ident.upstream.clone()),
        KeyValue::new("gen_ai.tool.name", head.ident.tool.clone()),
        KeyValue::new("durable_mcp.delivery", head.ident.policy.delivery.as_str()),
    ]
}

fn ends_lease(event: &Event) -> bool {
    event.is_final()
        || matches!(event, Event::Retried { .. } | Event::Lost { .. } | Event::Released { .. } | Event::Parked)
}

/// The number of the newest event that made it `unknown`.
fn unknown_at(records: &[EventRecord]) -> i64 {
    records.iter().rfind(|record| matches!(record.event, Event::Lost { .. })).map_or(0, |record| record.seq)
}

fn time(ms: i64) -> Duration {
    Duration::from_millis(ms.max(0) as u64)
}
