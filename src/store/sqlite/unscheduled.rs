//! How long this thread was ready to run and had to wait for a processor. With it a log can tell a writer that waited for
//! another from one that was not run. Known on Linux only; changes nothing.

use std::time::Duration;

/// The time since the thread began; `None` where the system does not say.
pub(super) fn so_far() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Measures from here on, where the log asks for it.
pub(super) fn measure(wanted: bool) -> Measure {
    Measure(wanted.then(so_far).flatten())
}

/// A measurement that has begun.
pub(super) struct Measure(Option<Duration>);

impl Measure {
    /// The time since it began, in microseconds; 0 where nothing is known.
    pub(super) fn micros(&self) -> u64 {
        let since = self.0.and_then(|then| so_far().map(|now| now.saturating_sub(then)));
        since.map_or(0, |since| since.as_micros() as u64)
    }
}
