//! One command on one execution: the row, the rules' decision, the row and its events. Decides nothing.

use super::events;
use super::fault::{Fault, Sql};
use super::payloads;
use super::rows;
use super::tx::{Tx, Write};
use crate::model::decide::{Answer, Command, decide};
use crate::model::event::Event;
use crate::model::id::{ExecutionId, OperationId};
use crate::store::{Applied, Apply, LeaseRef};

/// Runs `apply`; `None` when there is no such execution.
pub(super) fn run(tx: &mut Tx<'_>, apply: &Apply) -> Sql<Option<Applied>> {
    let Some(mut entry) = tx.entry(apply.id)? else { return Ok(None) };
    if entry.operations.contains(&apply.operation) {
        let answer = answer_of(tx, apply.id, apply.operation)?;
        let head = entry.head.clone();
        tx.keep(entry);
        return Ok(Some(Applied { head, answer }));
    }
    let decision = decide(&entry.head, &apply.command, apply.now_ms, &tx.settings.limits);
    if !decision.changes_nothing() {
        let recorded = decision.events.iter().any(records_payload);
        let has_events = !decision.events.is_empty();
        tx.record(&mut entry, decision.events, Write { operation: apply.operation, now_ms: apply.now_ms })?;
        if let (Some(lease), Some(expires_at_ms)) = (&mut entry.head.lease, decision.lease_expires_at_ms) {
            lease.expires_at_ms = expires_at_ms;
        }
        if has_events {
            rows::update(tx.connection, &mut entry.head)?;
        } else {
            rows::update_lease(tx.connection, &mut entry.head)?;
        }
        if let (true, Some((kind, text))) = (recorded, &apply.payload) {
            payloads::insert(tx.connection, apply.id, (*kind, text), tx.settings.payload_chunk_bytes)?;
        }
    }
    let head = entry.head.clone();
    tx.keep(entry);
    Ok(Some(Applied { head, answer: decision.answer }))
}

/// Extends leases, in order.
pub(super) fn heartbeat(tx: &mut Tx<'_>, leases: &[LeaseRef], ttl_ms: i64, now_ms: i64) -> Sql<Vec<Answer>> {
    let mut answers = Vec::with_capacity(leases.len());
    for lease in leases {
        let Some(mut entry) = tx.entry(lease.id)? else {
            answers.push(Answer::Stale);
            continue;
        };
        let command = Command::Heartbeat { fencing_token: lease.fencing_token, ttl_ms };
        let decision = decide(&entry.head, &command, now_ms, &tx.settings.limits);
        if let (Some(lease), Some(expires_at_ms)) = (&mut entry.head.lease, decision.lease_expires_at_ms) {
            lease.expires_at_ms = expires_at_ms;
            rows::update_lease(tx.connection, &mut entry.head)?;
        }
        tx.keep(entry);
        answers.push(decision.answer);
    }
    Ok(answers)
}

/// A payload belongs to the event that says how the execution ended.
fn records_payload(event: &Event) -> bool {
    matches!(event, Event::Completed { .. } | Event::Failed { .. })
}

/// What was answered to an operation that is among the events already.
fn answer_of(tx: &Tx<'_>, id: ExecutionId, operation: OperationId) -> Sql<Answer> {
    let records = events::after(tx.connection, id, 0, usize::MAX >> 1)?;
    let event = records.into_iter().rfind(|record| record.operation == operation).map(|record| record.event);
    Ok(match event {
        Some(Event::Leased { fencing_token, attempt, .. }) => Answer::Leased { fencing_token, attempt },
        Some(Event::Rejected { reason, .. }) if reason == "ended" => Answer::Ended,
        Some(Event::Rejected { .. }) => Answer::Stale,
        Some(_) => Answer::Accepted,
        None => return Err(Fault::internal(format!("operation {operation} left no event in execution {id}"))),
    })
}
