//! A bar on stderr for long work, for a person at a terminal only; it shows itself when there is something to wait for.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that takes no longer is over before anybody looks for a bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// Progress of one piece of work.
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
}

impl Progress {
    /// Nothing is shown yet. `what` says what is counted, such as `pages`.
    pub fn new(what: &'static str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(&format!("{{wide_bar}} {{pos}}/{{len}} {what}, {{eta}} left"));
        // The template is ours; without it the bar is plain.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar, since: Instant::now() }
    }

    /// So many of so many are done.
    pub fn set(&self, done: u64, all: u64) {
        if self.bar.is_hidden() && self.since.elapsed() > PATIENCE && std::io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        self.bar.set_length(all);
        self.bar.set_position(done);
    }

    /// Prints a line without breaking the bar.
    pub fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
