//! What happened in a span of time, as numbers that can be added: counted from the logs of executions, and from nothing
//! else but for `repeats`, which leave no event. Knows no database and no clock.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::event::{Event, EventRecord, LOSS_CODES};
use super::execution::ResultSource;

#[cfg(test)]
mod tests;

/// Numbers of a span of time. Each counts events; all of them can be added to those of another span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Calls that were stored.
    #[serde(skip_serializing_if = "is_zero")]
    pub submitted: u64,
    /// Attempts that were started.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: u64,
    /// Attempts of which nobody learnt how they went, then.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Attempts that were ordered after one that ended without a result.
    #[serde(skip_serializing_if = "is_zero")]
    pub retried: u64,
    /// Calls that completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub completed: u64,
    /// Of these, those whose result says `isError`.
    #[serde(skip_serializing_if = "is_zero")]
    pub tool_errors: u64,
    /// Calls that completed although an attempt of theirs was lost.
    #[serde(skip_serializing_if = "is_zero")]
    pub recovered: u64,
    /// Calls that failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Calls that were cancelled.
    #[serde(skip_serializing_if = "is_zero")]
    pub cancelled: u64,
    /// Calls whose outcome became unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown: u64,
    /// Results and reports under an old token, or for what has ended.
    #[serde(skip_serializing_if = "is_zero")]
    pub rejected: u64,
    /// Calls under a key that stands for another call.
    #[serde(skip_serializing_if = "is_zero")]
    pub conflicted: u64,
    /// Calls that were answered by an execution that was there.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: u64,
    /// From submission (or the time a call was delayed to) to the tool's result, in milliseconds.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub latency: Histogram,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Tally {
    /// Adds what another span counted.
    pub fn add(&mut self, other: &Tally) {
        let Tally { latency, .. } = other;
        self.latency.add(latency);
        for (number, more) in self.numbers().into_iter().zip(other.clone().numbers()) {
            *number += *more;
        }
    }

    /// Adds executions that were submitted, leased once and completed with their tool's result, all in one minute. Their
    /// rows say as much as [`count`] reads in their logs; the suite of stores holds the two against each other.
    pub fn add_plain(&mut self, is_error: bool, latency_ms: u64, executions: u64) {
        self.submitted += executions;
        self.attempts += executions;
        self.completed += executions;
        self.tool_errors += if is_error { executions } else { 0 };
        self.latency.record_many(latency_ms, executions);
    }

    /// True when nothing happened.
    pub fn is_empty(&self) -> bool {
        *self == Tally::default()
    }

    fn numbers(&mut self) -> [&mut u64; 13] {
        [
            &mut self.submitted,
            &mut self.attempts,
            &mut self.lost,
            &mut self.retried,
            &mut self.completed,
            &mut self.tool_errors,
            &mut self.recovered,
            &mut self.failed,
            &mut self.cancelled,
            &mut self.unknown,
            &mut self.rejected,
            &mut self.conflicted,
            &mut self.repeats,
        ]
    }
}

/// Tells every minute of `since_ms..until_ms` in which something happened to an execution, from its whole log.
pub fn count(log: &[EventRecord], since_ms: i64, until_ms: i64, minutes: &mut BTreeMap<i64, Tally>) {
    let (mut begun_ms, mut newest_try, mut any_lost) = (None, 0, false);
    for (place, record) in log.iter().enumerate() {
        let mut fresh = Tally::default();
        match &record.event {
            Event::Submitted { run_at_ms, .. } => {
                fresh.submitted = 1;
                begun_ms = Some(run_at_ms.map_or(record.at_ms, |run_at_ms| run_at_ms.max(record.at_ms)));
            }
            Event::Leased { attempt, .. } if *attempt > newest_try && !given_back(&log[place + 1..]) => {
                // A lease that goes on with an attempt after an input round is no other attempt.
                newest_try = *attempt;
                fresh.attempts = 1;
            }
            Event::Retried { error, by, .. } => {
                fresh.retried = 1;
                // Of what was unknown the loss was told before.
                fresh.lost = u64::from(by.is_none() && LOSS_CODES.contains(&error.code.as_str()));
            }
            Event::Lost { .. } => (fresh.lost, fresh.unknown) = (1, 1),
            Event::Failed { error, by, attempt, .. } => {
                fresh.failed = 1;
                let last_was_lost = by.is_none() && *attempt > 0 && LOSS_CODES.contains(&error.code.as_str());
                fresh.lost = u64::from(last_was_lost);
            }
            Event::Completed { source, is_error, .. } => {
                fresh.completed = 1;
                fresh.tool_errors = u64::from(*is_error);
                fresh.recovered = u64::from(any_lost);
                if let (ResultSource::Result | ResultSource::LateResult, Some(begun_ms)) = (source, begun_ms) {
                    fresh.latency.record(record.at_ms.saturating_sub(begun_ms).max(0).unsigned_abs());
                }
            }
            Event::Cancelled { .. } => fresh.cancelled = 1,
            Event::Rejected { .. } => fresh.rejected = 1,
            Event::Conflicted { .. } => fresh.conflicted = 1,
            Event::Leased { .. }
            | Event::Promoted
            | Event::Released { .. }
            | Event::Held
            | Event::Parked
            | Event::Resumed => {}
        }
        any_lost |= fresh.lost > 0;
        if (since_ms..until_ms).contains(&record.at_ms) && !fresh.is_empty() {
            minutes.entry(minute_of(record.at_ms)).or_default().add(&fresh);
        }
    }
}

/// True when the next thing that happened to a lease is that its worker gave it back unstarted.
fn given_back(later: &[EventRecord]) -> bool {
    let notes = |record: &&EventRecord| !matches!(record.event, Event::Rejected { .. } | Event::Conflicted { .. });
    matches!(later.iter().find(notes).map(|record| &record.event), Some(Event::Released { .. }))
}

/// A minute, in milliseconds.
pub const MINUTE_MS: i64 = 60_000;

/// The beginning of the minute of a moment.
pub fn minute_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(MINUTE_MS) * MINUTE_MS
}

/// Counts numbers in buckets whose width grows with the number: below 16 each has its own, above a bucket is at most a
/// sixteenth of its lower bound wide. So a quantile is at most 3.2 % off, and whatever comes, 976 buckets are enough.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Histogram(BTreeMap<u16, u64>);

/// Buckets in each doubling.
const STEPS: u64 = 16;
const STEP_BITS: u32 = STEPS.trailing_zeros();

impl Histogram {
    /// Counts a number.
    pub fn record(&mut self, number: u64) {
        self.record_many(number, 1);
    }

    /// Counts a number that came so often.
    pub fn record_many(&mut self, number: u64, times: u64) {
        if times > 0 {
            *self.0.entry(bucket(number)).or_default() += times;
        }
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Histogram) {
        for (bucket, count) in &other.0 {
            *self.0.entry(*bucket).or_default() += count;
        }
    }

    /// True when nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The number that `percent` per cent of those counted do not exceed, as near as the buckets tell; `None` of nothing.
    pub fn quantile(&self, percent: u64) -> Option<u64> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        self.0.iter().find_map(|(bucket, count)| {
            seen += count;
            (seen >= rank).then(|| middle(*bucket))
        })
    }
}

/// Written as `bucket:count bucket:count …`: a day has many of them, and this is read fastest.
impl TryFrom<String> for Histogram {
    type Error = String;

    fn try_from(text: String) -> Result<Histogram, String> {
        let pair = |pair: &str| {
            let (bucket, count) = pair.split_once(':')?;
            Some((bucket.parse().ok()?, count.parse().ok()?))
        };
        let buckets: Option<BTreeMap<u16, u64>> = text.split_ascii_whitespace().map(pair).collect();
        buckets.map(Histogram).ok_or_else(|| "these are no buckets and counts".into())
    }
}

impl From<Histogram> for String {
    fn from(histogram: Histogram) -> String {
        let pairs: Vec<String> = histogram.0.iter().map(|(bucket, count)| format!("{bucket}:{count}")).collect();
        pairs.join(" ")
    }
}

fn bucket(number: u64) -> u16 {
    if number < STEPS {
        return number as u16;
    }
    let doublings = number.ilog2() - STEP_BITS;
    ((u64::from(doublings) + 1) * STEPS + (number >> doublings) - STEPS) as u16
}

fn middle(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < STEPS {
        return bucket;
    }
    // A bucket that nobody made is as the last one.
    let doublings = (bucket / STEPS - 1).min(u64::from(u64::BITS - STEP_BITS) - 1);
    let low = (STEPS + bucket % STEPS) << doublings;
    low + ((1 << doublings) - 1) / 2
}
