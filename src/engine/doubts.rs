//! Leases that this process may hold without knowing: it asked for them, and nobody said what became of the write. Those
//! that turn out to be there are given back unstarted, so that the call runs soon, here or elsewhere, and is not unknown
//! when its lease is over. Looks at no other leases, and decides nothing about a call that is not there.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Engine, Result};
use crate::model::decide::Command;
use crate::model::event::Event;
use crate::model::id::{ExecutionId, OperationId};

/// More are settled when they run out, like the leases of whoever died.
const DOUBTS_MAX: usize = 1_000;
/// Events of an execution that are looked through.
const EVENTS_MAX: usize = 1_000;

/// What this process has asked for and may hold.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// By the write: of which execution, and until when it is looked for (milliseconds since the epoch).
    leases: Mutex<HashMap<OperationId, (ExecutionId, i64)>>,
    /// Told when there is a first one.
    pub(super) raised: Notify,
}

impl Doubts {
    fn leases(&self) -> MutexGuard<'_, HashMap<OperationId, (ExecutionId, i64)>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when there is none.
    pub(super) fn are_settled(&self) -> bool {
        self.leases().is_empty()
    }
}

impl Engine {
    /// Remembers that this write failed, and may have granted a lease all the same.
    pub(super) fn doubt(&self, id: ExecutionId, operation: OperationId) {
        let until_ms = self.now_ms() + 2 * self.settings.lease_ttl_ms;
        let mut leases = self.doubts.leases();
        if leases.len() < DOUBTS_MAX {
            leases.insert(operation, (id, until_ms));
        }
        drop(leases);
        self.doubts.raised.notify_one();
    }

    /// Looks for what is in doubt, and gives back what is there. What is not may come still: a commit that waits for a
    /// standby, or in a server that stands, is seen by nobody.
    pub(super) async fn settle_doubts(&self) -> Result<()> {
        let doubts = self.doubts.leases().clone();
        if doubts.is_empty() {
            return Ok(());
        }
        let ids: Vec<ExecutionId> = doubts.values().map(|(id, _)| *id).collect();
        let heads = self.store.heads(&ids).await?;
        for (operation, (id, _)) in doubts {
            let Some(head) = heads.iter().find(|head| head.id() == id) else { continue };
            let events = self.store.events(id, 0, EVENTS_MAX).await?;
            let granted = events.iter().find_map(|record| match &record.event {
                Event::Leased { fencing_token, .. } if record.operation == operation => Some(*fencing_token),
                _ => None,
            });
            let Some(fencing_token) = granted else { continue };
            // It was never handed to anybody: nothing has begun under it.
            if head.lease.is_some() && head.fencing_token == fencing_token {
                tracing::info!(execution = %id, "giving back a lease of which nobody said that it was granted");
                self.apply(self.write(id, Command::Release { fencing_token })).await?;
            }
            self.doubts.leases().remove(&operation);
        }
        let now_ms = self.now_ms();
        self.doubts.leases().retain(|_, (_, until_ms)| now_ms < *until_ms);
        Ok(())
    }
}
