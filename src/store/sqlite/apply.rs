//! One command on one execution: the row, the rules' decision, the row and its events. Decides nothing.

use super::events;
use super::fault::{Fault, Sql};
use super::payloads;
use super::rows;
use super::tx::Tx;
use crate::model::decide::Answer;
use crate::model::id::{ExecutionId, OperationId};
use crate::store::deciding::{self, Applying};
use crate::store::{Applied, Apply, LeaseRef};

/// Runs `apply`; `None` when there is no such execution.
pub(super) fn run(tx: &mut Tx<'_>, apply: &Apply) -> Sql<Option<Applied>> {
    let Some(mut entry) = tx.entry(apply.id)? else { return Ok(None) };
    let answer = match deciding::apply(&mut entry, apply, &tx.settings.limits) {
        Applying::Repeated => answer_of(tx, apply.id, apply.operation)?,
        Applying::Decided(None, answer) => answer,
        Applying::Decided(Some(change), answer) => {
            let records_payload = change.records_payload;
            tx.write(&mut entry, change, apply.into())?;
            if let (true, Some((kind, text))) = (records_payload, &apply.payload) {
                payloads::insert(tx.connection, apply.id, (*kind, text), tx.settings.payload_chunk_bytes)?;
            }
            answer
        }
    };
    let head = entry.head.clone();
    tx.keep(entry);
    Ok(Some(Applied { head, answer }))
}

/// Extends leases, in order.
pub(super) fn heartbeat(tx: &mut Tx<'_>, leases: &[LeaseRef], ttl_ms: i64, now_ms: i64) -> Sql<Vec<Answer>> {
    let mut answers = Vec::with_capacity(leases.len());
    for lease in leases {
        let Some(mut entry) = tx.entry(lease.id)? else {
            answers.push(Answer::Stale);
            continue;
        };
        let wanted = (lease.fencing_token, ttl_ms);
        let (changed, answer) = deciding::heartbeat(&mut entry.head, wanted, now_ms, &tx.settings.limits);
        if changed {
            rows::update_lease(tx.connection, &mut entry.head)?;
        }
        tx.keep(entry);
        answers.push(answer);
    }
    Ok(answers)
}

/// What was answered to an operation that is among the events already.
fn answer_of(tx: &Tx<'_>, id: ExecutionId, operation: OperationId) -> Sql<Answer> {
    let records = events::after(tx.connection, id, 0, usize::MAX >> 1)?;
    match records.iter().rfind(|record| record.operation == operation) {
        Some(record) => Ok(deciding::answer_of(&record.event)),
        None => Err(Fault::internal(format!("operation {operation} left no event in execution {id}"))),
    }
}
