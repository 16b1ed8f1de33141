//! Numbers over time: minutes are counted from the log once they are over, and kept; the minutes since are counted when
//! somebody asks. So every number is that of the log, and no write of a call pays for it. Only repeats leave no event:
//! each process counts its own and writes them down, the last second of a killed process is missing from them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Engine, Result};
use crate::model::tally::{MINUTE_MS, Tally, count, minute_of};
use crate::store::series::{Counted, PutSeries, SeriesQuery, SeriesRow, Whose};
use crate::store::{self, ListQuery, Store, TouchedQuery};

/// What is told at most, and so what is kept: a day, and the minute it began in.
const KEEP_MS: i64 = 86_400_000 + 2 * MINUTE_MS;
/// A minute is counted for good so long after its end: another process may have decided on an event in it before that.
const CLOSE_AFTER_MS: i64 = 30_000;
/// What is counted and written at once after a time in which nobody counted.
const CLOSED_AT_ONCE_MS: i64 = 60 * MINUTE_MS;
/// Minutes in which nothing happened are written down once there are so many, in milliseconds.
const IDLE_MS: i64 = 10 * MINUTE_MS;
/// Executions whose logs are read at once.
const HEADS: usize = 500;
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
pub(super) struct Recent(tokio::sync::Mutex<Option<Looked>>);

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

    /// The minutes from `since_ms` on, counted from the log. One looks at a time, for all who ask.
    async fn recent(&self, since_ms: i64, at_ms: i64) -> Result<Arc<[SeriesRow]>> {
        let mut looked = self.recent.0.lock().await;
        if let Some(looked) = &*looked
            && looked.since_ms == since_ms
            && (0..FRESH_MS).contains(&(at_ms - looked.at_ms))
        {
            return Ok(looked.rows.clone());
        }
        // The newest event may bear this very moment.
        let rows: Arc<[SeriesRow]> = counted(&*self.store, since_ms, at_ms + 1).await?.into();
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
        let over_ms = self.minutes_over_ms();
        let keep_since_ms = minute_of(self.now_ms() - KEEP_MS);
        let mut closed_ms = self.store.series_closed_until().await?.max(keep_since_ms);
        while closed_ms < over_ms && !self.stop.is_cancelled() {
            let until_ms = over_ms.min(closed_ms + CLOSED_AT_ONCE_MS);
            let rows = counted(&*self.store, closed_ms, until_ms).await?;
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
                match self.close_minutes().await {
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

/// What the log says of a span: for each principal, and for all of each namespace.
async fn counted(store: &dyn Store, since_ms: i64, until_ms: i64) -> store::Result<Vec<SeriesRow>> {
    let mut whose: HashMap<(String, String), BTreeMap<i64, Tally>> = HashMap::new();
    let mut after = None;
    loop {
        let query = TouchedQuery { filter: ListQuery::default(), since_ms, until_ms, after, limit: HEADS };
        let heads = store.touched(query).await?;
        let logs = store.logs(heads.iter().map(crate::model::execution::Head::id).collect()).await?;
        for (head, (_, log)) in heads.iter().zip(&logs) {
            let minutes = whose.entry((head.ident.namespace.clone(), head.ident.principal.clone())).or_default();
            count(log, since_ms, until_ms, minutes);
        }
        match heads.last() {
            Some(last) if heads.len() >= HEADS => after = Some(last.id()),
            _ => break,
        }
    }
    let mut all: BTreeMap<(i64, String), Tally> = BTreeMap::new();
    let mut rows = Vec::new();
    for ((namespace, principal), minutes) in whose {
        for (minute_ms, tally) in minutes {
            all.entry((minute_ms, namespace.clone())).or_default().add(&tally);
            let (namespace, principal) = (namespace.clone(), principal.clone());
            rows.push(SeriesRow { minute_ms, namespace, principal, counted: Counted::Log, tally });
        }
    }
    let of_all = |((minute_ms, namespace), tally)| SeriesRow {
        minute_ms,
        namespace,
        principal: String::new(),
        counted: Counted::LogOfAll,
        tally,
    };
    rows.extend(all.into_iter().map(of_all));
    Ok(rows)
}
