//! The queue of writes: bounded, in order, never waits to take something in. What is left in it when the writer is gone
//! is dropped, so that whoever waits for an answer learns it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};

use super::writer::{CLOSED, Job};
use crate::store::{Error, Result};

/// The end that takes jobs in.
#[derive(Clone)]
pub(super) struct Inlet {
    // Unbounded and counted: the bounded kind keeps what nobody can receive any more.
    jobs: Sender<Job>,
    waiting: Arc<AtomicUsize>,
    max: usize,
}

/// The writer's end.
pub(super) struct Outlet {
    jobs: Receiver<Job>,
    waiting: Arc<AtomicUsize>,
}

/// Why there is no next job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Empty {
    /// Nothing has queued.
    Now,
    /// Nobody can queue anything any more.
    ForEver,
}

/// A queue for at most `max` jobs.
pub(super) fn queue(max: usize) -> (Inlet, Outlet) {
    let (sender, receiver) = crossbeam_channel::unbounded();
    let waiting = Arc::new(AtomicUsize::new(0));
    (Inlet { jobs: sender, waiting: Arc::clone(&waiting), max }, Outlet { jobs: receiver, waiting })
}

impl Inlet {
    /// Queues a job.
    pub(super) fn push(&self, job: Job) -> Result<()> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.max {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::Overloaded(self.max));
        }
        self.push_always(job)
    }

    /// Queues a job whether or not there is room.
    pub(super) fn push_urgent(&self, job: Job) -> Result<()> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.push_always(job)
    }

    /// Jobs that wait for the writer.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn push_always(&self, job: Job) -> Result<()> {
        self.jobs.send(job).map_err(|_| Error::Unavailable(CLOSED.into()))
    }
}

impl Outlet {
    /// The next job; waits for `patience`, or for ever.
    pub(super) fn wait(&self, patience: Option<Duration>) -> std::result::Result<Job, Empty> {
        let job = match patience {
            Some(patience) => self.jobs.recv_timeout(patience).map_err(|error| match error {
                RecvTimeoutError::Timeout => Empty::Now,
                RecvTimeoutError::Disconnected => Empty::ForEver,
            }),
            None => self.jobs.recv().map_err(|_| Empty::ForEver),
        };
        self.counted(job)
    }

    /// The next job, if one has queued.
    pub(super) fn next(&self) -> std::result::Result<Job, Empty> {
        let job = self.jobs.try_recv().map_err(|error| match error {
            TryRecvError::Empty => Empty::Now,
            TryRecvError::Disconnected => Empty::ForEver,
        });
        self.counted(job)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn counted(&self, job: std::result::Result<Job, Empty>) -> std::result::Result<Job, Empty> {
        if job.is_ok() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        job
    }
}
