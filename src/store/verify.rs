//! What must hold of what is stored, as pure rules: an execution's events are gapless 1..n, its row is their fold, one
//! event is final, no attempt ran that was not allowed. `db verify` and the fault tests use these same rules. Reads
//! nothing: a driver or a test brings rows and events, in order.

use std::collections::BTreeSet;

use crate::model::event::{Digest, Event, EventRecord};
use crate::model::execution::{Head, Lease};
use crate::model::policy::Delivery;

#[cfg(test)]
mod tests;

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule.
    pub rule: Rule,
    /// The execution it is about; absent when it is about the file.
    pub execution: Option<String>,
    /// What is wrong, one line, without payloads.
    pub what: String,
}

impl Finding {
    /// About one execution.
    pub fn of(execution: impl ToString, rule: Rule, what: impl Into<String>) -> Finding {
        Finding { rule, execution: Some(execution.to_string()), what: what.into() }
    }

    /// About the file as a whole.
    pub fn of_file(rule: Rule, what: impl Into<String>) -> Finding {
        Finding { rule, execution: None, what: what.into() }
    }
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The database's own pages hold together.
    Integrity,
    /// Tables, indexes and triggers are those of this program.
    Schema,
    /// Rows and events can be read.
    Readable,
    /// Events are numbered 1..n without gaps, and the row knows n.
    Gapless,
    /// The row is the fold of its events.
    Fold,
    /// An ended execution has one final event, any other none; nothing changes after it.
    Final,
    /// No attempt was started that delivery and retries do not allow.
    Attempts,
    /// A stored result is the one its event speaks of, whole.
    Payload,
    /// Keys lead to the executions that carry them.
    Key,
    /// Nothing is left of executions that are gone.
    Orphan,
}

impl Rule {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::Integrity => "integrity",
            Rule::Schema => "schema",
            Rule::Readable => "readable",
            Rule::Gapless => "gapless",
            Rule::Fold => "fold",
            Rule::Final => "final",
            Rule::Attempts => "attempts",
            Rule::Payload => "payload",
            Rule::Key => "key",
            Rule::Orphan => "orphan",
        }
    }
}

/// One execution under audit. Its events are given one by one, so that no history is too long to check.
pub struct Audit<'a> {
    head: &'a Head,
    folded: Option<Head>,
    next_seq: i64,
    finals: usize,
    runs: Runs,
    result: Option<Digest>,
    findings: Vec<Finding>,
}

impl<'a> Audit<'a> {
    /// Begins with the row.
    pub fn of(head: &'a Head) -> Audit<'a> {
        Audit { head, folded: None, next_seq: 1, finals: 0, runs: Runs::default(), result: None, findings: Vec::new() }
    }

    /// Takes the next event.
    pub fn event(&mut self, record: &EventRecord) {
        if record.seq != self.next_seq {
            self.found(Rule::Gapless, format!("event {} stands where {} should be", record.seq, self.next_seq));
        }
        self.next_seq = record.seq + 1;
        let submitted = matches!(record.event, Event::Submitted { .. });
        if submitted != self.folded.is_none() {
            self.found(Rule::Fold, format!("event {} is {}", record.seq, record.event.name()));
        }
        let note = matches!(record.event, Event::Rejected { .. } | Event::Conflicted { .. });
        if self.finals > 0 && !note {
            self.found(Rule::Final, format!("event {} ({}) is after the end", record.seq, record.event.name()));
        }
        self.finals += usize::from(record.event.is_final());
        self.runs.event(&record.event);
        if let Event::Completed { result, .. } = &record.event {
            self.result = Some(result.clone());
        }
        let head = self.head;
        let folded = self.folded.get_or_insert_with(|| Head::new(head.ident.clone(), record.at_ms));
        folded.apply(&record.event, record.at_ms);
    }

    /// The digest of the result, as the events have it so far.
    pub fn result(&self) -> Option<&Digest> {
        self.result.as_ref()
    }

    /// Ends with everything that does not hold.
    pub fn end(mut self) -> Vec<Finding> {
        let head = self.head;
        if self.next_seq != head.next_seq {
            let (last, known) = (self.next_seq - 1, head.next_seq - 1);
            self.found(Rule::Gapless, format!("the last event is {last}, the row knows of {known}"));
        }
        match self.folded.take() {
            None => self.found(Rule::Fold, "it has no events".into()),
            Some(folded) => {
                let differs = differences(&folded, head);
                if !differs.is_empty() {
                    self.found(Rule::Fold, format!("the row is not its events' fold: {}", differs.join(", ")));
                }
            }
        }
        let (finals, expected) = (self.finals, usize::from(head.state.is_ended()));
        if finals != expected {
            self.found(Rule::Final, format!("it is {} with {finals} final events", head.state.as_str()));
        }
        let (runs, allowed) = (self.runs.possible.len(), self.runs.allowed(head));
        if runs > allowed {
            self.found(Rule::Attempts, format!("{runs} attempts may have run, {allowed} are allowed"));
        }
        self.findings
    }

    fn found(&mut self, rule: Rule, what: String) {
        self.findings.push(Finding::of(self.head.id(), rule, what));
    }
}

/// The attempts that may have reached the tool: leased, and neither given back nor known not to have run.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Their numbers.
    pub possible: BTreeSet<u32>,
    /// Attempts that a person or a reconcile rule ordered.
    pub ordered: usize,
    current: u32,
}

impl Runs {
    /// Of a whole history.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Runs {
        let mut runs = Runs::default();
        events.into_iter().for_each(|record| runs.event(&record.event));
        runs
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Leased { attempt, .. } => {
                self.current = *attempt;
                self.possible.insert(*attempt);
            }
            Event::Released { .. } => {
                self.possible.remove(&self.current);
            }
            Event::Retried { attempt, ran, by, .. } => {
                self.ordered += usize::from(by.is_some());
                if !ran {
                    self.possible.remove(attempt);
                }
            }
            _ => {}
        }
    }

    /// How many may have run under the promise of `head`.
    pub fn allowed(&self, head: &Head) -> usize {
        let policy = &head.ident.policy;
        let promised = match policy.delivery {
            Delivery::AtMostOnce => 1,
            Delivery::AtLeastOnce => policy.retry.max_attempts.max(1) as usize,
        };
        promised + self.ordered
    }
}

/// What of the row differs from the fold, by name. Not compared, since no event tells them: version, lease expiry and
/// delivery marks; nor what the submission fixed, which the fold takes from the row.
fn differences(folded: &Head, head: &Head) -> Vec<&'static str> {
    // Every member by name: a new one must be thought of here.
    let Head {
        ident: _,
        version: _,
        waiter: _,
        delivered_at_ms: _,
        handle_given: _,
        lease,
        state,
        attempt,
        attempts_allowed,
        fencing_token,
        effect_possible,
        continues,
        run_at_ms,
        created_at_ms,
        updated_at_ms,
        ended_at_ms,
        next_seq,
        is_error,
        source,
        error,
        effect,
        notes,
        waited_ms,
        waiting_since_ms,
    } = head;
    let holder = |lease: &Option<Lease>| lease.as_ref().map(|lease| (lease.worker.clone(), lease.process));
    let pairs = [
        ("state", folded.state == *state),
        ("attempt", folded.attempt == *attempt),
        ("attempts_allowed", folded.attempts_allowed == *attempts_allowed),
        ("fencing_token", folded.fencing_token == *fencing_token),
        ("lease", holder(&folded.lease) == holder(lease)),
        ("effect_possible", folded.effect_possible == *effect_possible),
        ("continues", folded.continues == *continues),
        ("run_at", folded.run_at_ms == *run_at_ms),
        ("created_at", folded.created_at_ms == *created_at_ms),
        ("updated_at", folded.updated_at_ms == *updated_at_ms),
        ("ended_at", folded.ended_at_ms == *ended_at_ms),
        ("next_seq", folded.next_seq == *next_seq),
        ("is_error", folded.is_error == *is_error),
        ("source", folded.source == *source),
        ("error", folded.error == *error),
        ("effect", folded.effect == *effect),
        ("notes", folded.notes == *notes),
        ("waited", folded.waited_ms == *waited_ms),
        ("waiting_since", folded.waiting_since_ms == *waiting_since_ms),
    ];
    pairs.into_iter().filter(|(_, equal)| !equal).map(|(name, _)| name).collect()
}
