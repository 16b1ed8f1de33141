//! Executions that clients see as tasks: since when, how long, and which end they were shown first. Knows no wire form.

use std::sync::Arc;

use super::changes;
use super::{Engine, Error, Result};
use crate::model::decide::{Answer, Command};
use crate::model::event::Order;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::model::policy::OnTaskExpiry;
use crate::model::principal::Principal;
use crate::store::{self, Payload, TaskQuery, TaskRow, TaskVariant};

#[cfg(test)]
mod tests;

/// Who orders what nobody ordered, in events.
const SYSTEM: &str = "durable-mcp";

/// How a call becomes a task.
#[derive(Clone, Debug)]
pub struct Wish {
    /// As what it was asked for.
    pub variant: TaskVariant,
    /// How long it can be read, in milliseconds; as long as payloads are kept at most.
    pub ttl_ms: i64,
    /// What the end of that time means for work that still runs.
    pub on_expiry: OnTaskExpiry,
    /// Where the client wants progress reported to, as JSON.
    pub progress_token: Option<String>,
}

/// A task as its reader sees it.
#[derive(Clone, Debug)]
pub struct Task {
    /// Since when, how long.
    pub row: TaskRow,
    /// The execution; once an end was shown, as it stood then.
    pub head: Arc<Head>,
    /// The result or the JSON-RPC error of one that has settled, if there is one.
    pub payload: Option<Payload>,
}

impl Engine {
    /// Notes that an execution is seen as a task; durable when this returns. A second time it is the same task, and
    /// lives as long as the longer of both wishes.
    ///
    /// # Errors
    ///
    /// The store can not be written.
    pub async fn open_task(&self, id: ExecutionId, wish: &Wish) -> Result<Task> {
        let not_found = || Error::NotFound(id.to_string());
        let head = self.store.heads(&[id]).await?.pop().ok_or_else(not_found)?;
        // A task has to be readable as long as it says, and retention takes its result before its history.
        let kept_ms = self.settings.result_kept_ms();
        let row = TaskRow {
            id,
            namespace: head.ident.namespace.clone(),
            principal: head.ident.principal.clone(),
            variant: wish.variant,
            ttl_ms: wish.ttl_ms.min(kept_ms).max(1),
            created_at_ms: self.now_ms(),
            on_expiry: wish.on_expiry,
            shown_seq: None,
            progress_token: wish.progress_token.clone(),
        };
        let row = self.store.open_task(row).await?;
        self.shown(head, row).await?.ok_or_else(not_found)
    }

    /// The caller's task; one that is foreign, over, or an execution nobody sees as a task, is as if it were missing.
    pub async fn task(&self, id: ExecutionId, principal: &Principal) -> Result<Option<Task>> {
        let Some(head) = self.store.heads(&[id]).await?.pop() else { return Ok(None) };
        if head.ident.namespace != principal.namespace || head.ident.principal != principal.subject {
            return Ok(None);
        }
        // Read after the row, so that an end which somebody was shown before is known.
        let Some(row) = self.store.task(id).await? else { return Ok(None) };
        if row.is_expired(self.now_ms()) {
            return Ok(None);
        }
        self.shown(head, row).await
    }

    /// A page of the caller's tasks, newest first.
    pub async fn tasks(&self, principal: &Principal, before: Option<ExecutionId>, limit: usize) -> Result<Vec<Task>> {
        let query = TaskQuery {
            namespace: principal.namespace.clone(),
            principal: principal.subject.clone(),
            before,
            now_ms: self.now_ms(),
            limit,
        };
        let mut tasks = Vec::new();
        for row in self.store.tasks(query).await? {
            tasks.extend(self.task(row.id, principal).await?);
        }
        Ok(tasks)
    }

    /// The task with the end that was shown first. An `unknown` may become something else later; a task may not.
    async fn shown(&self, mut head: Head, mut row: TaskRow) -> Result<Option<Task>> {
        loop {
            if let Some(seq) = row.shown_seq {
                let head = Arc::new(self.head_at(head, seq).await?);
                return Ok(Some(Task { row, head, payload: None }));
            }
            if head.state != State::Unknown {
                let settled = self.settled(head).await?;
                return Ok(Some(Task { row, head: settled.head, payload: settled.payload }));
            }
            let id = head.id();
            match self.store.show_task(id, head.next_seq - 1).await? {
                Some(kept) => row = kept,
                None => return Ok(None),
            }
            if row.shown_seq.is_none() {
                // It has moved on in between.
                match self.store.heads(&[id]).await?.pop() {
                    Some(now) => head = now,
                    None => return Ok(None),
                }
            }
        }
    }

    /// The execution as it stood after its event `seq`.
    async fn head_at(&self, head: Head, seq: i64) -> Result<Head> {
        if head.next_seq == seq + 1 {
            return Ok(head);
        }
        let events = changes::events(&*self.store, head.id(), 0).await?;
        let mut then = Head::new(head.ident, head.created_at_ms);
        for record in events.iter().take_while(|record| record.seq <= seq) {
            then.apply(&record.event, record.at_ms);
        }
        if then.state != State::Unknown {
            let what = format!("the first end of task {} is not in its history", then.id());
            return Err(store::Error::Damaged(what).into());
        }
        Ok(then)
    }

    /// Ends what the time of tasks that are over has ended, and forgets them. Work that somebody waits for in another
    /// way goes on, and its task is looked at again later: nobody can read it any more.
    pub(super) async fn end_expired_tasks(&self) -> Result<()> {
        let now_ms = self.now_ms();
        let mut kept = 0;
        loop {
            // What is kept stands before the others, and must not stand in their way.
            let limit = kept + self.settings.scheduler_batch.max(1);
            let expired = self.store.expired_tasks(now_ms, limit).await?;
            let full = expired.len() == limit;
            kept = 0;
            for row in expired {
                if !self.end_expired_task(&row, now_ms).await? {
                    kept += 1;
                }
            }
            if !full {
                return Ok(());
            }
        }
    }

    /// False when somebody waits for its work: the task is kept.
    async fn end_expired_task(&self, row: &TaskRow, now_ms: i64) -> Result<bool> {
        let head = self.store.heads(&[row.id]).await?.pop();
        if let Some(head) = head.filter(|head| !head.state.is_settled())
            && row.on_expiry == OnTaskExpiry::Cancel
        {
            if head.waiter.is_some() || self.waiters.are_there(row.id) {
                return Ok(false);
            }
            let order = Order { principal: SYSTEM.into(), reason: "the time of its task is over".into() };
            let applied = self.apply(self.write(row.id, Command::Cancel(order))).await?;
            if applied.is_some_and(|applied| applied.answer == Answer::Accepted) {
                tracing::info!(execution = %row.id, "cancelled: the time of its task is over");
            }
        }
        self.store.close_task(row.id, now_ms).await?;
        Ok(true)
    }
}
