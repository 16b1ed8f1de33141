//! Copying the write-ahead log into the database, mostly on a thread of its own: the writer waits for the short rest
//! only, after which it can begin the log anew. Loses nothing when it fails: what is in the log is safe there.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use rusqlite::Connection;
use rusqlite::hooks::Wal;

thread_local! {
    static LOG_PAGES: Cell<usize> = const { Cell::new(0) };
}

/// The writer's side.
pub(super) struct Checkpointer {
    start: Option<Sender<()>>,
    running: Arc<AtomicBool>,
    asked: bool,
    pages: usize,
    next_at: usize,
    seen: usize,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Works with `connection` once the log has `pages` pages. The writer's own connection must have been given to
    /// [`watch`].
    pub(super) fn spawn(connection: Connection, pages: u32) -> std::io::Result<Checkpointer> {
        let (start, orders) = crossbeam_channel::bounded(1);
        let running = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&running);
        let thread = std::thread::Builder::new()
            .name("sqlite-checkpoint".into())
            .spawn(move || copy_when_told(&connection, &orders, &done))?;
        let pages = pages.max(1) as usize;
        let start = Some(start);
        Ok(Checkpointer { start, running, asked: false, pages, next_at: pages, seen: 0, thread: Some(thread) })
    }

    /// To be called after commits: starts a copy, or finishes one on the writer's `connection`.
    pub(super) fn tend(&mut self, connection: &Connection) {
        if self.running.load(Ordering::Acquire) {
            return;
        }
        let pages = LOG_PAGES.get();
        if self.asked {
            // What the thread did not reach is short; with it done the log starts anew instead of growing. When a
            // reader prevents that, trying again is worth while only after much more has been written.
            self.asked = false;
            self.next_at = pages + self.pages;
            copy(connection);
        } else if pages < self.seen {
            self.next_at = self.pages;
        } else if pages >= self.next_at {
            self.running.store(true, Ordering::Release);
            self.asked = self.start.as_ref().is_some_and(|start| start.try_send(()).is_ok());
            if !self.asked {
                // The thread is gone: the writer does its work.
                self.running.store(false, Ordering::Release);
                copy(connection);
            }
        }
        self.seen = pages;
    }
}

impl Drop for Checkpointer {
    /// Waits for the thread, so that its connection is closed.
    fn drop(&mut self) {
        self.start = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its own thread.
            let _ = thread.join();
        }
    }
}

/// Counts the pages of the log as `connection` commits; replaces SQLite's own checkpoints on it.
pub(super) fn watch(connection: &Connection) {
    fn count(_: &Wal, pages: c_int) -> rusqlite::Result<()> {
        LOG_PAGES.set(pages.max(0) as usize);
        Ok(())
    }
    connection.wal_hook(Some(count));
}

fn copy_when_told(connection: &Connection, orders: &Receiver<()>, running: &AtomicBool) {
    while orders.recv().is_ok() {
        // The second pass takes what was written during the first.
        copy(connection);
        copy(connection);
        running.store(false, Ordering::Release);
    }
}

fn copy(connection: &Connection) {
    let done = connection
        .prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")
        .and_then(|mut statement| statement.query_row([], |_| Ok(())));
    if let Err(error) = done {
        tracing::warn!(%error, "could not copy the write-ahead log into the database; trying again later");
    }
}
