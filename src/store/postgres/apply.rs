//! One command on one execution inside somebody's transaction: for writes that change an execution together with
//! something else. Alone, commands go through the writer. Decides nothing.

use super::columns::Written;
use super::db::Tx;
use super::events;
use super::fault::{Fault, Sql};
use super::heads;
use super::payloads;
use super::write::Changed;
use crate::store::deciding::{self, Applying, Write};
use crate::store::{Applied, Apply};

/// Runs `apply`; `None` when there is no such execution. When somebody else changed the row meanwhile, the transaction
/// runs again.
pub(super) async fn apply_in(tx: &Tx<'_>, apply: &Apply) -> Sql<Option<Applied>> {
    let Some(mut entry) = heads::entry(tx, apply.id).await? else { return Ok(None) };
    let was = entry.head.version;
    let answer = match deciding::apply(&mut entry, apply, &tx.settings().limits) {
        Applying::Repeated => {
            tx.told().found(apply.operation);
            events::answer_of(tx, apply.id, apply.operation).await?
        }
        Applying::Decided(None, answer) => answer,
        Applying::Decided(Some(change), answer) => {
            entry.head.version += 1;
            let payloads = apply.payload.iter().filter(|_| change.records_payload).cloned().collect();
            let records = Write::from(apply).records(change.first_seq, change.events).collect();
            let written = Written { was: Some(change.was), records, payloads };
            let mut changed = Changed::default();
            changed.push(&entry.head, was, &written, tx.settings().payload_chunk_bytes)?;
            if changed.write(tx).await?.is_empty() {
                return Err(Fault::again(format!("execution {} was changed by another process; try again", apply.id)));
            }
            payloads::insert_further(tx, apply.id, &written).await?;
            written.committed(&entry.head).for_each(|written| tx.told().wrote(written));
            answer
        }
    };
    Ok(Some(Applied { head: entry.head, answer }))
}
