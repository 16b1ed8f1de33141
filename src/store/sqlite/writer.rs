//! The one thread that writes. Commands that have queued up share a transaction and are answered after its commit; a
//! system without load waits for no company. One bad command fails alone. Knows no command from another.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::busy;
use super::checkpoint::Checkpointer;
use super::fault::{Sql, repeat};
use super::heads::Heads;
use super::liveness::Liveness;
use super::marks::{self, QueuedMark};
use super::policies::{Policies, StoredPolicies};
use super::queue::{Empty, Outlet};
use super::settings::SqliteSettings;
use super::turns::Turns;
use super::tx::Tx;
use super::unscheduled;
use super::watch::Watch;
use crate::store::observer::{Committed, Observed};
use crate::store::{Error, Result, crash};

/// What the writer's queue holds.
pub(super) enum Job {
    /// A command.
    Write(Box<dyn Command>),
    /// A delivery mark.
    Mark(QueuedMark),
    /// Somebody waits for other processes' changes.
    Look,
    /// The store closes.
    Close(oneshot::Sender<()>),
}

/// A command in the queue. Running it again after a rollback must be the same as running it once.
pub(super) trait Command: Send {
    /// Runs in the open transaction and remembers what to answer.
    fn run(&mut self, tx: &mut Tx<'_>) -> Sql<()>;
    /// Answers: what was remembered, or the error.
    fn answer(self: Box<Self>, fate: Result<()>);
}

/// A command made of a function.
pub(super) struct Task<F, T> {
    run: F,
    output: Option<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<F, T> Task<F, T> {
    pub(super) fn new(run: F) -> (Self, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        (Task { run, output: None, reply }, answer)
    }
}

impl<F: FnMut(&mut Tx<'_>) -> Sql<T> + Send, T: Send> Command for Task<F, T> {
    fn run(&mut self, tx: &mut Tx<'_>) -> Sql<()> {
        self.output = Some((self.run)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, fate: Result<()>) {
        let answer = match (fate, self.output) {
            (Ok(()), Some(output)) => Ok(output),
            (Ok(()), None) => Err(Error::Internal("a command was never run".into())),
            (Err(error), _) => Err(error),
        };
        // Whoever asked may have left; what was written stays.
        let _ = self.reply.send(answer);
    }
}

/// What a writer shares with its store.
pub(super) struct Shared {
    pub(super) policies: Arc<Policies>,
    pub(super) liveness: Arc<Liveness>,
    pub(super) settings: Arc<SqliteSettings>,
    pub(super) watch: Arc<Watch>,
    pub(super) observed: Observed,
}

/// The writer's state.
pub(super) struct Writer {
    connection: Connection,
    checkpointer: Checkpointer,
    shared: Shared,
    heads: Heads,
    stored_policies: StoredPolicies,
    batch: Batch,
    told: Vec<Committed>,
    data_version: i64,
    others_seen: Option<Instant>,
}

/// Commands and marks in the order of the queue. Marks alone wait for company.
#[derive(Default)]
struct Batch {
    items: Vec<Item>,
    commands: usize,
    marks_since: Option<Instant>,
}

enum Item {
    Command(Box<dyn Command>),
    Mark(QueuedMark),
}

/// What ended the gathering of a batch.
enum Gathered {
    /// Nothing more has queued.
    All,
    /// The store closes; the sender, when there is one, wants to know.
    Closing(Option<oneshot::Sender<()>>),
}

impl Writer {
    pub(super) fn new(connection: Connection, checkpointer: Checkpointer, shared: Shared) -> Writer {
        Writer {
            connection,
            checkpointer,
            heads: Heads::new(shared.settings.heads_cached),
            shared,
            stored_policies: StoredPolicies::default(),
            batch: Batch::default(),
            told: Vec::new(),
            data_version: 0,
            others_seen: None,
        }
    }

    /// Works until the store is closed or dropped.
    pub(super) fn run(mut self, queue: &Outlet) {
        busy::set_limit(Duration::from_millis(self.shared.settings.busy_timeout_ms));
        busy::take_turns(self.connection.path().and_then(|path| Turns::beside(Path::new(path))));
        loop {
            let gathered = self.gather(queue);
            let closing = matches!(gathered, Gathered::Closing(_));
            if self.batch.commands > 0 || self.marks_are_due(closing) {
                let started = Instant::now();
                self.write();
                let held = started.elapsed();
                self.checkpointer.tend(&self.connection);
                self.let_others_in(queue, held);
            } else if self.shared.watch.is_watched() {
                self.look();
            }
            if let Gathered::Closing(done) = gathered {
                return self.close(queue, done);
            }
        }
    }

    /// Waits for the first job, then takes what else has queued up.
    fn gather(&mut self, queue: &Outlet) -> Gathered {
        let mut next = queue.wait(self.patience());
        loop {
            match next {
                Ok(Job::Write(command)) => self.batch.push_command(command),
                Ok(Job::Mark(mark)) => self.batch.push_mark(mark),
                Ok(Job::Look) => {}
                Ok(Job::Close(done)) => return Gathered::Closing(Some(done)),
                Err(Empty::Now) => return Gathered::All,
                Err(Empty::ForEver) => return Gathered::Closing(None),
            }
            if self.batch.commands >= self.shared.settings.batch_max {
                return Gathered::All;
            }
            next = queue.next();
        }
    }

    /// How long the first job may be waited for; absent: for ever.
    fn patience(&self) -> Option<Duration> {
        let settings = &self.shared.settings;
        let marks = self
            .batch
            .marks_since
            .map(|since| Duration::from_millis(settings.mark_flush_ms).saturating_sub(since.elapsed()));
        let watch = self.shared.watch.is_watched().then(|| Duration::from_millis(settings.poll_interval_ms));
        marks.into_iter().chain(watch).min()
    }

    fn marks_are_due(&self, closing: bool) -> bool {
        let settings = &self.shared.settings;
        self.batch.marks_since.is_some_and(|since| {
            closing
                || self.batch.items.len() >= settings.marks_max
                || since.elapsed() >= Duration::from_millis(settings.mark_flush_ms)
        })
    }

    /// One transaction for the batch, and the answers after its commit.
    fn write(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        let started = Instant::now();
        let fates = match self.transaction(&mut batch.items, Guard::None) {
            // Something in the batch is bad: each command gets a savepoint, so that it fails alone.
            Err(fault) if !fault.whole => self.transaction(&mut batch.items, Guard::Savepoints),
            fates => fates,
        };
        match fates {
            Ok(fates) => {
                // Whoever is answered finds it counted.
                self.tell(batch.commands, started.elapsed());
                batch.answer(fates);
            }
            Err(fault) => self.batch.keep_marks(batch.fail(&fault.error), self.shared.settings.marks_max),
        }
    }

    /// Tells the observer what was committed.
    fn tell(&mut self, writes: usize, took: Duration) {
        if let Some(observer) = self.shared.observed.get() {
            observer.committed(&self.told);
            observer.transaction(writes, took);
        }
        self.told.clear();
    }

    /// Runs everything in one transaction; on an error nothing of it is stored.
    fn transaction(&mut self, items: &mut [Item], guard: Guard) -> Sql<Vec<Result<()>>> {
        let mut begun = None;
        let logged = tracing::enabled!(tracing::Level::DEBUG);
        let done = self.begin(logged).and_then(|at| {
            begun = Some((at, unscheduled::measure(logged)));
            let fates = self.run_all(items, guard)?;
            crash::point("before_commit");
            self.connection.prepare_cached("COMMIT")?.execute([])?;
            crash::point("after_commit");
            Ok(fates)
        });
        if let Some((at, unscheduled)) = begun.filter(|_| logged) {
            // With the waits of other processes this tells a slow disk and a busy machine from a writer that lets nobody in.
            let held_us = at.elapsed().as_micros() as u64;
            tracing::debug!(held_us, unscheduled_us = unscheduled.micros(), "a transaction ended");
        }
        if done.is_err() {
            self.told.clear();
            self.forget();
            if !self.connection.is_autocommit() {
                // The transaction holds the database's lock. If it can not be rolled back now, the next BEGIN fails.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
        }
        done
    }

    /// Takes the database's lock; answers when.
    fn begin(&mut self, logged: bool) -> Sql<Instant> {
        let (since, unscheduled) = (Instant::now(), unscheduled::measure(logged));
        busy::let_others_first();
        let locked = self.connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
        busy::had_turn();
        locked?;
        let begun = Instant::now();
        if logged {
            let waited_us = (begun - since).as_micros() as u64;
            tracing::debug!(waited_us, unscheduled_us = unscheduled.micros(), "a transaction began");
        }
        self.notice_others()?;
        Ok(begun)
    }

    fn run_all(&mut self, items: &mut [Item], guard: Guard) -> Sql<Vec<Result<()>>> {
        let mut fates = Vec::with_capacity(items.len());
        for item in items {
            let fate = match guard {
                Guard::None => self.run_item(item).map(Ok)?,
                Guard::Savepoints => self.run_guarded(item)?,
            };
            fates.push(fate);
        }
        Ok(fates)
    }

    fn run_guarded(&mut self, item: &mut Item) -> Sql<Result<()>> {
        self.connection.execute_batch("SAVEPOINT command")?;
        let told = self.told.len();
        let fate = match self.run_item(item) {
            Ok(()) => Ok(()),
            Err(fault) if fault.whole || self.connection.is_autocommit() => return Err(fault),
            Err(fault) => {
                self.told.truncate(told);
                self.connection.execute_batch("ROLLBACK TO command")?;
                self.forget();
                Err(fault.error)
            }
        };
        self.connection.execute_batch("RELEASE command")?;
        Ok(fate)
    }

    fn run_item(&mut self, item: &mut Item) -> Sql<()> {
        let mut tx = Tx {
            connection: &self.connection,
            heads: &mut self.heads,
            policies: &self.shared.policies,
            stored_policies: &mut self.stored_policies,
            liveness: &self.shared.liveness,
            settings: &self.shared.settings,
            told: &mut self.told,
        };
        match item {
            Item::Command(command) => command.run(&mut tx),
            Item::Mark(mark) => marks::run(&mut tx, mark),
        }
    }

    /// Remembered rows may be of a transaction that never was.
    fn forget(&mut self) {
        self.heads.forget_all();
        self.stored_policies.forget();
    }

    /// Whether another connection has changed the database since this was asked last.
    fn notice_others(&mut self) -> Sql<()> {
        let version = self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if version != self.data_version {
            let first = self.data_version == 0;
            self.data_version = version;
            self.heads.forget_all();
            if !first {
                self.others_seen = Some(Instant::now());
                self.shared.watch.tell();
            }
        }
        Ok(())
    }

    fn look(&mut self) {
        if let Err(fault) = self.notice_others() {
            tracing::warn!(error = %fault.error, "could not look for other processes' changes");
        }
    }

    /// A writer that has always more to write would starve those who poll for the lock, where they cannot take turns.
    fn let_others_in(&self, queue: &Outlet, held: Duration) {
        let others_write =
            !busy::takes_turns() && self.others_seen.is_some_and(|seen| seen.elapsed() < OTHERS_REMEMBERED);
        if others_write && !queue.is_empty() {
            // A busy machine wakes them late: the longer a commit takes, the longer they need.
            std::thread::sleep((held / 2).clamp(PAUSE_FOR_OTHERS_MIN, PAUSE_FOR_OTHERS_MAX));
        }
    }

    fn close(self, queue: &Outlet, done: Option<oneshot::Sender<()>>) {
        while let Ok(job) = queue.next() {
            match job {
                Job::Write(command) => command.answer(Err(Error::Unavailable(CLOSED.into()))),
                Job::Close(done) => drop(done.send(())),
                Job::Mark(_) | Job::Look => {}
            }
        }
        drop(self.checkpointer);
        // This checkpoint keeps the writers of other processes out while it waits for readers, and who waits lets them go
        // first: so it waits for nobody. What is in the log is as safe as what is in the database, and the next one to
        // close, or to write, copies it.
        let _ = self.connection.busy_handler(None);
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        drop(self.connection);
        if let Some(done) = done {
            let _ = done.send(());
        }
    }
}

/// What a closed store answers.
pub(super) const CLOSED: &str = "the store is closed";

/// How long after another process's write this one still makes room for it.
const OTHERS_REMEMBERED: Duration = Duration::from_secs(1);
/// Longer than the longest pause between two tries of a process that waits (`busy.rs`).
const PAUSE_FOR_OTHERS_MIN: Duration = Duration::from_micros(700);
const PAUSE_FOR_OTHERS_MAX: Duration = Duration::from_millis(5);

#[derive(Clone, Copy)]
enum Guard {
    None,
    Savepoints,
}

impl Batch {
    fn push_command(&mut self, command: Box<dyn Command>) {
        self.commands += 1;
        self.items.push(Item::Command(command));
    }

    fn push_mark(&mut self, mark: QueuedMark) {
        self.marks_since.get_or_insert_with(Instant::now);
        self.items.push(Item::Mark(mark));
    }

    fn answer(self, fates: Vec<Result<()>>) {
        for (item, fate) in self.items.into_iter().zip(fates) {
            match (item, fate) {
                (Item::Command(command), fate) => command.answer(fate),
                (Item::Mark(mark), Err(error)) => tracing::warn!(execution = %mark.id, %error, "lost a delivery mark"),
                (Item::Mark(_), Ok(())) => {}
            }
        }
    }

    /// Answers every command with the error and gives back the marks.
    fn fail(self, error: &Error) -> Vec<Item> {
        let mut marks = Vec::new();
        for item in self.items {
            match item {
                Item::Command(command) => command.answer(Err(repeat(error))),
                Item::Mark(_) => marks.push(item),
            }
        }
        marks
    }

    /// Marks of a batch that could not be written wait for the next one.
    fn keep_marks(&mut self, mut marks: Vec<Item>, max: usize) {
        if marks.len() > max {
            tracing::warn!(lost = marks.len() - max, "lost delivery marks, since the store can not write");
            marks.drain(..marks.len() - max);
        }
        self.marks_since = (!marks.is_empty()).then(Instant::now);
        self.items = marks;
    }
}
