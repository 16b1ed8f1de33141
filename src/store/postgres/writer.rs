//! The writes to executions: queued in order, and written together in one transaction by one task per process. What has
//! queued up shares a commit; an idle system waits for no company. What a batch does is in `batch.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::batch::{self, Outcome, Write};
use super::db::Db;
use super::fault::{CLOSED, repeat};
use super::liveness::Liveness;
use crate::model::decide::Answer;
use crate::model::id::ExecutionId;
use crate::store::{Applied, Apply, Error, LeaseRef, Mark, Result, Submit, SubmitOutcome};

/// Leases extended by one write, at most: each is a row of its transaction.
const LEASES_MAX: usize = 100;
/// Rows that one write of the common kind needs: itself, two events, a piece of payload.
const ROWS_OF_A_WRITE: usize = 4;

/// The end that takes writes in.
pub(super) struct Writer {
    db: Arc<Db>,
    jobs: mpsc::UnboundedSender<Job>,
    waiting: Arc<AtomicUsize>,
}

enum Job {
    Write(Item),
    Close(oneshot::Sender<()>),
}

/// A write, and who waits for its answer; nobody waits for a delivery mark.
struct Item {
    write: Write,
    answer: Option<oneshot::Sender<Result<Outcome>>>,
}

impl Writer {
    /// Starts the writing task of `db`; it ends with this.
    pub(super) fn start(db: Arc<Db>, liveness: Arc<Liveness>) -> Writer {
        let (jobs, inlet) = mpsc::unbounded_channel();
        let waiting: Arc<AtomicUsize> = Arc::default();
        let task = Task { db: Arc::clone(&db), liveness, jobs: inlet, waiting: Arc::clone(&waiting) };
        tokio::spawn(task.run());
        Writer { db, jobs, waiting }
    }

    /// Stores a call, or finds the execution that takes it.
    pub(super) async fn submit(&self, submit: Submit) -> Result<SubmitOutcome> {
        match self.write(Write::Submit(Box::new(submit))).await? {
            Outcome::Submitted(outcome) => Ok(outcome),
            other => Err(other.strange()),
        }
    }

    /// Runs one command on one execution.
    pub(super) async fn apply(&self, apply: Apply) -> Result<Option<Applied>> {
        match self.write(Write::Apply(Box::new(apply))).await? {
            Outcome::Applied(applied) => Ok(applied.map(|applied| *applied)),
            other => Err(other.strange()),
        }
    }

    /// Extends leases; the answers are in their order.
    pub(super) async fn heartbeat(&self, leases: Vec<LeaseRef>, ttl_ms: i64, now_ms: i64) -> Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(leases.len());
        for leases in leases.chunks(LEASES_MAX) {
            match self.write(Write::Heartbeat { leases: leases.to_vec(), ttl_ms, now_ms }).await? {
                Outcome::Beaten(some) => answers.extend(some),
                other => return Err(other.strange()),
            }
        }
        Ok(answers)
    }

    /// Writes something of no value behind what is queued.
    pub(super) async fn check(&self) -> Result<()> {
        self.write(Write::Check).await.map(drop)
    }

    /// Queues a delivery mark; a full queue loses it.
    pub(super) fn mark(&self, id: ExecutionId, mark: Mark, now_ms: i64) {
        let item = Item { write: Write::Mark { id, mark, now_ms }, answer: None };
        if let Err(error) = self.push(item) {
            tracing::warn!(execution = %id, %error, "lost a delivery mark");
        }
    }

    /// Writes what is queued, and takes nothing more.
    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.jobs.send(Job::Close(done)).is_ok() {
            // A task that is gone has closed.
            let _ = closed.await;
        }
    }

    async fn write(&self, write: Write) -> Result<Outcome> {
        let (answer, answered) = oneshot::channel();
        self.push(Item { write, answer: Some(answer) })?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }

    fn push(&self, item: Item) -> Result<()> {
        let max = self.db.settings().queue_max;
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= max {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::Overloaded(max));
        }
        self.jobs.send(Job::Write(item)).map_err(|_| closed())
    }
}

fn closed() -> Error {
    Error::Unavailable(CLOSED.into())
}

/// The end that writes.
struct Task {
    db: Arc<Db>,
    liveness: Arc<Liveness>,
    jobs: mpsc::UnboundedReceiver<Job>,
    waiting: Arc<AtomicUsize>,
}

impl Task {
    async fn run(mut self) {
        let mut items: Vec<Item> = Vec::new();
        loop {
            let closing = self.gather(&mut items).await;
            let more = self.batch(&mut items);
            self.write(more).await;
            let Some(done) = closing else { continue };
            while !items.is_empty() {
                let more = self.batch(&mut items);
                self.write(more).await;
            }
            self.jobs.close();
            while let Ok(job) = self.jobs.try_recv() {
                match job {
                    Job::Write(Item { answer: Some(answer), .. }) => drop(answer.send(Err(closed()))),
                    Job::Write(_) => {}
                    Job::Close(done) => drop(done.send(())),
                }
            }
            let _ = done.send(());
            return;
        }
    }

    /// Waits until there is something to write, and takes all that has queued. Marks alone wait for company for a while.
    async fn gather(&mut self, items: &mut Vec<Item>) -> Option<oneshot::Sender<()>> {
        let settings = Arc::clone(self.db.settings());
        let flush = Instant::now() + Duration::from_millis(settings.mark_flush_ms);
        loop {
            let urgent = items.iter().any(|item| item.answer.is_some()) || items.len() >= settings.marks_max;
            let job = match urgent {
                true => match self.jobs.try_recv() {
                    Ok(job) => Some(job),
                    Err(_) => return None,
                },
                false if items.is_empty() => self.jobs.recv().await,
                false => match tokio::time::timeout_at(flush, self.jobs.recv()).await {
                    Ok(job) => job,
                    Err(_) => return None,
                },
            };
            match job {
                Some(Job::Write(item)) => {
                    self.waiting.fetch_sub(1, Ordering::Relaxed);
                    items.push(item);
                }
                Some(Job::Close(done)) => return Some(done),
                // Nobody can queue anything any more, and nobody waits for this.
                None => return Some(oneshot::channel().0),
            }
            if items.len() >= settings.batch_max {
                return None;
            }
        }
    }

    /// As many as may share a commit, in order.
    fn batch(&self, items: &mut Vec<Item>) -> Vec<Item> {
        let settings = self.db.settings();
        let most = settings.batch_max.min(settings.batch_rows_max / ROWS_OF_A_WRITE).max(1);
        let mut bytes = 0;
        let mut count = 0;
        for item in items.iter().take(most) {
            bytes += item.write.bytes();
            if count > 0 && bytes > settings.batch_bytes_max {
                break;
            }
            count += 1;
        }
        items.drain(..count).collect()
    }

    /// Writes a batch and answers. A fault that is not everybody's is looked for in halves, so that it fails alone.
    async fn write(&self, items: Vec<Item>) {
        let mut parts = vec![items];
        while let Some(mut items) = parts.pop() {
            if items.is_empty() {
                continue;
            }
            match self.together(&items).await {
                Ok(outcomes) => {
                    for (item, outcome) in items.into_iter().zip(outcomes) {
                        item.answer(Ok(outcome));
                    }
                }
                Err(error) if items.len() > 1 && !matches!(error, Error::Unavailable(_)) => {
                    let half = items.split_off(items.len() / 2);
                    parts.push(half);
                    parts.push(items);
                }
                Err(error) => {
                    for item in items {
                        item.answer(Err(repeat(&error)));
                    }
                }
            }
        }
    }

    async fn together(&self, items: &[Item]) -> Result<Vec<Outcome>> {
        let writes: Vec<&Write> = items.iter().map(|item| &item.write).collect();
        let policy_ids = batch::store_policies(&self.db, &writes).await?;
        // After a commit of which nothing was heard the same runs again, and may find its own rows.
        let ran = AtomicBool::new(false);
        let (writes, policy_ids, ran, liveness) = (&writes[..], &policy_ids, &ran, &*self.liveness);
        let run = self.db.transaction(move |tx| {
            let again = ran.swap(true, Ordering::Relaxed);
            Box::pin(batch::run(tx, batch::Given { writes, policy_ids, liveness, again }))
        });
        run.await
    }
}

impl Item {
    fn answer(self, outcome: Result<Outcome>) {
        match (self.answer, outcome) {
            // Whoever asked may have gone.
            (Some(answer), outcome) => drop(answer.send(outcome)),
            (None, Err(error)) => tracing::warn!(%error, "lost a delivery mark"),
            (None, Ok(_)) => {}
        }
    }
}
