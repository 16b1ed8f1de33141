//! The way of the bytes: from one pipe to the other as they come, with a copy for whoever watches. A watcher that is too
//! slow loses copies, never the other side its bytes. Knows nothing of what the bytes mean.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::engine::clock::Clock;

/// Read and written at once.
const PIECE_BYTES: usize = 64 << 10;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    ToServer,
    /// From the server.
    ToClient,
}

/// What the watcher gets. Times are milliseconds since the epoch.
#[derive(Debug)]
pub enum Piece {
    /// Bytes that are just passing.
    Bytes {
        /// Which way.
        direction: Direction,
        /// When.
        at_ms: i64,
        /// A copy of them.
        bytes: Vec<u8>,
        /// Something between these and the ones before was not watched.
        after_gap: bool,
    },
    /// The bytes of a direction have ended.
    Closed(Direction, i64),
    /// Nothing more comes.
    Finish,
}

/// Where copies go.
#[derive(Clone, Debug)]
pub struct Tap {
    /// The watcher's queue.
    pub sender: Sender<Piece>,
    /// Bytes in that queue; the watcher takes off what it has taken.
    pub queued: Arc<AtomicUsize>,
    /// The most that may wait there.
    pub queued_max: usize,
    /// Bytes that found no room.
    pub unwatched: Arc<AtomicU64>,
}

/// One direction: where from, where to.
#[derive(Debug)]
pub struct Pump {
    /// Which way.
    pub direction: Direction,
    /// Where the bytes come from.
    pub from: File,
    /// Where they go; the drop of this closes it.
    pub to: File,
}

impl Pump {
    /// Passes everything on until one of the two ends; true when it was the beginning, false when it was the other end.
    pub fn run(&mut self, tap: &Tap) -> bool {
        let mut buffer = vec![0; PIECE_BYTES];
        let mut gap = false;
        while let Ok(count @ 1..) = retried(&self.from, PollFlags::IN, || (&self.from).read(&mut buffer)) {
            // Before it is passed on, so that a question is seen before its answer.
            gap = tap.copy(self.direction, &buffer[..count], gap);
            if self.pass(&buffer[..count]).is_err() {
                return false;
            }
        }
        true
    }

    fn pass(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = retried(&self.to, PollFlags::OUT, || (&self.to).write(bytes))?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[count..];
        }
        Ok(())
    }
}

/// Tries until it is done. Whoever gave us a stream may have made it one that does not block.
fn retried(file: &File, until: PollFlags, mut attempt: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                match rustix::event::poll(&mut [PollFd::new(file, until)], None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            done => return done,
        }
    }
}

impl Tap {
    /// Hands a copy over; true when it was lost.
    fn copy(&self, direction: Direction, bytes: &[u8], after_gap: bool) -> bool {
        let piece = Piece::Bytes { direction, at_ms: Clock::System.now_ms(), bytes: bytes.to_vec(), after_gap };
        let weight = piece.weight();
        if self.queued.fetch_add(weight, Ordering::Relaxed) + weight > self.queued_max {
            self.queued.fetch_sub(weight, Ordering::Relaxed);
            self.unwatched.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            return true;
        }
        // Without a receiver the report has been made.
        self.sender.send(piece).is_err()
    }
}

impl Piece {
    /// About what it takes in memory.
    pub fn weight(&self) -> usize {
        match self {
            Piece::Bytes { bytes, .. } => bytes.len() + size_of::<Piece>(),
            Piece::Closed(..) | Piece::Finish => 0,
        }
    }
}
