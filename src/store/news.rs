//! What a wait for other processes' changes brings: what changed, as far as they said, so that whoever is not concerned
//! need not look. Says which changes of an execution concern others; tells nobody itself.

use std::collections::BTreeSet;

use super::{Applied, SubmitOutcome};
use crate::model::decide::Answer;
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;

/// Executions, and upstreams, that are named at once at most: with more, anything may have changed.
const NAMED_MAX: usize = 500;

/// What others changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Executions that changed.
    pub executions: BTreeSet<ExecutionId>,
    /// Upstreams that have work for whoever runs them.
    pub work: BTreeSet<String>,
    /// Workers came, went, or were asked to rest.
    pub workers: bool,
    /// More may have changed than is named.
    pub anything: bool,
    /// It is time to look at what is waited for, whatever was said or not.
    pub due: bool,
}

impl News {
    /// Nobody says what.
    pub fn anything() -> News {
        News { anything: true, ..News::default() }
    }

    /// Workers changed.
    pub fn of_workers() -> News {
        News { workers: true, ..News::default() }
    }

    /// True when there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == News::default()
    }

    /// Adds what came later.
    pub fn add(&mut self, later: News) {
        self.executions.extend(later.executions);
        self.work.extend(later.work);
        self.workers |= later.workers;
        self.anything |= later.anything;
        self.due |= later.due;
        if self.anything || self.executions.len() > NAMED_MAX || self.work.len() > NAMED_MAX {
            *self = News { due: self.due, ..News::anything() };
        }
    }

    /// What a row says to others after a change.
    pub fn of_head(head: &Head) -> News {
        News { executions: BTreeSet::from([head.id()]), ..News::of_work(head) }
    }

    /// What a submission says to others: nobody can know a new execution, and only its work may be theirs.
    pub fn of_submitted(outcome: &SubmitOutcome) -> News {
        match outcome {
            SubmitOutcome::New(head) => News::of_work(head),
            _ => News::default(),
        }
    }

    /// What a command says to others. `attended`: somebody waits for what runs elsewhere; else what a holder does with
    /// its own lease concerns nobody.
    pub fn of_applied(is_of_holder: bool, applied: &Applied, attended: bool) -> News {
        match applied.answer {
            Answer::Leased { .. } | Answer::Accepted if is_of_holder && !attended => News::of_work(&applied.head),
            Answer::Leased { .. } | Answer::Accepted => News::of_head(&applied.head),
            // The row is as it was.
            _ => News::default(),
        }
    }

    fn of_work(head: &Head) -> News {
        // What is bound to a process has no other taker.
        let is_for_others = head.state == State::Ready && head.ident.bound_to.is_none();
        News { work: is_for_others.then(|| head.ident.upstream.clone()).into_iter().collect(), ..News::default() }
    }
}
