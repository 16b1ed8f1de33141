//! Floor 1: where executions live. The trait every driver implements, and the types that cross it. Knows SQL and decides
//! nothing: every change of an execution is what the pure `model` decides on the row as it stands.

mod asking;
pub mod conformance;
pub mod counting;
pub mod crash;
mod deciding;
mod encoding;
mod input;
mod news;
mod observer;
mod open;
pub mod piece;
pub mod postgres;
mod retention;
pub mod series;
mod session;
pub mod sqlite;
mod task;
pub mod transfer;
pub mod verify;
mod worker;

pub use crate::model::payload::Payload;
pub use input::{
    AnswerInputs, AnsweredInputs, Ask, Asked, Fate, InputOutcome, InputRow, NewAnswer, NewQuestion, SealingKey,
    WantedKeys,
};
pub use news::News;
pub use observer::{Committed, Connections, Observer};
pub use open::{StoreSettings, is_postgres, open};
pub use piece::PieceStore;
pub use postgres::PostgresSettings;
pub use retention::{Pruned, Retention, Slice};
pub use series::SeriesStore;
pub use session::{
    SessionCap, SessionChange, SessionChanged, SessionKey, SessionQuery, SessionRetention, SessionRow, SessionStore,
    StreamMessage, StreamRow, StreamSeen,
};
pub use sqlite::SqliteSettings;
pub use task::{TaskQuery, TaskRow, TaskVariant};
pub use worker::{Keep, KeepOutcome, Kept, LeaseKey, Progressed, WorkerChange, WorkerKind, WorkerRow, WorkersSeen};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use crate::model::decide::{Answer, Command};
use crate::model::event::EventRecord;
use crate::model::execution::{Head, State};
use crate::model::id::{ExecutionId, OperationId, ProcessId};
use crate::model::submit::Submission;

/// Why the store could not do something.
#[derive(Debug, Error)]
pub enum Error {
    /// Nothing can be read or written now; trying again later may work.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The disk is full or read-only; nothing was written.
    #[error("the store can not write: {0}")]
    CannotWrite(String),
    /// What is stored does not hold together; nothing of it is served.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The file was written by a newer program.
    #[error("the store has schema version {found}, this program knows up to {known}; use a newer durable-mcp")]
    TooNew {
        /// The version found.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// The database was left by an older program, and nobody permitted to change it.
    #[error("the store has schema version {found}, this program needs {known}; run `durable-mcp db migrate`")]
    TooOld {
        /// The version found.
        found: i64,
        /// The version this program needs.
        known: i64,
    },
    /// The queue of writes is full.
    #[error("the store is overloaded: {0} writes wait")]
    Overloaded(usize),
    /// Something that was asked for can not be stored as it is; the same again fails again.
    #[error("the store can not hold this: {0}")]
    Unstorable(String),
    /// A fault of our own.
    #[error("internal store fault: {0}")]
    Internal(String),
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Unavailable(_) => "store_unavailable",
            Error::CannotWrite(_) => "store_cannot_write",
            Error::Damaged(_) => "store_damaged",
            Error::TooNew { .. } => "store_too_new",
            Error::TooOld { .. } => "store_too_old",
            Error::Overloaded(_) => "store_overloaded",
            Error::Unstorable(_) => "store_unstorable",
            Error::Internal(_) => "store_internal",
        }
    }
}

/// A result of the store.
pub type Result<T> = std::result::Result<T, Error>;

/// Which payload of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// The call's `arguments`.
    Arguments,
    /// What else of the call goes upstream (`_meta` of the caller), if anything.
    Meta,
    /// The tool's whole `result`.
    Result,
    /// The upstream's whole JSON-RPC `error`.
    Error,
}

impl PayloadKind {
    /// The stored name.
    pub fn as_str(self) -> &'static str {
        match self {
            PayloadKind::Arguments => "arguments",
            PayloadKind::Meta => "meta",
            PayloadKind::Result => "result",
            PayloadKind::Error => "error",
        }
    }
}

/// A submission with what the store keeps beside the row.
#[derive(Clone, Debug)]
pub struct Submit {
    /// What is decided on.
    pub submission: Submission,
    /// The arguments' exact text.
    pub arguments: Payload,
    /// What else of the call goes upstream.
    pub meta: Option<Payload>,
    /// The write's id, for repetition after an ambiguous commit.
    pub operation: OperationId,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
}

/// What became of a [`Submit`]. Nothing is answered before its commit.
#[derive(Clone, Debug)]
pub enum SubmitOutcome {
    /// Stored; leased already when the row says so.
    New(Box<Head>),
    /// The execution that holds the key, or the twin it was attached to.
    Existing(Box<Head>),
    /// An equal unkeyed call is waited for; nothing was stored.
    Waited(ExecutionId),
    /// The key stands for another call. The id is absent when another principal holds the key.
    Conflict(Option<ExecutionId>),
}

/// A command for one execution.
#[derive(Clone, Debug)]
pub struct Apply {
    /// Which.
    pub id: ExecutionId,
    /// What.
    pub command: Command,
    /// The payload that comes with `Complete`, `Fail`, `Resolve` or `Reconcile`; stored only when the decision records it.
    pub payload: Option<(PayloadKind, Payload)>,
    /// The write's id.
    pub operation: OperationId,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// The row last seen: an optimistic driver decides on it first. A driver that locks ignores it.
    pub seen: Option<Box<Head>>,
}

/// What became of an [`Apply`].
#[derive(Clone, Debug)]
pub struct Applied {
    /// The row after the command.
    pub head: Head,
    /// What to tell whoever sent it.
    pub answer: Answer,
}

/// A delivery mark. Written lazily with the next commit, in the order of all writes of this process; never an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Somebody waits in this process.
    Waiting(ProcessId),
    /// Nobody waits in this process any more.
    Left(ProcessId),
    /// Nobody waits any more; the caller left with a handle.
    HandleGiven(ProcessId),
    /// An answer about the end (or one that was asked for) was written whole; nobody waits.
    Delivered(ProcessId),
}

/// Which work a worker can take.
#[derive(Clone, Debug)]
pub struct CandidateQuery {
    /// The upstreams with a free slot.
    pub upstreams: Vec<String>,
    /// The asking process: executions bound to another living process are left out.
    pub process: ProcessId,
    /// Processes known to be dead.
    pub dead: Vec<ProcessId>,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// At most so many.
    pub limit: usize,
}

/// What the scheduler has to settle.
#[derive(Clone, Debug, Default)]
pub struct Due {
    /// Leased or held executions whose lease ran out or whose process is dead.
    pub expired: Vec<Head>,
    /// Scheduled executions whose time came.
    pub promotable: Vec<ExecutionId>,
    /// Ready or scheduled executions past their total time or their time in the queue.
    pub timed_out: Vec<ExecutionId>,
    /// The earliest time at which something else will be due, in milliseconds since the epoch.
    pub next_at_ms: Option<i64>,
}

/// A lease as its holder knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRef {
    /// Which execution.
    pub id: ExecutionId,
    /// The lease's number.
    pub fencing_token: i64,
}

/// What a listing shows. Newest first; all given conditions hold at once.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only this principal.
    pub principal: Option<String>,
    /// Only this anonymous caller (session or client name).
    pub caller: Option<String>,
    /// Only these states; empty means all.
    pub states: Vec<State>,
    /// Only this upstream.
    pub upstream: Option<String>,
    /// Only this tool.
    pub tool: Option<String>,
    /// Only this idempotency key.
    pub key: Option<String>,
    /// Only executions with more attempts than this.
    pub attempts_over: Option<u32>,
    /// Only executions whose last error has this code.
    pub error_code: Option<String>,
    /// Only executions submitted then or later, in milliseconds since the epoch.
    pub since_ms: Option<i64>,
    /// Only executions submitted before then, in milliseconds since the epoch.
    pub until_ms: Option<i64>,
    /// Only executions that completed although an attempt was lost.
    pub recovered: bool,
    /// Only executions older than this one (keyset page).
    pub before: Option<ExecutionId>,
    /// Only ids that start with this text.
    pub id_prefix: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl ListQuery {
    /// Whether only errors or repeated attempts are asked for: they have small indexes.
    pub(crate) fn is_of_rare(&self) -> bool {
        self.error_code.is_some() || self.recovered || self.attempts_over.is_some_and(|attempts| attempts > 0)
    }
}

/// Which executions may have events in a span of time.
#[derive(Clone, Debug, Default)]
pub struct TouchedQuery {
    /// What must hold for the execution as it stands now; its page and limit are not looked at.
    pub filter: ListQuery,
    /// The span's first moment, in milliseconds since the epoch.
    pub since_ms: i64,
    /// The first moment after the span.
    pub until_ms: i64,
    /// Only executions with a greater id (keyset page).
    pub after: Option<ExecutionId>,
    /// At most so many.
    pub limit: usize,
}

/// A hashed API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// The public part, shown in lists.
    pub prefix: String,
    /// SHA-256 of the whole token, lower-case hex.
    pub sha256: String,
    /// The subject.
    pub principal: String,
    /// The tenant border.
    pub namespace: String,
    /// Space-separated wire names.
    pub scopes: String,
    /// Milliseconds since the epoch.
    pub created_at_ms: i64,
    /// Milliseconds since the epoch; absent: never.
    pub expires_at_ms: Option<i64>,
    /// Milliseconds since the epoch; absent: valid.
    pub revoked_at_ms: Option<i64>,
}

/// The last known picture of an upstream: its tools and what it said of itself, as one JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamRow {
    /// The upstream's name.
    pub name: String,
    /// Its snapshot.
    pub snapshot: Payload,
    /// Milliseconds since the epoch.
    pub updated_at_ms: i64,
}

/// A driver. Object-safe; every method may be called from any task. A method that writes returns after its commit.
#[async_trait]
pub trait Store: SessionStore + SeriesStore + PieceStore + Send + Sync + 'static {
    /// Stores a call, or finds the execution that takes it.
    async fn submit(&self, submit: Submit) -> Result<SubmitOutcome>;

    /// Runs one command on one execution; `None` when there is no such execution.
    async fn apply(&self, apply: Apply) -> Result<Option<Applied>>;

    /// Queues a delivery mark behind every write already queued by this process. Does not wait.
    fn mark(&self, id: ExecutionId, mark: Mark, now_ms: i64);

    /// Extends leases in one write; the answers are in the order of `leases`. `Extended`, `Stale` or `Ended`.
    async fn heartbeat(&self, leases: Vec<LeaseRef>, ttl_ms: i64, now_ms: i64) -> Result<Vec<Answer>>;

    /// The execution that holds `key`, from a reader: a fast answer for a repeat, never the reason to run something.
    async fn by_key(&self, scope: KeyScope) -> Result<Option<Head>>;

    /// Rows by id; missing ones are left out.
    async fn heads(&self, ids: &[ExecutionId]) -> Result<Vec<Head>>;

    /// One payload; `None` when it was never there or retention took it.
    async fn payload(&self, id: ExecutionId, kind: PayloadKind) -> Result<Option<Payload>>;

    /// Events with `seq > after`, in order, at most `limit`.
    async fn events(&self, id: ExecutionId, after: i64, limit: usize) -> Result<Vec<EventRecord>>;

    /// A page of rows, newest first.
    async fn list(&self, query: ListQuery) -> Result<Vec<Head>>;

    /// Executions that may have events in a span of time, in the order of their ids; none that has is left out. Reads
    /// nothing of the log itself: an execution may come although its events lie outside.
    async fn touched(&self, query: TouchedQuery) -> Result<Vec<Head>>;

    /// Ready executions (and scheduled ones that are due), oldest first, for a worker to claim by `apply(Lease)`.
    async fn candidates(&self, query: CandidateQuery) -> Result<Vec<Head>>;

    /// What has to be settled now; `dead` are processes whose leases end at once. At most `limit` of each kind.
    async fn due(&self, dead: &[ProcessId], now_ms: i64, limit: usize) -> Result<Due>;

    /// Announces this process; until it is dropped with the store (or the process dies) it counts as alive.
    async fn register_process(&self, process: ProcessId, now_ms: i64) -> Result<()>;

    /// How long ago this process could at last not say in time that it lives, no time at all while it can not: then perhaps
    /// nobody could, as while a standby that has to acknowledge it stands still. `None` when it always could, and where
    /// the operating system tells who lives.
    fn since_silence(&self) -> Option<Duration>;

    /// Processes that are announced, hold leases or wait, and are dead: asks the operating system, not a clock. And
    /// remote workers of which nothing was heard for too long at `now_ms`, or that are gone and still hold leases.
    async fn dead_processes(&self, now_ms: i64) -> Result<Vec<ProcessId>>;

    /// Forgets a dead process: its waiting marks go, its row goes, and what was bound to it is bound no more. Called after
    /// its leases are settled. The row of a worker is kept as gone: a late result of its newest lease is still taken.
    async fn bury_process(&self, process: ProcessId) -> Result<()>;

    /// Deletes what retention no longer keeps of these executions, in one small batch.
    async fn prune_slice(&self, slice: Slice, retention: Retention, now_ms: i64) -> Result<Pruned>;

    /// The same of all.
    async fn prune(&self, retention: Retention, now_ms: i64) -> Result<Pruned> {
        self.prune_slice(Slice::default(), retention, now_ms).await
    }

    /// Waits until another process says that it changed something, it is time to look, or `timeout_ms` passed. Polls
    /// cheaply. What is said is told once, to whoever waits first: a process has one place that hears.
    async fn news(&self, timeout_ms: u64) -> News;

    /// Somebody here waits for executions that run elsewhere: for some time others say how these end. Costs next to
    /// nothing when it is repeated.
    fn attend(&self);

    /// Waits until another process may have changed something, or `timeout_ms` passed.
    async fn changed(&self, timeout_ms: u64) {
        self.attend();
        let _ = self.news(timeout_ms).await;
    }

    /// Adds a token; `revoke` by prefix; all of them.
    async fn put_token(&self, token: TokenRow) -> Result<()>;
    /// Marks a token as revoked; false when there is none with this prefix.
    async fn revoke_token(&self, prefix: &str, now_ms: i64) -> Result<bool>;
    /// Every token, revoked ones included.
    async fn tokens(&self) -> Result<Vec<TokenRow>>;

    /// Keeps the last known picture of an upstream.
    async fn put_upstream(&self, row: UpstreamRow) -> Result<()>;
    /// The last known pictures.
    async fn upstreams(&self) -> Result<Vec<UpstreamRow>>;

    /// Registers a worker, again or for the first time; the row as it is stored, with the key of its first registration.
    /// `None` when the id is another principal's, another namespace's, or of another kind.
    async fn put_worker(&self, row: WorkerRow) -> Result<Option<WorkerRow>>;
    /// Notes what happened to workers that are not gone; returns how many of `ids` those were.
    async fn change_workers(&self, ids: Vec<ProcessId>, change: WorkerChange, now_ms: i64) -> Result<usize>;
    /// Every worker, gone ones included; `None` when nothing but signs of life changed since change number `known`.
    async fn workers(&self, known: Option<i64>) -> Result<Option<WorkersSeen>>;

    /// Keeps a step's result or a checkpoint for later attempts, in one transaction with the look at the lease.
    async fn keep(&self, keep: Keep) -> Result<KeepOutcome>;
    /// What the attempts of an execution have kept so far.
    async fn progressed(&self, id: ExecutionId) -> Result<Progressed>;

    /// Notes that an execution is seen as a task, with a time that ends as late as the latest wish; the row as it is
    /// stored. One whose time was over by `row.created_at_ms` starts anew.
    async fn open_task(&self, row: TaskRow) -> Result<TaskRow>;
    /// A task, also one whose time is over. Read after its execution's row, it knows every end shown before that.
    async fn task(&self, id: ExecutionId) -> Result<Option<TaskRow>>;
    /// Keeps the end with event `seq` as the one that was shown first, unless there is one, or the execution is no longer
    /// `unknown` with that event as its last; the row after that.
    async fn show_task(&self, id: ExecutionId, seq: i64) -> Result<Option<TaskRow>>;
    /// A page of somebody's own tasks, newest first.
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskRow>>;
    /// Tasks whose time is over, the longest first.
    async fn expired_tasks(&self, now_ms: i64, limit: usize) -> Result<Vec<TaskRow>>;
    /// Forgets a task whose time is over; false when there is none, or it was given more time.
    async fn close_task(&self, id: ExecutionId, now_ms: i64) -> Result<bool>;
    /// Stores questions to the client, in one transaction with the look at the lease and with what they mean for the
    /// execution.
    async fn ask(&self, ask: Ask) -> Result<Asked>;
    /// Closes questions, each once, in one transaction with what that means for the execution; `None` when there is no
    /// such execution.
    async fn answer(&self, answers: AnswerInputs) -> Result<Option<AnsweredInputs>>;
    /// Every question of an execution, in order.
    async fn inputs(&self, id: ExecutionId) -> Result<Vec<InputRow>>;
    /// Open questions asked by `until_ms`, the oldest first, at most `limit`.
    async fn inputs_due(&self, until_ms: i64, limit: usize) -> Result<Vec<(ExecutionId, u32)>>;
    /// The newest sealing key and the one before it, newest first; makes one when it is due.
    async fn sealing_keys(&self, wanted: WantedKeys) -> Result<Vec<SealingKey>>;

    /// What the store's own clock says, in milliseconds since the epoch; `None` where it has none of its own.
    async fn clock_ms(&self) -> Result<Option<i64>>;

    /// Executions per state, for checks and totals.
    async fn totals(&self) -> Result<BTreeMap<State, u64>>;

    /// Reads and writes nothing of value, to learn whether the store works.
    async fn check(&self) -> Result<()>;

    /// Names who is told of what this process commits. Once: the first one stays.
    fn observe(&self, observer: Arc<dyn Observer>);

    /// How its connections stand.
    fn connections(&self) -> Connections;

    /// Writes what is queued, checkpoints and closes. Later calls fail as unavailable.
    async fn close(&self);
}

/// What a key is unique in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyScope {
    /// The tenant border.
    pub namespace: String,
    /// Whose tool.
    pub upstream: String,
    /// The tool.
    pub tool: String,
    /// The client's key.
    pub key: String,
}
