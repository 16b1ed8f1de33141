//! What was measured: latencies in a histogram of bounded size, answers, errors by kind, wrong answers. Counts what ends
//! inside the window and nothing else.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

/// The longest latency that is told apart, in microseconds.
const LONGEST_US: u64 = 600_000_000;
/// Latencies are exact to three digits.
const DIGITS: u8 = 3;
/// Kinds of errors that are told apart.
const KINDS_MAX: usize = 32;

/// See the module.
#[derive(Debug)]
pub struct Tally {
    fresh: Histogram<u64>,
    repeats: Histogram<u64>,
    attached: u64,
    errors: BTreeMap<String, Errors>,
    wrong: u64,
    first_wrong: Option<String>,
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Errors {
    /// How many.
    pub count: u64,
    /// What the first one said.
    pub first: String,
}

/// Latencies in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// Half of the calls were not slower.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
}

/// What one stretch of time showed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Measured {
    /// How long it was measured.
    pub seconds: f64,
    /// Calls with a new key that were answered rightly.
    pub calls: u64,
    /// The same in a second.
    pub calls_per_s: f64,
    /// Of these calls.
    pub latency_ms: Latency,
    /// Calls that repeat a key.
    pub repeats: Option<Repeats>,
    /// Errors by kind.
    pub errors: BTreeMap<String, Errors>,
    /// Answers that were not those of their calls.
    pub wrong: u64,
    /// What the first of these was.
    pub first_wrong: Option<String>,
}

/// Calls that repeat a key.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Repeats {
    /// Answered rightly.
    pub answered: u64,
    /// Of these, with the execution of the first call.
    pub attached: u64,
    /// In a second.
    pub per_s: f64,
    /// Of these calls.
    pub latency_ms: Latency,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            fresh: histogram(),
            repeats: histogram(),
            attached: 0,
            errors: BTreeMap::new(),
            wrong: 0,
            first_wrong: None,
        }
    }
}

impl Tally {
    /// Notes a right answer to a new key.
    pub fn answered(&mut self, took: Duration) {
        self.fresh.saturating_record(micros(took));
    }

    /// Notes a right answer to a repeated key.
    pub fn repeated(&mut self, took: Duration, attached: bool) {
        self.repeats.saturating_record(micros(took));
        self.attached += u64::from(attached);
    }

    /// Notes an error.
    pub fn failed(&mut self, kind: &str, text: impl FnOnce() -> String) {
        let known = self.errors.contains_key(kind) || self.errors.len() < KINDS_MAX;
        let kind = if known { kind } else { "other" };
        let errors = self.errors.entry(kind.to_owned()).or_insert_with(|| Errors { count: 0, first: text() });
        errors.count += 1;
    }

    /// Notes an answer to another question.
    pub fn wrong(&mut self, what: String) {
        self.wrong += 1;
        self.first_wrong.get_or_insert(what);
    }

    /// What it all came to in so long.
    pub fn measured(&self, elapsed: Duration) -> Measured {
        let seconds = elapsed.as_secs_f64().max(1e-6);
        let repeats = (!self.repeats.is_empty()).then(|| Repeats {
            answered: self.repeats.len(),
            attached: self.attached,
            per_s: self.repeats.len() as f64 / seconds,
            latency_ms: latency(&self.repeats),
        });
        Measured {
            seconds,
            calls: self.fresh.len(),
            calls_per_s: self.fresh.len() as f64 / seconds,
            latency_ms: latency(&self.fresh),
            repeats,
            errors: self.errors.clone(),
            wrong: self.wrong,
            first_wrong: self.first_wrong.clone(),
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, DIGITS).expect("the bounds are in order and the digits are 0 to 5")
}

fn micros(took: Duration) -> u64 {
    took.as_micros().try_into().unwrap_or(u64::MAX)
}

fn latency(of: &Histogram<u64>) -> Latency {
    let at = |part: f64| of.value_at_quantile(part) as f64 / 1_000.0;
    Latency { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: of.max() as f64 / 1_000.0 }
}

/// The stretch of time in which answers count.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub until: Instant,
}

impl Window {
    /// After a warm-up, for so long.
    pub fn after(warmup: Duration, duration: Duration) -> Window {
        let from = Instant::now() + warmup;
        Window { from, until: from + duration }
    }

    /// True inside.
    pub fn holds(&self, at: Instant) -> bool {
        (self.from..self.until).contains(&at)
    }

    /// How much of it has passed.
    pub fn passed(&self) -> Duration {
        Instant::now().min(self.until).saturating_duration_since(self.from)
    }
}
