//! A real store in front of which a test puts faults. Changes nothing else.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::engine::clock::Manual;
use crate::model::decide::Answer;
use crate::model::event::EventRecord;
use crate::model::execution::{Head, State};
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::piece::{Piece, PieceStore};
use crate::store::series::{
    Ended, EndedQuery, Log, OpenQuery, PutSeries, SeriesQuery, SeriesRow, SeriesStore, Standing, ToRead, Whose,
};
use crate::store::{
    self, Applied, Apply, CandidateQuery, Due, KeyScope, LeaseRef, ListQuery, Mark, Payload, PayloadKind, Pruned,
    Result, Retention, Store, Submit, SubmitOutcome, TokenRow, TouchedQuery, UpstreamRow,
};
use crate::store::{AnswerInputs, AnsweredInputs, Ask, Asked, InputRow, News, SealingKey, WantedKeys};
use crate::store::{Keep, KeepOutcome, Progressed, TaskQuery, TaskRow, WorkerChange, WorkerRow, WorkersSeen};
use crate::store::{
    SessionCap, SessionChange, SessionChanged, SessionKey, SessionQuery, SessionRetention, SessionRow, SessionStore,
    Slice, StreamMessage, StreamRow, StreamSeen,
};

/// A real store whose methods fail as often as a test wants.
pub(crate) struct Faulty {
    inner: Arc<dyn Store>,
    faults: Mutex<HashMap<&'static str, usize>>,
    unheard: Mutex<HashMap<&'static str, usize>>,
    calls: Mutex<HashMap<&'static str, usize>>,
    submitted: Mutex<Option<Submitted>>,
    /// The beginnings of the spans in which ended executions were read.
    counted_from: Mutex<Vec<i64>>,
    reads_take: Mutex<Option<(Arc<Manual>, i64)>>,
    silence: Mutex<Option<Duration>>,
}

type Submitted = Box<dyn Fn(ExecutionId) + Send>;

impl Faulty {
    pub(crate) fn around(inner: Arc<dyn Store>) -> Arc<Faulty> {
        Arc::new(Faulty {
            inner,
            faults: Mutex::default(),
            unheard: Mutex::default(),
            calls: Mutex::default(),
            submitted: Mutex::default(),
            counted_from: Mutex::default(),
            reads_take: Mutex::default(),
            silence: Mutex::default(),
        })
    }

    /// So long ago this process could not say that it lives.
    pub(crate) fn was_silent(&self, ago: Duration) {
        *self.silence.lock().unwrap() = Some(ago);
    }

    /// Each read of what ended takes so long by this clock.
    pub(crate) fn reads_take(&self, time: Arc<Manual>, ms: i64) {
        *self.reads_take.lock().unwrap() = Some((time, ms));
    }

    /// The beginnings of the spans in which ended executions were read since the last time.
    pub(crate) fn counted_from(&self) -> Vec<i64> {
        std::mem::take(&mut self.counted_from.lock().unwrap())
    }

    /// Each new execution is told to `told` before whoever submitted it hears of it.
    pub(crate) fn on_submitted(&self, told: impl Fn(ExecutionId) + Send + 'static) {
        *self.submitted.lock().unwrap() = Some(Box::new(told));
    }

    /// The next `times` calls of `method` fail as unavailable.
    pub(crate) fn fail(&self, method: &'static str, times: usize) {
        self.faults.lock().unwrap().insert(method, times);
    }

    /// The next `times` calls of `method`, which writes, do their work, and nobody hears of it.
    pub(crate) fn leave_unheard(&self, method: &'static str, times: usize) {
        self.unheard.lock().unwrap().insert(method, times);
    }

    fn heard<T>(&self, method: &'static str, done: Result<T>) -> Result<T> {
        match self.unheard.lock().unwrap().get_mut(method) {
            Some(left) if *left > 0 => {
                *left -= 1;
                done.and(Err(store::Error::Unavailable("nobody heard of it".into())))
            }
            _ => done,
        }
    }

    pub(crate) fn calls(&self, method: &'static str) -> usize {
        self.calls.lock().unwrap().get(method).copied().unwrap_or_default()
    }

    pub(crate) fn faults_left(&self, method: &'static str) -> usize {
        self.faults.lock().unwrap().get(method).copied().unwrap_or_default()
    }

    fn pass(&self, method: &'static str) -> Result<()> {
        *self.calls.lock().unwrap().entry(method).or_default() += 1;
        match self.faults.lock().unwrap().get_mut(method) {
            Some(left) if *left > 0 => {
                *left -= 1;
                Err(store::Error::Unavailable("a test wants it".into()))
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl SessionStore for Faulty {
    async fn open_session(&self, row: SessionRow, cap: SessionCap) -> Result<bool> {
        self.pass("open_session")?;
        self.inner.open_session(row, cap).await
    }
    async fn session(&self, key: SessionKey) -> Result<Option<SessionRow>> {
        self.pass("session")?;
        self.inner.session(key).await
    }
    async fn session_is_busy(&self, key: SessionKey) -> Result<bool> {
        self.inner.session_is_busy(key).await
    }
    async fn change_session(&self, key: SessionKey, change: SessionChange, now_ms: i64) -> Result<SessionChanged> {
        self.pass("change_session")?;
        self.inner.change_session(key, change, now_ms).await
    }
    async fn touch_sessions(&self, seen: Vec<(SessionKey, i64)>) -> Result<()> {
        self.pass("touch_sessions")?;
        self.inner.touch_sessions(seen).await
    }
    async fn closed_sessions(&self, since_ms: i64) -> Result<Vec<SessionKey>> {
        self.inner.closed_sessions(since_ms).await
    }
    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionRow>> {
        self.inner.sessions(query).await
    }
    async fn open_stream(&self, row: StreamRow) -> Result<()> {
        self.pass("open_stream")?;
        self.inner.open_stream(row).await
    }
    async fn push_message(&self, message: StreamMessage) -> Result<i64> {
        self.pass("push_message")?;
        self.inner.push_message(message).await
    }
    async fn stream(&self, session: SessionKey, stream: &str, after: i64, limit: usize) -> Result<StreamSeen> {
        self.inner.stream(session, stream, after, limit).await
    }
    async fn prune_sessions(&self, retention: SessionRetention) -> Result<usize> {
        self.inner.prune_sessions(retention).await
    }
}

#[async_trait]
impl PieceStore for Faulty {
    async fn payload_piece(&self, id: ExecutionId, kind: PayloadKind, number: u32) -> Result<Option<Piece>> {
        self.inner.payload_piece(id, kind, number).await
    }
}

#[async_trait]
impl SeriesStore for Faulty {
    async fn standing(&self, whose: Whose, now_ms: i64) -> Result<Standing> {
        self.inner.standing(whose, now_ms).await
    }
    async fn logs(&self, ids: Vec<ExecutionId>) -> Result<Vec<Log>> {
        self.inner.logs(ids).await
    }
    async fn open_in(&self, query: OpenQuery) -> Result<Vec<ToRead>> {
        self.inner.open_in(query).await
    }
    async fn ended_in(&self, query: EndedQuery) -> Result<Ended> {
        self.pass("ended_in")?;
        self.counted_from.lock().unwrap().push(query.since_ms);
        if let Some((time, ms)) = &*self.reads_take.lock().unwrap() {
            time.advance(*ms);
        }
        self.inner.ended_in(query).await
    }
    async fn series_closed_until(&self) -> Result<i64> {
        self.inner.series_closed_until().await
    }
    async fn put_series(&self, put: PutSeries) -> Result<()> {
        self.pass("put_series")?;
        self.inner.put_series(put).await
    }
    async fn series(&self, query: SeriesQuery) -> Result<Vec<SeriesRow>> {
        self.inner.series(query).await
    }
}

#[async_trait]
impl Store for Faulty {
    async fn submit(&self, submit: Submit) -> Result<SubmitOutcome> {
        self.pass("submit")?;
        let outcome = self.inner.submit(submit).await;
        let outcome = self.heard("submit", outcome)?;
        if let (SubmitOutcome::New(head), Some(told)) = (&outcome, &*self.submitted.lock().unwrap()) {
            told(head.id());
        }
        Ok(outcome)
    }
    async fn apply(&self, apply: Apply) -> Result<Option<Applied>> {
        self.pass("apply")?;
        let applied = self.inner.apply(apply).await;
        self.heard("apply", applied)
    }
    fn mark(&self, id: ExecutionId, mark: Mark, now_ms: i64) {
        self.inner.mark(id, mark, now_ms);
    }
    async fn heartbeat(&self, leases: Vec<LeaseRef>, ttl_ms: i64, now_ms: i64) -> Result<Vec<Answer>> {
        self.pass("heartbeat")?;
        self.inner.heartbeat(leases, ttl_ms, now_ms).await
    }
    async fn by_key(&self, scope: KeyScope) -> Result<Option<Head>> {
        self.pass("by_key")?;
        self.inner.by_key(scope).await
    }
    async fn heads(&self, ids: &[ExecutionId]) -> Result<Vec<Head>> {
        self.pass("heads")?;
        self.inner.heads(ids).await
    }
    async fn payload(&self, id: ExecutionId, kind: PayloadKind) -> Result<Option<Payload>> {
        self.pass("payload")?;
        self.inner.payload(id, kind).await
    }
    async fn events(&self, id: ExecutionId, after: i64, limit: usize) -> Result<Vec<EventRecord>> {
        self.inner.events(id, after, limit).await
    }
    async fn list(&self, query: ListQuery) -> Result<Vec<Head>> {
        self.inner.list(query).await
    }
    async fn touched(&self, query: TouchedQuery) -> Result<Vec<Head>> {
        self.inner.touched(query).await
    }
    async fn candidates(&self, query: CandidateQuery) -> Result<Vec<Head>> {
        self.pass("candidates")?;
        self.inner.candidates(query).await
    }
    async fn due(&self, dead: &[ProcessId], now_ms: i64, limit: usize) -> Result<Due> {
        self.pass("due")?;
        self.inner.due(dead, now_ms, limit).await
    }
    async fn register_process(&self, process: ProcessId, now_ms: i64) -> Result<()> {
        self.inner.register_process(process, now_ms).await
    }
    fn since_silence(&self) -> Option<Duration> {
        self.silence.lock().unwrap().or_else(|| self.inner.since_silence())
    }
    async fn dead_processes(&self, now_ms: i64) -> Result<Vec<ProcessId>> {
        self.inner.dead_processes(now_ms).await
    }
    async fn bury_process(&self, process: ProcessId) -> Result<()> {
        self.inner.bury_process(process).await
    }
    async fn prune_slice(&self, slice: Slice, retention: Retention, now_ms: i64) -> Result<Pruned> {
        self.pass("prune")?;
        self.inner.prune_slice(slice, retention, now_ms).await
    }
    async fn news(&self, timeout_ms: u64) -> News {
        self.inner.news(timeout_ms).await
    }
    fn attend(&self) {
        self.inner.attend();
    }
    async fn put_token(&self, token: TokenRow) -> Result<()> {
        self.inner.put_token(token).await
    }
    async fn revoke_token(&self, prefix: &str, now_ms: i64) -> Result<bool> {
        self.inner.revoke_token(prefix, now_ms).await
    }
    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        self.inner.tokens().await
    }
    async fn put_upstream(&self, row: UpstreamRow) -> Result<()> {
        self.inner.put_upstream(row).await
    }
    async fn upstreams(&self) -> Result<Vec<UpstreamRow>> {
        self.inner.upstreams().await
    }
    async fn put_worker(&self, row: WorkerRow) -> Result<Option<WorkerRow>> {
        self.pass("put_worker")?;
        self.inner.put_worker(row).await
    }
    async fn change_workers(&self, ids: Vec<ProcessId>, change: WorkerChange, now_ms: i64) -> Result<usize> {
        self.pass("change_workers")?;
        self.inner.change_workers(ids, change, now_ms).await
    }
    async fn workers(&self, known: Option<i64>) -> Result<Option<WorkersSeen>> {
        self.pass("workers")?;
        self.inner.workers(known).await
    }
    async fn keep(&self, keep: Keep) -> Result<KeepOutcome> {
        self.pass("keep")?;
        self.inner.keep(keep).await
    }
    async fn progressed(&self, id: ExecutionId) -> Result<Progressed> {
        self.pass("progressed")?;
        self.inner.progressed(id).await
    }
    async fn open_task(&self, row: TaskRow) -> Result<TaskRow> {
        self.pass("open_task")?;
        self.inner.open_task(row).await
    }
    async fn task(&self, id: ExecutionId) -> Result<Option<TaskRow>> {
        self.pass("task")?;
        self.inner.task(id).await
    }
    async fn show_task(&self, id: ExecutionId, seq: i64) -> Result<Option<TaskRow>> {
        self.pass("show_task")?;
        self.inner.show_task(id, seq).await
    }
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskRow>> {
        self.pass("tasks")?;
        self.inner.tasks(query).await
    }
    async fn expired_tasks(&self, now_ms: i64, limit: usize) -> Result<Vec<TaskRow>> {
        self.pass("expired_tasks")?;
        self.inner.expired_tasks(now_ms, limit).await
    }
    async fn close_task(&self, id: ExecutionId, now_ms: i64) -> Result<bool> {
        self.pass("close_task")?;
        self.inner.close_task(id, now_ms).await
    }
    async fn ask(&self, ask: Ask) -> Result<Asked> {
        self.pass("ask")?;
        self.inner.ask(ask).await
    }
    async fn answer(&self, answers: AnswerInputs) -> Result<Option<AnsweredInputs>> {
        self.pass("answer")?;
        self.inner.answer(answers).await
    }
    async fn inputs(&self, id: ExecutionId) -> Result<Vec<InputRow>> {
        self.pass("inputs")?;
        self.inner.inputs(id).await
    }
    async fn inputs_due(&self, until_ms: i64, limit: usize) -> Result<Vec<(ExecutionId, u32)>> {
        self.inner.inputs_due(until_ms, limit).await
    }
    async fn sealing_keys(&self, wanted: WantedKeys) -> Result<Vec<SealingKey>> {
        self.inner.sealing_keys(wanted).await
    }
    async fn clock_ms(&self) -> Result<Option<i64>> {
        self.inner.clock_ms().await
    }
    async fn totals(&self) -> Result<BTreeMap<State, u64>> {
        self.inner.totals().await
    }
    async fn check(&self) -> Result<()> {
        self.inner.check().await
    }
    fn observe(&self, observer: Arc<dyn store::Observer>) {
        self.inner.observe(observer);
    }
    fn connections(&self) -> store::Connections {
        self.inner.connections()
    }
    async fn close(&self) {
        self.inner.close().await;
    }
}
