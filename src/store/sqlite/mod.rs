//! The SQLite driver: one file, one writing thread per process, several processes per file. This file is its face; what
//! becomes of an execution is decided by the model, on the row inside the transaction.

mod apply;
mod backup;
mod busy;
mod checkpoint;
mod counting;
mod events;
mod fault;
mod heads;
mod inputs;
mod inspect;
mod lists;
mod liveness;
mod marks;
mod migrate;
mod open;
mod pages;
mod payloads;
mod pieces;
mod policies;
mod prune;
mod queue;
mod reader;
mod registry;
mod restore;
mod rows;
mod sessions;
mod settings;
mod submit;
mod tasks;
mod totals;
mod transfer;
mod turns;
mod tx;
mod unscheduled;
mod verify;
mod watch;
mod workers;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;

pub(super) use self::backup::name as name_copy;
pub use self::backup::{BackUp, backup};
pub use self::inspect::{FileStatus, quick_check, status, writable};
pub(super) use self::open::create_private;
pub use self::prune::preview as prune_preview;
pub use self::restore::{Replace, Restore, Restored, replace, restore};
pub use self::settings::{SqliteSettings, Synchronous};
pub use self::transfer::{fill, rows_of};
pub use self::verify::{Told, Verified, verify};

use self::checkpoint::Checkpointer;
use self::fault::Sql;
use self::lists::Read;
use self::liveness::Liveness;
use self::marks::QueuedMark;
use self::policies::Policies;
use self::queue::Inlet;
use self::reader::Readers;
use self::tx::Tx;
use self::watch::Watch;
use self::writer::{CLOSED, Job, Shared, Task, Writer};
use super::observer::{Connections, Observed, Observer};
use super::series::Whose;
use super::{AnswerInputs, AnsweredInputs, Ask, Asked, InputRow, News, SealingKey, WantedKeys};
use super::{
    Applied, Apply, CandidateQuery, Due, Error, KeyScope, LeaseRef, ListQuery, Mark, Payload, PayloadKind, Pruned,
    Result, Retention, Slice, Store, Submit, SubmitOutcome, TokenRow, TouchedQuery, UpstreamRow,
};
use super::{Keep, KeepOutcome, Progressed, TaskQuery, TaskRow, WorkerChange, WorkerRow, WorkersSeen};
use crate::model::decide::Answer;
use crate::model::event::EventRecord;
use crate::model::execution::{Head, State};
use crate::model::id::{ExecutionId, ProcessId};

/// A store in an SQLite file.
pub struct SqliteStore {
    queue: Inlet,
    points: Readers,
    lists: Readers,
    policies: Arc<Policies>,
    liveness: Arc<Liveness>,
    watch: Arc<Watch>,
    settings: Arc<SqliteSettings>,
    observed: Observed,
}

impl SqliteStore {
    /// Opens the file at `path`; it is created when it is not there.
    ///
    /// # Errors
    ///
    /// One sentence each: a folder or another file in the way, no permission, damaged, written by a newer program, or
    /// locked for too long.
    pub async fn open(path: &Path, settings: &SqliteSettings) -> Result<SqliteStore> {
        let (path, settings) = (path.to_owned(), Arc::new(settings.clone()));
        let opening = tokio::task::spawn_blocking(move || SqliteStore::open_blocking(&path, settings));
        opening.await.map_err(|error| Error::Internal(format!("opening was lost: {error}")))?
    }

    fn open_blocking(path: &Path, settings: Arc<SqliteSettings>) -> Result<SqliteStore> {
        let connections = open::open(path, &settings)?;
        let policies = Arc::new(Policies::default());
        let liveness = Arc::new(Liveness::of(path));
        let watch = Arc::new(Watch::default());
        let observed = Observed::default();
        let shared = Shared {
            policies: Arc::clone(&policies),
            liveness: Arc::clone(&liveness),
            settings: Arc::clone(&settings),
            watch: Arc::clone(&watch),
            observed: observed.clone(),
        };
        let thread = |error: std::io::Error| Error::Unavailable(format!("a thread of the store: {error}"));
        let checkpointer = Checkpointer::spawn(connections.checkpointer, settings.checkpoint_pages).map_err(thread)?;
        let writer = Writer::new(connections.writer, checkpointer, shared);
        let (queue, jobs) = queue::queue(settings.queue_max);
        std::thread::Builder::new().name("sqlite-writer".into()).spawn(move || writer.run(&jobs)).map_err(thread)?;
        Ok(SqliteStore {
            queue,
            points: Readers::new(connections.point_readers),
            lists: Readers::new(connections.list_readers),
            policies,
            liveness,
            watch,
            settings,
            observed,
        })
    }

    /// Queues a command and waits for its commit.
    async fn write<T: Send + 'static>(&self, run: impl FnMut(&mut Tx<'_>) -> Sql<T> + Send + 'static) -> Result<T> {
        let (task, answer) = Task::new(run);
        self.queue.push(Job::Write(Box::new(task)))?;
        answer.await.map_err(|_| Error::Unavailable(CLOSED.into()))?
    }

    async fn point<T: Send + 'static>(&self, read: impl FnOnce(Read<'_>) -> Sql<T> + Send + 'static) -> Result<T> {
        let policies = Arc::clone(&self.policies);
        self.points.point(move |connection| read(Read { connection, policies: &policies })).await
    }

    async fn list<T: Send + 'static>(&self, read: impl FnOnce(Read<'_>) -> Sql<T> + Send + 'static) -> Result<T> {
        let policies = Arc::clone(&self.policies);
        self.lists.list(move |connection| read(Read { connection, policies: &policies })).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn submit(&self, submit: Submit) -> Result<SubmitOutcome> {
        self.write(move |tx| submit::run(tx, &submit)).await
    }

    async fn apply(&self, apply: Apply) -> Result<Option<Applied>> {
        self.write(move |tx| apply::run(tx, &apply)).await
    }

    fn mark(&self, id: ExecutionId, mark: Mark, now_ms: i64) {
        if let Err(error) = self.queue.push(Job::Mark(QueuedMark { id, mark, now_ms })) {
            tracing::warn!(execution = %id, %error, "lost a delivery mark");
        }
    }

    async fn heartbeat(&self, leases: Vec<LeaseRef>, ttl_ms: i64, now_ms: i64) -> Result<Vec<Answer>> {
        self.write(move |tx| apply::heartbeat(tx, &leases, ttl_ms, now_ms)).await
    }

    async fn by_key(&self, scope: KeyScope) -> Result<Option<Head>> {
        self.point(move |read| read.by_key(&scope)).await
    }

    async fn heads(&self, ids: &[ExecutionId]) -> Result<Vec<Head>> {
        let ids = ids.to_vec();
        self.point(move |read| read.heads(&ids)).await
    }

    async fn payload(&self, id: ExecutionId, kind: PayloadKind) -> Result<Option<Payload>> {
        self.point(move |read| payloads::read(read.connection, id, kind)).await
    }

    async fn events(&self, id: ExecutionId, after: i64, limit: usize) -> Result<Vec<EventRecord>> {
        self.list(move |read| events::after(read.connection, id, after, limit)).await
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Head>> {
        self.list(move |read| read.list(&query)).await
    }

    async fn touched(&self, query: TouchedQuery) -> Result<Vec<Head>> {
        self.list(move |read| read.touched(&query)).await
    }

    async fn candidates(&self, query: CandidateQuery) -> Result<Vec<Head>> {
        self.list(move |read| read.candidates(&query)).await
    }

    async fn due(&self, dead: &[ProcessId], now_ms: i64, limit: usize) -> Result<Due> {
        let dead = dead.to_vec();
        self.list(move |read| read.due(&dead, now_ms, limit)).await
    }

    async fn register_process(&self, process: ProcessId, now_ms: i64) -> Result<()> {
        // The lock comes first: a process with a row and no lock would be dead to all others.
        self.liveness.announce(process)?;
        self.write(move |tx| registry::put_process(tx, process, now_ms)).await
    }

    fn since_silence(&self) -> Option<Duration> {
        None
    }

    async fn dead_processes(&self, now_ms: i64) -> Result<Vec<ProcessId>> {
        let liveness = Arc::clone(&self.liveness);
        self.list(move |read| {
            let remote = workers::remote(read.connection, now_ms)?;
            let mut processes = read.processes()?;
            processes.extend(remote.iter().filter(|worker| worker.present).map(|worker| worker.id));
            processes.sort_unstable();
            processes.dedup();
            processes.retain(|process| match remote.iter().find(|worker| worker.id == *process) {
                Some(worker) => !worker.lives,
                None => !liveness.is_alive(*process),
            });
            Ok(processes)
        })
        .await
    }

    async fn bury_process(&self, process: ProcessId) -> Result<()> {
        self.write(move |tx| registry::bury_process(tx, process)).await?;
        self.liveness.bury(process);
        Ok(())
    }

    async fn prune_slice(&self, slice: Slice, retention: Retention, now_ms: i64) -> Result<Pruned> {
        // Looked for by a reader, so that no call waits for the look; what has ended stays so.
        let found = self.list(move |read| prune::find(read.connection, &slice, retention, now_ms)).await?;
        self.write(move |tx| prune::run(tx, &found, now_ms)).await
    }

    async fn news(&self, timeout_ms: u64) -> News {
        let interval = Duration::from_millis(self.settings.poll_interval_ms);
        // A full queue needs no nudge: the writer looks with each batch.
        let nudge = || drop(self.queue.push(Job::Look));
        let changed = self.watch.wait(Duration::from_millis(timeout_ms), interval, nudge).await;
        // The file says that it changed, and not what.
        News { anything: changed, due: true, ..News::default() }
    }

    /// Every change is seen by looking.
    fn attend(&self) {}

    async fn put_token(&self, token: TokenRow) -> Result<()> {
        self.write(move |tx| registry::put_token(tx, &token)).await
    }

    async fn revoke_token(&self, prefix: &str, now_ms: i64) -> Result<bool> {
        let prefix = prefix.to_owned();
        self.write(move |tx| registry::revoke_token(tx, &prefix, now_ms)).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        self.list(|read| registry::tokens(read.connection)).await
    }

    async fn put_upstream(&self, row: UpstreamRow) -> Result<()> {
        self.write(move |tx| registry::put_upstream(tx, &row)).await
    }

    async fn upstreams(&self) -> Result<Vec<UpstreamRow>> {
        self.list(|read| registry::upstreams(read.connection)).await
    }

    async fn put_worker(&self, row: WorkerRow) -> Result<Option<WorkerRow>> {
        self.write(move |tx| workers::put(tx, &row)).await
    }

    async fn change_workers(&self, ids: Vec<ProcessId>, change: WorkerChange, now_ms: i64) -> Result<usize> {
        self.write(move |tx| workers::change(tx, &ids, change, now_ms)).await
    }

    async fn workers(&self, known: Option<i64>) -> Result<Option<WorkersSeen>> {
        self.list(move |read| {
            let change = workers::changes(read.connection)?;
            if known == Some(change) {
                return Ok(None);
            }
            Ok(Some(WorkersSeen { change, rows: workers::all(read.connection)? }))
        })
        .await
    }

    async fn keep(&self, keep: Keep) -> Result<KeepOutcome> {
        self.write(move |tx| workers::keep(tx, &keep)).await
    }

    async fn progressed(&self, id: ExecutionId) -> Result<Progressed> {
        self.point(move |read| workers::progressed(read.connection, id)).await
    }

    async fn ask(&self, ask: Ask) -> Result<Asked> {
        self.write(move |tx| inputs::ask(tx, &ask)).await
    }

    async fn answer(&self, answers: AnswerInputs) -> Result<Option<AnsweredInputs>> {
        self.write(move |tx| inputs::answer(tx, &answers)).await
    }

    async fn inputs(&self, id: ExecutionId) -> Result<Vec<InputRow>> {
        self.point(move |read| inputs::all(read.connection, id)).await
    }

    async fn inputs_due(&self, until_ms: i64, limit: usize) -> Result<Vec<(ExecutionId, u32)>> {
        self.list(move |read| inputs::due(read.connection, until_ms, limit)).await
    }

    async fn sealing_keys(&self, wanted: WantedKeys) -> Result<Vec<SealingKey>> {
        self.write(move |tx| inputs::keys(tx, &wanted)).await
    }

    async fn open_task(&self, row: TaskRow) -> Result<TaskRow> {
        self.write(move |tx| tasks::open(tx, &row)).await
    }

    async fn task(&self, id: ExecutionId) -> Result<Option<TaskRow>> {
        self.point(move |read| tasks::one(read.connection, id)).await
    }

    async fn show_task(&self, id: ExecutionId, seq: i64) -> Result<Option<TaskRow>> {
        self.write(move |tx| tasks::show(tx, id, seq)).await
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskRow>> {
        self.list(move |read| tasks::page(read.connection, &query)).await
    }

    async fn expired_tasks(&self, now_ms: i64, limit: usize) -> Result<Vec<TaskRow>> {
        self.list(move |read| tasks::expired(read.connection, now_ms, limit)).await
    }

    async fn close_task(&self, id: ExecutionId, now_ms: i64) -> Result<bool> {
        self.write(move |tx| tasks::close(tx, id, now_ms)).await
    }

    async fn clock_ms(&self) -> Result<Option<i64>> {
        Ok(None)
    }

    async fn totals(&self) -> Result<BTreeMap<State, u64>> {
        self.list(|read| read.totals(&Whose::default())).await
    }

    async fn check(&self) -> Result<()> {
        self.write(|tx| registry::check(tx)).await
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.observed.set(observer);
    }

    fn connections(&self) -> Connections {
        let (points, lists) = (self.points.standing(), self.lists.standing());
        let (busy, idle) = (points.0 + lists.0, points.1 + lists.1);
        Connections { busy, idle, waiting: self.queue.waiting() }
    }

    async fn close(&self) {
        // Readers first: the last connection to close tidies the log away.
        let (points, lists) = (self.points.clone(), self.lists.clone());
        let _ = tokio::task::spawn_blocking(move || {
            points.close();
            lists.close();
        })
        .await;
        let (done, closed) = oneshot::channel();
        if self.queue.push_urgent(Job::Close(done)).is_ok() {
            // An error means that the writer is gone, which is what was asked for.
            let _ = closed.await;
        }
        self.liveness.release();
    }
}
