//! Whose turn it is among the writers of several processes. Who waits for the database's lock takes a number in a small
//! file beside it and lets smaller numbers go first. Advice only: SQLite's lock keeps writers apart, and who is not heard
//! of for a moment (stopped, dead, not given a processor) is passed over. Knows no clock of other processes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use super::migrate::with_suffix;

/// Writers that have a place of their own. More than that share places, which costs fairness and nothing else.
const PLACES: usize = 64;
/// Three numbers: the number of who waits there, its sign of life, and when the place was taken.
const PLACE_BYTES: usize = 24;
/// Who waits gives a sign of life with each try, ten times within this span.
const SILENCE: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    /// 0: nobody waits here.
    number: u64,
    beat: u64,
    taken: u64,
}

/// What was seen at a place, and since when it has been so.
#[derive(Clone, Copy)]
struct Sight {
    place: Place,
    since: Instant,
}

/// One writer's view of the queue.
pub(super) struct Turns {
    file: File,
    own: Option<usize>,
    place: Place,
    sights: [Option<Sight>; PLACES],
}

impl Turns {
    /// The queue beside the database at `path`; `None` where the file cannot be had, which costs fairness only.
    pub(super) fn beside(path: &Path) -> Option<Turns> {
        let path = with_suffix(path, ".turns");
        let file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path).ok()?;
        Some(Turns { file, own: None, place: Place::default(), sights: [None; PLACES] })
    }

    /// Takes the next number, unless this writer waits already.
    pub(super) fn arrive(&mut self) {
        if self.place.number != 0 {
            return;
        }
        let places = self.read();
        // What was written there by somebody else may be any number.
        let own = *self.own.get_or_insert_with(|| {
            self.place.taken = places.iter().map(|place| place.taken).max().unwrap_or(0).saturating_add(1);
            // The place that was taken longest ago is the likeliest to be free.
            (0..PLACES).min_by_key(|at| places[*at].taken).unwrap_or(0)
        });
        self.place.number = places.iter().map(|place| place.number).max().unwrap_or(0).saturating_add(1);
        self.write(own);
    }

    /// Whether somebody who waits has to go first; gives a sign of life of its own when this writer waits, too.
    pub(super) fn is_preceded(&mut self, now: Instant) -> bool {
        if let (Some(own), true) = (self.own, self.place.number != 0) {
            self.place.beat += 1;
            self.write(own);
        }
        let places = self.read();
        let mut preceded = false;
        for (at, place) in places.into_iter().enumerate() {
            if place.number == 0 || Some(at) == self.own || !self.goes_before(at, place.number) {
                continue;
            }
            match &self.sights[at] {
                // Not heard of for too long: it has to come back before it counts again.
                Some(sight) if sight.place == place => preceded |= now.duration_since(sight.since) < SILENCE,
                _ => {
                    self.sights[at] = Some(Sight { place, since: now });
                    preceded = true;
                }
            }
        }
        preceded
    }

    /// This writer has its turn, or gives up.
    pub(super) fn leave(&mut self) {
        if let (Some(own), true) = (self.own, self.place.number != 0) {
            self.place.number = 0;
            self.write(own);
        }
    }

    fn goes_before(&self, at: usize, number: u64) -> bool {
        self.place.number == 0 || (number, Some(at)) < (self.place.number, self.own)
    }

    fn read(&self) -> [Place; PLACES] {
        let mut bytes = [0; PLACES * PLACE_BYTES];
        let mut places = [Place::default(); PLACES];
        // A file that is shorter has places that nobody took; one that cannot be read has nobody who waits.
        let count = self.file.read_at(&mut bytes, 0).unwrap_or(0);
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        for (at, place) in places.iter_mut().enumerate().take(count / PLACE_BYTES) {
            let from = at * PLACE_BYTES;
            *place = Place { number: number(from), beat: number(from + 8), taken: number(from + 16) };
        }
        places
    }

    fn write(&self, own: usize) {
        let Place { number, beat, taken } = self.place;
        let mut bytes = [0; PLACE_BYTES];
        for (part, value) in bytes.chunks_exact_mut(8).zip([number, beat, taken]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        // What is not written is not seen by others: they go first.
        let _ = self.file.write_at(&bytes, (own * PLACE_BYTES) as u64);
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.leave();
    }
}
