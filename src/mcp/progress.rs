//! Progress values as a client may see them: strictly rising over the whole call, also across attempts and keep-alives.
//! Reports nothing by itself.

use crate::engine::waiters::Progress;

/// The last value sent, and what a sign of life adds to it.
#[derive(Debug, Default)]
pub struct Rising {
    last: Option<Progress>,
}

/// What a sign of life adds; small, since it says nothing about the work.
const FRACTION: f64 = 1e-6;

impl Rising {
    /// The report, if its value is above the last one sent; else nothing.
    pub fn next(&mut self, progress: Progress) -> Option<Progress> {
        let rises = self.last.as_ref().is_none_or(|last| progress.progress > last.progress);
        if !rises || !progress.progress.is_finite() {
            return None;
        }
        self.last = Some(progress.clone());
        Some(progress)
    }

    /// The last value again, a little higher.
    pub fn again(&mut self) -> Progress {
        let last = self.last.take().unwrap_or(Progress { progress: 0.0, total: None, message: None });
        let step = (last.progress.abs() * FRACTION).max(FRACTION);
        let next = Progress { progress: last.progress + step, ..last };
        self.last = Some(next.clone());
        next
    }
}
