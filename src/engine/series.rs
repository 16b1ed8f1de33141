//! Numbers over time: minutes are counted once they are over, a little at a time, and kept; the minutes since are counted
//! when somebody asks, and whoever asks again pays for what is new only. So every number is that of the log, and no write of
//! a call pays for it. Only repeats leave no event: each process counts its own and writes them down, the last second of a
//! killed process is missing from them. How a span is counted is the store's (`store/counting.rs`).

mod ledger;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::ledger::{Ledger, rows};
use super::rests::Rests;
use super::{Engine, Result};
use crate::model::tally::{MINUTE_MS, Tally, minute_of};
use crate::store::counting::{Pace, Unpaced, count_span};
use crate::store::series::{Counted, PutSeries, SeriesQuery, SeriesRow, Whose};

/// What is told at most, and so what is kept: a day, and the minute it began in.
const KEEP_MS: i64 = 86_400_000 + 2 * MINUTE_MS;
/// A minute is counted for good so long after its end: another process may have decided on an event in it before that.
const CLOSE_AFTER_MS: i64 = 30_000;
/// What is counted and written at once after a time in which nobody counted.
const CLOSED_AT_ONCE_MS: i64 = 60 * MINUTE_MS;
/// Minutes in which nothing happened are written down once there are so many, in milliseconds.
const IDLE_MS: i64 = 10 * MINUTE_MS;
/// The part of a core that counting takes at most while it keeps up with the calls, in percent.
const SHARE: u32 = 10;
/// The same while the numbers lag.
const SHARE_BEHIND: u32 = 50;
/// Numbers that lag by more are counted faster.
const CATCHES_UP_MS: i64 = 10 * MINUTE_MS;
/// What was counted since the last minute that is kept is told so long without looking again.
const FRESH_MS: i64 = 1_000;
/// Principals whose repeats are told apart in a minute; those of more are counted for their namespace only.
const PRINCIPALS_MAX: usize = 10_000;

/// How far back one looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// 15 minutes, by the minute.
    QuarterHour,
    /// An hour, by the minute.
    Hour,
    /// A day, by ten minutes.
    Day,
}

impl Range {
    /// Every range.
    pub const ALL: [Range; 3] = [Range::QuarterHour, Range::Hour, Range::Day];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Range::QuarterHour => "15m",
            Range::Hour => "1h",
            Range::Day => "24h",
        }
    }

    /// How long it is, and each of its steps, in milliseconds.
    fn spans_ms(self) -> (i64, i64) {
        match self {
            Range::QuarterHour => (15 * MINUTE_MS, MINUTE_MS),
            Range::Hour => (60 * MINUTE_MS, MINUTE_MS),
            Range::Day => (24 * 60 * MINUTE_MS, 10 * MINUTE_MS),
        }
    }
}

/// Numbers of a range, step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// When it was told, in milliseconds since the epoch; the last step goes on.
    pub at_ms: i64,
    /// The beginning of the first step.
    pub from_ms: i64,
    /// How long each step is.
    pub step_ms: i64,
    /// The steps.
    pub steps: Vec<Tally>,
    /// All together.
    pub sum: Tally,
}

/// A principal in a namespace and a minute.
type Place = (i64, String, String);

/// What leaves no event, and was counted here.
#[derive(Debug, Default)]
pub(super) struct Repeats(Mutex<Minutes>);

#[derive(Debug, Default)]
struct Minutes {
    counts: HashMap<Place, u64>,
    /// Not all of it is written down.
    unwritten: bool,
}

impl Repeats {
    fn minutes(&self) -> MutexGuard<'_, Minutes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, now_ms: i64, namespace: &str, principal: &str) {
        let mut minutes = self.minutes();
        let mut place = (minute_of(now_ms), namespace.to_owned(), principal.to_owned());
        if minutes.counts.len() >= PRINCIPALS_MAX && !minutes.counts.contains_key(&place) {
            place.2.clear();
        }
        *minutes.counts.entry(place).or_default() += 1;
        minutes.unwritten = true;
    }
}

/// Minutes that are not kept yet, as somebody asked for them last.
#[derive(Debug, Default)]
pub(super) struct Recent(tokio::sync::Mutex<Asked>);

#[derive(Debug, Default)]
struct Asked {
    /// What can change no more.
    ledger: Ledger,
    looked: Option<Looked>,
}

#[derive(Debug)]
struct Looked {
    since_ms: i64,
    at_ms: i64,
    rows: Arc<[SeriesRow]>,
}

impl Engine {
    /// Notes that a call was answered by an execution that was there.
    pub(super) fn count_repeat(&self, namespace: &str, principal: &str) {
        self.repeats.count(self.now_ms(), namespace, principal);
    }

    /// Numbers of a range up to now.
    ///
    /// # Errors
    ///
    /// The store's.
    pub async fn series(&self, range: Range, whose: &Whose) -> Result<Series> {
        self.write_repeats().await?;
        let at_ms = self.now_ms();
        let (span_ms, step_ms) = range.spans_ms();
        let until_ms = (at_ms.div_euclid(step_ms) + 1) * step_ms;
        let from_ms = until_ms - span_ms;
        let closed_ms = self.store.series_closed_until().await?.clamp(minute_of(at_ms - KEEP_MS), until_ms);
        let query = SeriesQuery { whose: whose.clone(), since_ms: from_ms, until_ms };
        let mut rows = self.store.series(query).await?;
        // What a colleague counts meanwhile is not counted twice.
        rows.retain(|row| row.minute_ms < closed_ms || matches!(row.counted, Counted::Process(_)));
        let recent = self.recent(closed_ms, at_ms).await?;
        let wanted = if whose.principal.is_some() { Counted::Log } else { Counted::LogOfAll };
        let seen = |row: &&SeriesRow| {
            row.counted == wanted
                && whose.namespace.as_ref().is_none_or(|namespace| *namespace == row.namespace)
                && whose.principal.as_ref().is_none_or(|principal| *principal == row.principal)
        };
        let mut steps = vec![Tally::default(); (span_ms / step_ms) as usize];
        let mut sum = Tally::default();
        for row in rows.iter().chain(recent.iter().filter(seen)) {
            let step = usize::try_from((row.minute_ms - from_ms).div_euclid(step_ms)).ok();
            if let Some(step) = step.and_then(|step| steps.get_mut(step)) {
                step.add(&row.tally);
                sum.add(&row.tally);
            }
        }
        Ok(Series { at_ms, from_ms, step_ms, steps, sum })
    }

    /// The minutes from `since_ms` on. One looks at a time, for all who ask; what was settled at the last look is not
    /// counted again.
    async fn recent(&self, since_ms: i64, at_ms: i64) -> Result<Arc<[SeriesRow]>> {
        let mut asked = self.recent.0.lock().await;
        let Asked { ledger, looked } = &mut *asked;
        if let Some(looked) = looked
            && looked.since_ms == since_ms
            && (0..FRESH_MS).contains(&(at_ms - looked.at_ms))
        {
            return Ok(looked.rows.clone());
        }
        let settled_ms = self.events_settled_before().min(at_ms);
        ledger.begin_at(since_ms);
        ledger.advance(&*self.store, settled_ms, at_ms).await?;
        // The newest event may bear this very moment.
        let span = (ledger.until_ms(), at_ms + 1);
        let newest = count_span(&*self.store, span, at_ms, &mut Unpaced).await?;
        let rows: Arc<[SeriesRow]> = ledger.rows_with(&newest).into();
        *looked = Some(Looked { since_ms, at_ms, rows: rows.clone() });
        Ok(rows)
    }

    /// The moment before which every minute is over, and all of its events are there.
    fn minutes_over_ms(&self) -> i64 {
        minute_of(self.events_settled_before().min(self.now_ms() - CLOSE_AFTER_MS))
    }

    /// Counts the minutes that are over, and keeps them; those in which nothing happened some together, so that a store
    /// that nobody uses is hardly ever written to.
    ///
    /// # Errors
    ///
    /// The store's; what was kept before stays.
    pub async fn close_minutes(&self) -> Result<()> {
        self.close_paced(&mut Unpaced).await
    }

    /// The same, with rests after each read.
    pub(super) async fn close_with_rests(&self, keeps_up: bool) -> Result<()> {
        let share = if keeps_up { SHARE } else { SHARE_BEHIND };
        self.close_paced(&mut Rests::begin(&self.clock, &self.stop, share)).await
    }

    async fn close_paced(&self, pace: &mut dyn Pace) -> Result<()> {
        let over_ms = self.minutes_over_ms();
        let keep_since_ms = minute_of(self.now_ms() - KEEP_MS);
        let mut closed_ms = self.store.series_closed_until().await?.max(keep_since_ms);
        while closed_ms < over_ms && !self.stop.is_cancelled() {
            let until_ms = over_ms.min(closed_ms + CLOSED_AT_ONCE_MS);
            let tallies = count_span(&*self.store, (closed_ms, until_ms), self.now_ms(), pace).await?;
            let rows = rows(&tallies);
            if rows.is_empty() && until_ms - closed_ms < IDLE_MS {
                break;
            }
            self.store.put_series(PutSeries { rows, closed_until_ms: Some(until_ms), keep_since_ms }).await?;
            closed_ms = until_ms;
        }
        Ok(())
    }

    /// Writes down what was counted here and leaves no event.
    async fn write_repeats(&self) -> Result<()> {
        let this_minute_ms = minute_of(self.now_ms());
        let rows: Vec<SeriesRow> = {
            let mut minutes = self.repeats.minutes();
            if !std::mem::take(&mut minutes.unwritten) {
                return Ok(());
            }
            let row = |((minute_ms, namespace, principal), repeats): (&Place, &u64)| SeriesRow {
                minute_ms: *minute_ms,
                namespace: namespace.clone(),
                principal: principal.clone(),
                counted: Counted::Process(self.process),
                tally: Tally { repeats: *repeats, ..Tally::default() },
            };
            minutes.counts.iter().map(row).collect()
        };
        let written: Vec<Place> =
            rows.iter().map(|row| (row.minute_ms, row.namespace.clone(), row.principal.clone())).collect();
        let put = PutSeries { rows, closed_until_ms: None, keep_since_ms: minute_of(self.now_ms() - KEEP_MS) };
        if let Err(error) = self.store.put_series(put).await {
            self.repeats.minutes().unwritten = true;
            return Err(error.into());
        }
        // A minute that is over, and was written as a whole, is needed no more.
        let mut minutes = self.repeats.minutes();
        if !minutes.unwritten {
            for place in written.iter().filter(|place| place.0 < this_minute_ms) {
                minutes.counts.remove(place);
            }
        }
        Ok(())
    }

    /// Keeps numbers: what was counted here always, the minutes where the scheduler runs.
    pub(super) async fn series_loop(self: Arc<Self>, closes: bool) {
        let mut looked_ms = 0;
        loop {
            if let Err(error) = self.write_repeats().await {
                tracing::warn!(code = error.code(), "the number of repeats could not be stored: {error}");
            }
            let over_ms = self.minutes_over_ms();
            if closes && over_ms > looked_ms {
                let keeps_up = looked_ms > 0 && over_ms - looked_ms <= CATCHES_UP_MS;
                match self.close_with_rests(keeps_up).await {
                    Ok(()) => looked_ms = over_ms,
                    Err(error) => {
                        tracing::warn!(code = error.code(), "the numbers of a minute could not be stored: {error}");
                    }
                }
            }
            let next_at_ms = self.now_ms() + self.settings.scheduler_interval_ms;
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = self.clock.sleep_until(next_at_ms + self.spread_ms()) => {}
            }
        }
        if let Err(error) = self.write_repeats().await {
            tracing::warn!(code = error.code(), "the number of repeats could not be stored: {error}");
        }
    }
}
