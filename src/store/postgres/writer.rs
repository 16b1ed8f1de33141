//! The writes to executions: queued in order, and written together, several at once. What has queued up shares a commit; an
//! idle system waits for no company. Several batches are under way on as many connections, none of which touch the same
//! execution; one starts beside others when it is worth a commit of its own. What becomes of a batch is in `lane.rs`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};

use super::batch::{Outcome, Write};
use super::db::Db;
use super::fault::CLOSED;
use super::lane::{Item, Lane, Shared};
use super::liveness::Liveness;
use super::memory::Memory;
use crate::model::decide::Answer;
use crate::model::id::ExecutionId;
use crate::store::{Applied, Apply, Error, LeaseRef, Mark, Result, Submit, SubmitOutcome};

/// Leases extended by one write, at most: each is a row of its transaction.
const LEASES_MAX: usize = 100;
/// So long a batch waits for company at most while others are under way and a lane is free.
const COMPANY_WAIT: Duration = Duration::from_millis(20);
/// Writes that have to wait and are looked over for others that need not, at most.
const LOOKED_OVER_MAX: usize = 256;

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

impl Writer {
    /// Starts the writing task of `db`; it ends with this.
    pub(super) fn start(db: Arc<Db>, liveness: Arc<Liveness>) -> Writer {
        let (jobs, inlet) = mpsc::unbounded_channel();
        let waiting: Arc<AtomicUsize> = Arc::default();
        let memory = Arc::new(Memory::new(db.settings().heads_cached));
        let shared = Shared { db: Arc::clone(&db), liveness, memory };
        let lanes = db.settings().writers.max(1);
        let task = Task {
            lanes: (0..lanes).map(|_| Lane::new(shared.clone())).collect(),
            all_lanes: lanes,
            shared,
            jobs: inlet,
            waiting: Arc::clone(&waiting),
            items: VecDeque::new(),
            asked: 0,
            marks: 0,
            marks_since: None,
            flights: Flights::default(),
            company_until: None,
            closing: None,
        };
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

    /// Writes that wait for a commit.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Queues a delivery mark; a full queue loses it.
    pub(super) fn mark(&self, id: ExecutionId, mark: Mark, now_ms: i64) {
        let settings = self.db.settings();
        let patience = Duration::from_millis(settings.mark_flush_ms.saturating_add(settings.answer_deadline_ms));
        let item = Item { write: Write::Mark { id, mark, now_ms }, until: Instant::now() + patience, answer: None };
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

    /// Queues a write and waits for its answer, as long as the settings say and no longer, whatever is written before it.
    async fn write(&self, write: Write) -> Result<Outcome> {
        let write = write.without_nul()?;
        let (answer, answered) = oneshot::channel();
        let until = Instant::now() + Duration::from_millis(self.db.settings().answer_deadline_ms);
        self.push(Item { write, until, answer: Some(answer) })?;
        match tokio::time::timeout_at(until.into(), answered).await {
            Ok(answered) => answered.unwrap_or_else(|_| Err(closed())),
            Err(_) => Err(Error::Unavailable(
                "PostgreSQL did not answer in time; it is not known whether it wrote, so ask again for what became of it"
                    .into(),
            )),
        }
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

/// A batch that is under way.
struct UnderWay {
    ids: Vec<ExecutionId>,
    writes: usize,
}

/// What is under way.
#[derive(Default)]
struct Flights {
    tasks: JoinSet<Lane>,
    batches: HashMap<Id, UnderWay>,
    named: HashSet<ExecutionId>,
    /// How many writes it is in all.
    writes: usize,
    /// The one with writes about marks.
    marks: Option<Id>,
}

impl Flights {
    /// True for a write that has to wait until what is under way is committed.
    fn hold_up(&self, write: &Write) -> bool {
        (self.marks.is_some() && write.is_about_marks()) || write.ids().any(|id| self.named.contains(&id))
    }

    fn start(&mut self, mut lane: Lane, items: Vec<Item>) {
        let ids: Vec<ExecutionId> = items.iter().flat_map(|item| item.write.ids()).collect();
        let (is_about_marks, writes) = (items.iter().any(|item| item.write.is_about_marks()), items.len());
        let run = async move {
            lane.run(items).await;
            lane
        };
        let task = self.tasks.spawn(run).id();
        self.named.extend(&ids);
        self.batches.insert(task, UnderWay { ids, writes });
        self.writes += writes;
        if is_about_marks {
            self.marks = Some(task);
        }
    }

    /// Waits for one that ended; its lane, unless that was lost.
    async fn land(&mut self) -> Option<Lane> {
        let (task, lane) = match self.tasks.join_next_with_id().await? {
            Ok((task, lane)) => (task, Some(lane)),
            Err(error) => (error.id(), None),
        };
        if let Some(landed) = self.batches.remove(&task) {
            for id in &landed.ids {
                self.named.remove(id);
            }
            self.writes -= landed.writes;
        }
        if self.marks == Some(task) {
            self.marks = None;
        }
        lane
    }
}

/// The end that writes.
struct Task {
    shared: Shared,
    jobs: mpsc::UnboundedReceiver<Job>,
    waiting: Arc<AtomicUsize>,
    /// What has queued up, in order.
    items: VecDeque<Item>,
    /// Writes in it that somebody waits for.
    asked: usize,
    /// Delivery marks in it.
    marks: usize,
    /// Since when the oldest of them waits.
    marks_since: Option<Instant>,
    /// Those with nothing to do.
    lanes: Vec<Lane>,
    /// How many there are, under way or not.
    all_lanes: usize,
    flights: Flights,
    /// Until when what has queued up waits for company; absent while it does not.
    company_until: Option<Instant>,
    /// Who wants to know when all is written.
    closing: Option<oneshot::Sender<()>>,
}

impl Task {
    async fn run(mut self) {
        let idle = Duration::from_millis(self.shared.db.settings().idle_timeout_ms);
        let mut looks = tokio::time::interval((idle / 2).max(Duration::from_millis(100)));
        loop {
            self.launch();
            if self.closing.is_some() && self.items.is_empty() && self.flights.tasks.is_empty() {
                return self.close();
            }
            let look = self.flush_at().into_iter().chain(self.company_until).min();
            tokio::select! {
                lane = self.flights.land(), if !self.flights.tasks.is_empty() => {
                    self.lanes.push(lane.unwrap_or_else(|| Lane::new(self.shared.clone())));
                }
                job = self.jobs.recv(), if self.closing.is_none() => self.take_in(job),
                _ = looks.tick() => self.lanes.iter_mut().for_each(|lane| lane.tend(idle)),
                () = tokio::time::sleep_until(look.unwrap_or_else(Instant::now).into()), if look.is_some() => {}
            }
            while self.closing.is_none()
                && let Ok(job) = self.jobs.try_recv()
            {
                self.take_in(Some(job));
            }
        }
    }

    fn take_in(&mut self, job: Option<Job>) {
        match job {
            Some(Job::Write(item)) => {
                match item.answer {
                    Some(_) => self.asked += 1,
                    None => {
                        self.marks += 1;
                        self.marks_since = self.marks_since.or_else(|| Some(Instant::now()));
                    }
                }
                self.items.push_back(item);
            }
            Some(Job::Close(done)) => self.closing = Some(done),
            // Nobody can queue anything any more, and nobody waits for this.
            None => self.closing = Some(oneshot::channel().0),
        }
    }

    /// When the marks that wait for company have waited long enough; absent while none do, or while all is under way.
    fn flush_at(&self) -> Option<Instant> {
        let flush = Duration::from_millis(self.shared.db.settings().mark_flush_ms);
        self.marks_since.filter(|_| !self.lanes.is_empty() && !self.is_urgent()).map(|since| since + flush)
    }

    /// Marks alone wait for company for a while.
    fn is_urgent(&self) -> bool {
        let settings = self.shared.db.settings();
        let flush = Duration::from_millis(settings.mark_flush_ms);
        self.asked > 0
            || self.marks >= settings.marks_max
            || self.closing.is_some()
            || self.marks_since.is_some_and(|since| since.elapsed() >= flush)
    }

    /// Starts batches while there is something to write, and a lane for it.
    fn launch(&mut self) {
        while self.is_urgent() && !self.lanes.is_empty() {
            if !self.has_company() {
                self.company_until = self.company_until.or_else(|| Some(Instant::now() + COMPANY_WAIT));
                return;
            }
            self.company_until = None;
            let items = self.batch();
            if items.is_empty() {
                return;
            }
            let lane = self.lanes.pop().expect("there is one, as was asked above");
            self.flights.start(lane, items);
        }
    }

    /// Most of what a batch costs is the same for one write and for many. Beside another one starts when it is as large,
    /// beside several when it is that many times as large as all of them together, or when it has waited long enough: a
    /// commit that takes long does not hold up the rest.
    fn has_company(&self) -> bool {
        let waited = self.company_until.is_some_and(|until| until <= Instant::now());
        waited || self.closing.is_some() || self.items.len() >= self.flights.writes * self.flights.batches.len()
    }

    /// Whether the next batch is of calls alone, or of everything else alone; absent: of both. The two are written by
    /// different statements, and what a statement costs is for the most part the same for few rows and for many. Where
    /// writes of the kind of the oldest that need not wait are at least half of all, the others make a batch of their own.
    fn only_calls(&self, most: usize) -> Option<bool> {
        let mut looked_over = self.items.iter().take(LOOKED_OVER_MAX);
        let oldest = looked_over.find(|item| !self.flights.hold_up(&item.write))?;
        let calls = oldest.write.submit().is_some();
        let looked_at = self.items.len().min(most);
        let alike = self.items.iter().take(looked_at).filter(|item| item.write.submit().is_some() == calls).count();
        (self.all_lanes > 1 && alike * 2 >= looked_at).then_some(calls)
    }

    /// As many as may share a commit. What has to wait for something under way stays in the queue, and with it what has to
    /// keep its order behind that.
    fn batch(&mut self) -> Vec<Item> {
        let settings = self.shared.db.settings();
        let most = settings.batch_max.max(1);
        let only_calls = self.only_calls(most);
        let (mut batch, mut bytes, mut rows): (Vec<Item>, usize, usize) = (Vec::new(), 0, 0);
        let mut left: Vec<Item> = Vec::new();
        let (mut named, mut marks): (HashSet<ExecutionId>, bool) = (HashSet::new(), false);
        while batch.len() < most && left.len() < LOOKED_OVER_MAX {
            let Some(item) = self.items.pop_front() else { break };
            let write = &item.write;
            let of_others = only_calls.is_some_and(|calls| write.submit().is_some() != calls);
            let behind = (marks && write.is_about_marks()) || write.ids().any(|id| named.contains(&id));
            if of_others || behind || self.flights.hold_up(write) {
                named.extend(write.ids());
                marks |= write.is_about_marks();
                left.push(item);
                continue;
            }
            bytes += write.bytes();
            rows += write.rows(settings.payload_chunk_bytes);
            if (bytes > settings.batch_bytes_max || rows > settings.batch_rows_max) && !batch.is_empty() {
                self.items.push_front(item);
                break;
            }
            batch.push(item);
        }
        for item in left.into_iter().rev() {
            self.items.push_front(item);
        }
        self.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        let asked = batch.iter().filter(|item| item.answer.is_some()).count();
        self.asked -= asked;
        self.marks -= batch.len() - asked;
        if self.marks == 0 {
            self.marks_since = None;
        }
        batch
    }

    fn close(mut self) {
        self.jobs.close();
        while let Ok(job) = self.jobs.try_recv() {
            match job {
                Job::Write(Item { answer: Some(answer), .. }) => drop(answer.send(Err(closed()))),
                Job::Write(_) => {}
                Job::Close(done) => drop(done.send(())),
            }
        }
        if let Some(done) = self.closing {
            let _ = done.send(());
        }
    }
}
