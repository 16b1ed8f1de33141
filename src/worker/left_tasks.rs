//! Tasks that servers still work on although the attempts that began them were lost: for each `unknown` execution that
//! kept the id of a server's task, the task is followed, and its result completes the execution. Calls no tool, and leaves
//! `unknown` whatever has no result.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;

use super::executor::{Continuation, Executor, Job, Outcome};
use super::upstream_executor::is_task;
use crate::engine::client::ClientContext;
use crate::engine::{Engine, Result};
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::{LeaseRef, ListQuery, PayloadKind};

/// Tasks followed at once.
const CONCURRENCY: usize = 64;
/// Executions per upstream that are looked at when the process starts, newest first.
const SCAN_MAX: usize = 1_000;

/// Follows what lost attempts have left with servers.
pub struct LeftTasks {
    engine: Arc<Engine>,
    executors: HashMap<String, Arc<dyn Executor>>,
    places: Semaphore,
    /// Lost attempts that are looked at, by fencing token.
    seen: Mutex<HashSet<(ExecutionId, i64)>>,
}

impl LeftTasks {
    /// Follows the tasks of the servers that this process reaches.
    pub fn new(engine: Arc<Engine>, executors: HashMap<String, Arc<dyn Executor>>) -> Arc<LeftTasks> {
        Arc::new(LeftTasks { engine, executors, places: Semaphore::new(CONCURRENCY), seen: Mutex::default() })
    }

    /// Looks at what is `unknown` already, and from then on at what becomes so, until the engine stops.
    pub fn start(self: &Arc<Self>) {
        let this = self.clone();
        self.engine.spawn_until_stopped(async move { this.watch().await });
    }

    async fn watch(self: &Arc<Self>) {
        let mut unknown = self.engine.unknown();
        loop {
            if let Err(error) = self.scan().await {
                tracing::warn!(code = error.code(), "unknown executions could not be listed: {error}");
            }
            loop {
                match unknown.recv().await {
                    Ok(id) => match self.engine.store().heads(&[id]).await {
                        Ok(heads) => heads.into_iter().for_each(|head| self.look_at(head)),
                        Err(error) => tracing::warn!(execution = %id, "a row could not be read: {error}"),
                    },
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                }
            }
        }
    }

    async fn scan(self: &Arc<Self>) -> Result<()> {
        for upstream in self.executors.keys() {
            let query = ListQuery {
                states: vec![State::Unknown],
                upstream: Some(upstream.clone()),
                limit: SCAN_MAX,
                ..ListQuery::default()
            };
            for head in self.engine.store().list(query).await? {
                self.look_at(head);
            }
        }
        Ok(())
    }

    fn look_at(self: &Arc<Self>, head: Head) {
        if head.state != State::Unknown || !self.executors.contains_key(&head.ident.upstream) {
            return;
        }
        let mark = (head.id(), head.fencing_token);
        if !self.seen().insert(mark) {
            return;
        }
        let this = self.clone();
        self.engine.spawn_until_stopped(async move {
            this.settle(&head).await;
            this.seen().remove(&mark);
        });
    }

    /// Follows the task of a lost attempt, if it left one, and records its result.
    async fn settle(&self, head: &Head) {
        let id = head.id();
        let (Ok(kept), Some(executor)) =
            (self.engine.store().progressed(id).await, self.executors.get(&head.ident.upstream))
        else {
            return;
        };
        let Some(state) = kept.checkpoint.filter(|state| is_task(state)) else { return };
        let Ok(_place) = self.places.acquire().await else { return };
        let meta = self.engine.store().payload(id, PayloadKind::Meta).await.ok().flatten();
        let client = ClientContext::of_meta(meta.as_deref());
        let job = Job {
            attempt: head.attempt,
            fencing_token: head.fencing_token,
            effect_key: head.ident.effect_key,
            client: Arc::new(client),
            namespace: head.ident.namespace.clone(),
            principal: head.ident.principal.clone(),
            continuation: Some(Continuation { state: Some(state), responses: Vec::new() }),
            ..Job::of_nobody(id, head.ident.tool.clone(), "{}")
        };
        let Outcome::Result(result) = executor.run(job, &|_| {}).await else {
            tracing::info!(execution = %id, "the server's task of an unknown execution has no result; it stays unknown");
            return;
        };
        let lease = LeaseRef { id, fencing_token: head.fencing_token };
        let is_error = super::is_error(&result);
        match self.engine.complete(lease, self.engine.new_operation(), result, is_error).await {
            Ok(_) => tracing::info!(execution = %id, "an unknown execution was completed by its server's task"),
            Err(error) => tracing::warn!(execution = %id, code = error.code(), "a result was not stored: {error}"),
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, HashSet<(ExecutionId, i64)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
