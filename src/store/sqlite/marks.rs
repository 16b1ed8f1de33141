//! Delivery marks: who waits, and what was written whole. Kept for unkeyed calls only, since nothing else asks.

use rusqlite::params;

use super::fault::Sql;
use super::rows::IdText;
use super::tx::Tx;
use crate::model::id::ExecutionId;
use crate::store::Mark;

/// A queued mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedMark {
    pub(super) id: ExecutionId,
    pub(super) mark: Mark,
    pub(super) now_ms: i64,
}

const WAITING: &str = "UPDATE executions SET waiter = ?2, version = version + 1 \
    WHERE id = ?1 AND key IS NULL AND delivered_at_ms IS NULL AND waiter IS NOT ?2";

const LEFT: &str =
    "UPDATE executions SET waiter = NULL, version = version + 1 WHERE id = ?1 AND key IS NULL AND waiter = ?2";

const HANDLE_GIVEN: &str = "UPDATE executions SET handle_given = 1, version = version + 1, \
    waiter = CASE WHEN waiter = ?2 THEN NULL ELSE waiter END WHERE id = ?1 AND key IS NULL";

const DELIVERED: &str = "UPDATE executions SET delivered_at_ms = ?3, version = version + 1, \
    waiter = CASE WHEN waiter = ?2 THEN NULL ELSE waiter END \
    WHERE id = ?1 AND key IS NULL AND delivered_at_ms IS NULL";

/// Writes a mark. A process takes back only its own waiting.
pub(super) fn run(tx: &mut Tx<'_>, queued: &QueuedMark) -> Sql<()> {
    let id = IdText::execution(queued.id);
    let written = match queued.mark {
        Mark::Waiting(process) => tx.connection.prepare_cached(WAITING)?.execute(params![id, IdText::process(process)]),
        Mark::Left(process) => tx.connection.prepare_cached(LEFT)?.execute(params![id, IdText::process(process)]),
        Mark::HandleGiven(process) => {
            tx.connection.prepare_cached(HANDLE_GIVEN)?.execute(params![id, IdText::process(process)])
        }
        Mark::Delivered(process) => {
            tx.connection.prepare_cached(DELIVERED)?.execute(params![id, IdText::process(process), queued.now_ms])
        }
    }?;
    if written > 0 {
        // The remembered row is of the version before.
        tx.heads.take(queued.id);
    }
    Ok(())
}
