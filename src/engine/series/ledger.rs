//! What was counted and is not kept in the store yet, up to a moment that only moves on. Counts nothing itself.

use std::collections::BTreeMap;

use crate::model::tally::Tally;
use crate::store;
use crate::store::counting::{Tallies, Unpaced, count_span};
use crate::store::series::{Counted, SeriesRow, SeriesStore};

/// The numbers of a span.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    from_ms: i64,
    until_ms: i64,
    tallies: Tallies,
}

impl Ledger {
    /// Forgets the minutes before `from_ms`: they are kept elsewhere.
    pub(super) fn begin_at(&mut self, from_ms: i64) {
        if !(self.from_ms..=self.until_ms).contains(&from_ms) {
            *self = Ledger { from_ms, until_ms: from_ms, tallies: Tallies::new() };
            return;
        }
        self.from_ms = from_ms;
        self.tallies.retain(|_, minutes| {
            minutes.retain(|minute_ms, _| *minute_ms >= from_ms);
            !minutes.is_empty()
        });
    }

    /// Up to where it is counted.
    pub(super) fn until_ms(&self) -> i64 {
        self.until_ms
    }

    /// Counts on to `until_ms`, of which every event is there; stays as it was after an error.
    pub(super) async fn advance(&mut self, store: &dyn SeriesStore, until_ms: i64, now_ms: i64) -> store::Result<()> {
        if until_ms > self.until_ms {
            let new = count_span(store, (self.until_ms, until_ms), now_ms, &mut Unpaced).await?;
            add(&mut self.tallies, &new);
            self.until_ms = until_ms;
        }
        Ok(())
    }

    /// Its rows with what was counted beyond it.
    pub(super) fn rows_with(&self, newest: &Tallies) -> Vec<SeriesRow> {
        let mut all = self.tallies.clone();
        add(&mut all, newest);
        rows(&all)
    }
}

fn add(all: &mut Tallies, more: &Tallies) {
    for (place, minutes) in more {
        let into = all.entry(place.clone()).or_default();
        for (minute_ms, tally) in minutes {
            into.entry(*minute_ms).or_default().add(tally);
        }
    }
}

/// The rows of a span: for each principal, and for all of each namespace.
pub(super) fn rows(tallies: &Tallies) -> Vec<SeriesRow> {
    let mut all: BTreeMap<(i64, &String), Tally> = BTreeMap::new();
    let mut rows = Vec::new();
    for ((namespace, principal), minutes) in tallies {
        for (minute_ms, tally) in minutes {
            all.entry((*minute_ms, namespace)).or_default().add(tally);
            rows.push(SeriesRow {
                minute_ms: *minute_ms,
                namespace: namespace.clone(),
                principal: principal.clone(),
                counted: Counted::Log,
                tally: tally.clone(),
            });
        }
    }
    rows.extend(all.into_iter().map(|((minute_ms, namespace), tally)| SeriesRow {
        minute_ms,
        namespace: namespace.clone(),
        principal: String::new(),
        counted: Counted::LogOfAll,
        tally,
    }));
    rows
}
