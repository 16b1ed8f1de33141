//! How often and how soon something runs again: the one place for it (R1). Decides nothing about what.

use std::time::{Duration, Instant};

/// Runs of one thing, at most.
const TRIES_MAX: u32 = 10;
/// The first pause is at most this long; each further one may be twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(4);
/// No pause is longer.
const PAUSE_MAX: Duration = Duration::from_millis(400);

/// The runs of one thing so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    tries: u32,
    until: Instant,
}

impl Retry {
    /// The first run begins; the last one ends after `patience`.
    pub(super) fn within(patience: Duration) -> Retry {
        Retry::until(Instant::now() + patience)
    }

    /// The first run begins; the last one ends at `until`.
    pub(super) fn until(until: Instant) -> Retry {
        Retry { tries: 1, until }
    }

    /// Waits for a random time, more with each run; false when there have been enough.
    pub(super) async fn again(&mut self) -> bool {
        let Some(pause) = self.next() else { return false };
        tokio::time::sleep(pause).await;
        true
    }

    /// How long to wait before the next run. Full jitter: those who met each other meet again only by chance.
    fn next(&mut self) -> Option<Duration> {
        if self.tries >= TRIES_MAX || Instant::now() >= self.until {
            return None;
        }
        self.tries += 1;
        Some(jitter(longest(self.tries)))
    }

    /// What is left of the patience.
    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// The longest pause before run number `tries`.
fn longest(tries: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << tries.saturating_sub(2).min(16)).min(PAUSE_MAX)
}

/// A random part of `most`.
pub(super) fn jitter(most: Duration) -> Duration {
    let mut bytes = [0; 4];
    // Without randomness the pause is the longest one.
    match getrandom::fill(&mut bytes) {
        Ok(()) => most.mul_f64(f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)),
        Err(_) => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_are_spread() {
        assert_eq!(longest(2), PAUSE_FIRST);
        assert_eq!(longest(3), PAUSE_FIRST * 2);
        assert_eq!(longest(60), PAUSE_MAX);
        let drawn: std::collections::BTreeSet<_> = (0..32).map(|_| jitter(PAUSE_MAX)).collect();
        assert!(drawn.len() > 16 && drawn.iter().all(|pause| *pause <= PAUSE_MAX));
    }

    #[test]
    fn there_are_at_most_ten_runs() {
        let mut retry = Retry::within(Duration::from_secs(3_600));
        let again = std::iter::from_fn(|| retry.next()).count();
        assert_eq!(again as u32 + 1, TRIES_MAX);
        assert_eq!(Retry::within(Duration::ZERO).next(), None);
    }
}
