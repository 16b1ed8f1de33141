//! The one clock. Every time below and above this file is a parameter. Tests move a manual clock instead of sleeping.
//!
//! Where the store has a clock of its own, that one counts: a process asks for it at the start and from time to time, takes
//! the median of what it was told, and counts on from there by the machine's steady counter. What the machine's wall clock
//! shows, or is set to, changes nothing then; it is only compared, and a difference is said.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::store;

/// Asks a store what its clock shows.
pub type Ask<'a> = &'a (dyn Fn() -> BoxFuture<'static, store::Result<Option<i64>>> + Send + Sync);

/// How a store is asked what its clock shows.
pub fn asks(store: Arc<dyn store::Store>) -> impl Fn() -> BoxFuture<'static, store::Result<Option<i64>>> + Send + Sync {
    move || {
        let store = store.clone();
        async move { store.clock_ms().await }.boxed()
    }
}

/// Where `now` comes from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The operating system's wall clock.
    #[default]
    System,
    /// The store's clock, counted on.
    Aligned(Arc<Aligned>),
    /// Stands still until it is moved.
    Manual(Arc<Manual>),
}

/// The store's clock as this process knows it.
#[derive(Debug)]
pub struct Aligned {
    /// Where the steady counter began.
    begun: Instant,
    /// What the store's clock showed then, in milliseconds since the epoch.
    begun_ms: AtomicI64,
    /// The latest time that was shown: small corrections never turn it back.
    shown_ms: AtomicI64,
    heard: Mutex<Heard>,
}

/// What was heard of the store's clock lately.
#[derive(Debug, Default)]
struct Heard {
    /// What it must have shown at the beginning, by each answer, the newest last.
    begun_ms: VecDeque<i64>,
    /// The difference that was said last, in milliseconds.
    said_ms: i64,
}

/// Answers of the store that the median is taken of.
const ANSWERS: usize = 9;
/// Questions at the start.
const FIRST_ANSWERS: usize = 5;
/// Questions each time after that.
const LATER_ANSWERS: usize = 3;
/// How often the store's clock is asked for.
pub const ALIGN_EVERY: Duration = Duration::from_secs(10);
/// A difference between the machine's clock and the store's that nobody needs to hear of, in milliseconds.
const TOLERATED_MS: i64 = 500;
/// A correction that turns the clock back by more is made at once; by less, the clock stands still for it.
const STANDS_STILL_MS: i64 = 1_000;

/// A clock that a test moves.
#[derive(Debug)]
pub struct Manual {
    now_ms: AtomicI64,
    moved: Notify,
}

impl Clock {
    /// A clock that stands at `now_ms`.
    pub fn manual(now_ms: i64) -> (Clock, Arc<Manual>) {
        let manual = Arc::new(Manual { now_ms: AtomicI64::new(now_ms), moved: Notify::new() });
        (Clock::Manual(manual.clone()), manual)
    }

    /// The machine's clock, aligned with the store's where that has one. `ask` asks the store for it.
    pub async fn aligned(ask: Ask<'_>) -> store::Result<Clock> {
        let aligned = Aligned::new();
        match aligned.ask(FIRST_ANSWERS, ask).await? {
            true => Ok(Clock::Aligned(Arc::new(aligned))),
            false => Ok(Clock::System),
        }
    }

    /// Asks the store for its clock again, and says when the machine's differs from it.
    pub async fn align(&self, ask: Ask<'_>) -> store::Result<()> {
        match self {
            Clock::Aligned(aligned) => aligned.ask(LATER_ANSWERS, ask).await.map(drop),
            Clock::System | Clock::Manual(_) => Ok(()),
        }
    }

    /// Milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        match self {
            Clock::System => system_ms(),
            Clock::Aligned(aligned) => aligned.now_ms(),
            Clock::Manual(manual) => manual.now_ms.load(Ordering::SeqCst),
        }
    }

    /// Waits until the clock shows `at_ms`.
    pub async fn sleep_until(&self, at_ms: i64) {
        match self {
            Clock::System | Clock::Aligned(_) => {
                let left_ms = at_ms.saturating_sub(self.now_ms()).max(0) as u64;
                tokio::time::sleep(Duration::from_millis(left_ms)).await;
            }
            Clock::Manual(manual) => loop {
                let moved = manual.moved.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                if manual.now_ms.load(Ordering::SeqCst) >= at_ms {
                    return;
                }
                moved.await;
            },
        }
    }
}

impl Aligned {
    fn new() -> Aligned {
        Aligned {
            begun: Instant::now(),
            begun_ms: AtomicI64::new(0),
            shown_ms: AtomicI64::new(i64::MIN),
            heard: Mutex::default(),
        }
    }

    fn now_ms(&self) -> i64 {
        let now_ms = self.begun_ms.load(Ordering::SeqCst) + self.steady_ms();
        let shown_ms = self.shown_ms.fetch_max(now_ms, Ordering::SeqCst);
        if shown_ms.saturating_sub(now_ms) > STANDS_STILL_MS {
            self.shown_ms.store(now_ms, Ordering::SeqCst);
            return now_ms;
        }
        now_ms.max(shown_ms)
    }

    fn steady_ms(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Asks some times; false when the store has no clock of its own. One answer is as late as it took to come, at most:
    /// half of that is the best guess.
    async fn ask(&self, times: usize, ask: Ask<'_>) -> store::Result<bool> {
        for _ in 0..times {
            let asked_ms = self.steady_ms();
            let Some(told_ms) = ask().await? else { return Ok(false) };
            let answered_ms = self.steady_ms();
            self.hear(told_ms - (asked_ms + answered_ms) / 2);
        }
        self.compare(system_ms());
        Ok(true)
    }

    fn hear(&self, begun_ms: i64) {
        let mut heard = self.heard();
        heard.begun_ms.push_back(begun_ms);
        if heard.begun_ms.len() > ANSWERS {
            heard.begun_ms.pop_front();
        }
        let mut sorted: Vec<i64> = heard.begun_ms.iter().copied().collect();
        sorted.sort_unstable();
        self.begun_ms.store(sorted[sorted.len() / 2], Ordering::SeqCst);
    }

    /// Says once that the machine's clock is wrong, how far, and again when that has changed. Returns what was said.
    fn compare(&self, system_ms: i64) -> Option<String> {
        let ahead_ms = system_ms - self.now_ms();
        let mut heard = self.heard();
        if (ahead_ms - heard.said_ms).abs() <= TOLERATED_MS {
            return None;
        }
        heard.said_ms = if ahead_ms.abs() <= TOLERATED_MS { 0 } else { ahead_ms };
        let said = match ahead_ms {
            0.. if heard.said_ms != 0 => format!("the clock of this machine is {ahead_ms} ms ahead of the store's"),
            _ if heard.said_ms != 0 => format!("the clock of this machine is {} ms behind the store's", -ahead_ms),
            _ => {
                tracing::info!("the clock of this machine agrees with the store's again");
                return None;
            }
        };
        tracing::warn!(drift_ms = ahead_ms, "{said}; all times follow the store's, set the machine's right");
        Some(said)
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time to write into a store for whoever has no engine: that of the store's clock, where it has one.
pub async fn now_of(store: &dyn store::Store) -> store::Result<i64> {
    Ok(store.clock_ms().await?.unwrap_or_else(system_ms))
}

fn system_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64) + shift_ms()
}

/// What the machine's clock shows since the epoch, for what is told to other machines and decides nothing here.
pub fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// How wrong a test wants the machine's clock to be, in milliseconds.
#[cfg(debug_assertions)]
fn shift_ms() -> i64 {
    static SHIFT_MS: std::sync::OnceLock<i64> = std::sync::OnceLock::new();
    *SHIFT_MS.get_or_init(|| std::env::var("DURABLE_MCP_CLOCK_SHIFT").ok().and_then(|ms| ms.parse().ok()).unwrap_or(0))
}

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
fn shift_ms() -> i64 {
    0
}

impl Manual {
    /// Moves the clock forward and wakes whoever waits for it.
    pub fn advance(&self, by_ms: i64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
        self.moved.notify_waiters();
    }
}
