//! The PostgreSQL driver: one connection that writes in group commits, a pool for the rest, any number of processes on
//! one database. This file is its face; what becomes of an execution is decided by the model.

mod apply;
mod attached;
mod batch;
mod bind;
mod columns;
mod counting;
mod db;
mod draft;
mod events;
mod fault;
mod heads;
mod held;
mod inputs;
mod inspect;
mod lane;
mod listen;
mod lists;
mod liveness;
mod memory;
mod migrate;
mod migrations;
mod pages;
mod payloads;
mod pieces;
mod policies;
mod pool;
mod prune;
mod quick;
mod registry;
mod retry;
mod roles;
mod rows;
mod said;
mod sessions;
mod settings;
mod tasks;
mod throwaway;
mod tls;
mod told;
mod totals;
mod transfer;
mod twins;
mod vendor;
mod verify;
mod watch;
mod workers;
mod write;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use self::inspect::{DatabaseLook, DatabaseStatus, look, prune_preview, status};
pub use self::roles::{Granted, grant};
pub use self::settings::{Isolation, PostgresSettings};
pub use self::throwaway::Throwaway;
pub use self::transfer::{load, rows_of};
pub use self::vendor::Vendor;
pub use self::verify::guards;

use self::db::Db;
use self::listen::Listener;
use self::liveness::Liveness;
use self::watch::Watch;
use self::writer::Writer;
use super::observer::{Connections, Observer};
use super::{AnswerInputs, AnsweredInputs, Ask, Asked, InputRow, News, SealingKey, WantedKeys};
use super::{
    Applied, Apply, CandidateQuery, Due, KeyScope, LeaseRef, ListQuery, Mark, Payload, PayloadKind, Pruned, Result,
    Retention, Slice, Store, Submit, SubmitOutcome, TokenRow, TouchedQuery, UpstreamRow,
};
use super::{Keep, KeepOutcome, Progressed, TaskQuery, TaskRow, WorkerChange, WorkerRow, WorkersSeen};
use super::{
    SessionCap, SessionChange, SessionChanged, SessionKey, SessionQuery, SessionRetention, SessionRow, SessionStore,
    StreamMessage, StreamRow, StreamSeen,
};
use crate::model::decide::Answer;
use crate::model::event::EventRecord;
use crate::model::execution::{Head, State};
use crate::model::id::{ExecutionId, ProcessId};

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    db: Arc<Db>,
    writer: Writer,
    liveness: Arc<Liveness>,
    watch: Watch,
    rotation: lists::Rotation,
}

impl PostgresStore {
    /// Opens the database at `url` (`postgres://…`), and brings its schema up to date where the settings permit it.
    ///
    /// # Errors
    ///
    /// One sentence each, without the password: the database can not be reached, refuses the user, is not there, or has
    /// the schema of another program or release.
    pub async fn open(url: &str, settings: &PostgresSettings) -> Result<PostgresStore> {
        let settings = Arc::new(settings.clone());
        let db = Arc::new(Db::new(url, Arc::clone(&settings))?);
        db.migrate().await?;
        let liveness = Arc::new(Liveness::new(&db));
        let listener = Listener::of(url, &settings, &liveness)?;
        let watch = Watch::new(Duration::from_millis(settings.poll_interval_ms), listener);
        let writer = Writer::start(Arc::clone(&db), Arc::clone(&liveness));
        Ok(PostgresStore { db, writer, liveness, watch, rotation: lists::Rotation::default() })
    }

    /// Tells the others, after the commit, what there is to look at.
    async fn telling<T>(
        &self,
        write: impl Future<Output = Result<T>> + Send,
        news: impl FnOnce(&T) -> News + Send,
    ) -> Result<T> {
        let written = write.await?;
        self.watch.wrote(news(&written));
        Ok(written)
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn submit(&self, submit: Submit) -> Result<SubmitOutcome> {
        self.telling(self.writer.submit(submit), News::of_submitted).await
    }

    async fn apply(&self, apply: Apply) -> Result<Option<Applied>> {
        let is_of_holder = apply.command.is_of_holder();
        let news = |applied: &Option<Applied>| match applied {
            Some(applied) => News::of_applied(is_of_holder, applied, self.watch.is_attended()),
            None => News::default(),
        };
        self.telling(self.writer.apply(apply), news).await
    }

    fn mark(&self, id: ExecutionId, mark: Mark, now_ms: i64) {
        self.writer.mark(id, mark, now_ms);
    }

    async fn heartbeat(&self, leases: Vec<LeaseRef>, ttl_ms: i64, now_ms: i64) -> Result<Vec<Answer>> {
        self.writer.heartbeat(leases, ttl_ms, now_ms).await
    }

    async fn by_key(&self, scope: KeyScope) -> Result<Option<Head>> {
        heads::by_key(&self.db, &scope).await
    }

    async fn heads(&self, ids: &[ExecutionId]) -> Result<Vec<Head>> {
        heads::heads(&self.db, ids).await
    }

    async fn payload(&self, id: ExecutionId, kind: PayloadKind) -> Result<Option<Payload>> {
        payloads::payload(&self.db, id, kind).await
    }

    async fn events(&self, id: ExecutionId, after: i64, limit: usize) -> Result<Vec<EventRecord>> {
        events::events(&self.db, id, after, limit).await
    }

    async fn list(&self, query: ListQuery) -> Result<Vec<Head>> {
        pages::list(&self.db, query).await
    }

    async fn touched(&self, query: TouchedQuery) -> Result<Vec<Head>> {
        pages::touched(&self.db, query).await
    }

    async fn candidates(&self, query: CandidateQuery) -> Result<Vec<Head>> {
        lists::candidates(&self.db, &self.rotation, query).await
    }

    async fn due(&self, dead: &[ProcessId], now_ms: i64, limit: usize) -> Result<Due> {
        lists::due(&self.db, dead, now_ms, limit).await
    }

    async fn register_process(&self, process: ProcessId, now_ms: i64) -> Result<()> {
        self.liveness.register_process(process, now_ms).await?;
        self.watch.listen();
        Ok(())
    }

    fn since_silence(&self) -> Option<Duration> {
        self.liveness.since_silence()
    }

    async fn dead_processes(&self, now_ms: i64) -> Result<Vec<ProcessId>> {
        self.liveness.dead_processes(now_ms).await
    }

    async fn bury_process(&self, process: ProcessId) -> Result<()> {
        // What only it could run may run anywhere.
        self.telling(self.liveness.bury_process(process), |()| News::anything()).await
    }

    async fn prune_slice(&self, slice: Slice, retention: Retention, now_ms: i64) -> Result<Pruned> {
        prune::prune(&self.db, &slice, retention, now_ms).await
    }

    async fn news(&self, timeout_ms: u64) -> News {
        self.watch.news(timeout_ms).await
    }

    fn attend(&self) {
        self.watch.attend();
    }

    async fn put_token(&self, token: TokenRow) -> Result<()> {
        registry::put_token(&self.db, token).await
    }

    async fn revoke_token(&self, prefix: &str, now_ms: i64) -> Result<bool> {
        registry::revoke_token(&self.db, prefix, now_ms).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        registry::tokens(&self.db).await
    }

    async fn put_upstream(&self, row: UpstreamRow) -> Result<()> {
        registry::put_upstream(&self.db, row).await
    }

    async fn upstreams(&self) -> Result<Vec<UpstreamRow>> {
        registry::upstreams(&self.db).await
    }

    async fn put_worker(&self, row: WorkerRow) -> Result<Option<WorkerRow>> {
        self.telling(workers::put_worker(&self.db, row), |_| News::of_workers()).await
    }

    async fn change_workers(&self, ids: Vec<ProcessId>, change: WorkerChange, now_ms: i64) -> Result<usize> {
        let is_sign = matches!(change, WorkerChange::Seen { .. });
        let news = |_: &usize| if is_sign { News::default() } else { News::of_workers() };
        self.telling(workers::change_workers(&self.db, ids, change, now_ms), news).await
    }

    async fn workers(&self, known: Option<i64>) -> Result<Option<WorkersSeen>> {
        workers::workers(&self.db, known).await
    }

    async fn keep(&self, keep: Keep) -> Result<KeepOutcome> {
        workers::keep(&self.db, keep).await
    }

    async fn progressed(&self, id: ExecutionId) -> Result<Progressed> {
        workers::progressed(&self.db, id).await
    }

    async fn open_task(&self, row: TaskRow) -> Result<TaskRow> {
        tasks::open_task(&self.db, row).await
    }

    async fn task(&self, id: ExecutionId) -> Result<Option<TaskRow>> {
        tasks::task(&self.db, id).await
    }

    async fn show_task(&self, id: ExecutionId, seq: i64) -> Result<Option<TaskRow>> {
        tasks::show_task(&self.db, id, seq).await
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskRow>> {
        tasks::tasks(&self.db, query).await
    }

    async fn expired_tasks(&self, now_ms: i64, limit: usize) -> Result<Vec<TaskRow>> {
        tasks::expired_tasks(&self.db, now_ms, limit).await
    }

    async fn close_task(&self, id: ExecutionId, now_ms: i64) -> Result<bool> {
        tasks::close_task(&self.db, id, now_ms).await
    }

    async fn ask(&self, ask: Ask) -> Result<Asked> {
        let news = |asked: &Asked| match asked {
            Asked::Stored { head, .. } => News::of_head(head),
            Asked::Refused(_) => News::default(),
        };
        self.telling(inputs::ask(&self.db, ask), news).await
    }

    async fn answer(&self, answers: AnswerInputs) -> Result<Option<AnsweredInputs>> {
        let news = |answered: &Option<AnsweredInputs>| match answered {
            Some(answered) => News::of_head(&answered.head),
            None => News::default(),
        };
        self.telling(inputs::answer(&self.db, answers), news).await
    }

    async fn inputs(&self, id: ExecutionId) -> Result<Vec<InputRow>> {
        inputs::inputs(&self.db, id).await
    }

    async fn inputs_due(&self, until_ms: i64, limit: usize) -> Result<Vec<(ExecutionId, u32)>> {
        inputs::inputs_due(&self.db, until_ms, limit).await
    }

    async fn sealing_keys(&self, wanted: WantedKeys) -> Result<Vec<SealingKey>> {
        inputs::sealing_keys(&self.db, wanted).await
    }

    async fn clock_ms(&self) -> Result<Option<i64>> {
        registry::clock_ms(&self.db).await.map(Some)
    }

    async fn totals(&self) -> Result<BTreeMap<State, u64>> {
        lists::totals(&self.db).await
    }

    async fn check(&self) -> Result<()> {
        self.writer.check().await
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.db.observed().set(observer);
    }

    fn connections(&self) -> Connections {
        let pool = self.db.connections();
        Connections { waiting: pool.waiting + self.writer.waiting(), ..pool }
    }

    async fn close(&self) {
        self.writer.close().await;
        self.watch.close();
        self.liveness.release().await;
        self.db.close();
    }
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn open_session(&self, row: SessionRow, cap: SessionCap) -> Result<bool> {
        sessions::open_session(&self.db, row, cap).await
    }

    async fn session(&self, key: SessionKey) -> Result<Option<SessionRow>> {
        sessions::session(&self.db, key).await
    }

    async fn session_is_busy(&self, key: SessionKey) -> Result<bool> {
        sessions::session_is_busy(&self.db, key).await
    }

    async fn change_session(&self, key: SessionKey, change: SessionChange, now_ms: i64) -> Result<SessionChanged> {
        sessions::change_session(&self.db, key, change, now_ms).await
    }

    async fn touch_sessions(&self, seen: Vec<(SessionKey, i64)>) -> Result<()> {
        sessions::touch_sessions(&self.db, seen).await
    }

    async fn closed_sessions(&self, since_ms: i64) -> Result<Vec<SessionKey>> {
        sessions::closed_sessions(&self.db, since_ms).await
    }

    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionRow>> {
        sessions::sessions(&self.db, query).await
    }

    async fn open_stream(&self, row: StreamRow) -> Result<()> {
        sessions::open_stream(&self.db, row).await
    }

    async fn push_message(&self, message: StreamMessage) -> Result<i64> {
        sessions::push_message(&self.db, message).await
    }

    async fn stream(&self, session: SessionKey, stream: &str, after: i64, limit: usize) -> Result<StreamSeen> {
        sessions::stream(&self.db, session, stream, after, limit).await
    }

    async fn prune_sessions(&self, retention: SessionRetention) -> Result<usize> {
        sessions::prune_sessions(&self.db, retention).await
    }
}
