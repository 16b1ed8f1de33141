//! What asking a client means for the stored questions of an execution, and what its answers mean, as pure rules on all
//! rows of that execution. What waiting and going on mean for the execution is the model's. Reads and writes nothing: a
//! driver brings the rows and stores those that are named.

use super::{Ask, Fate, InputOutcome, InputRow, LeaseRef, NewAnswer, NewQuestion, SealingKey, WantedKeys};
use crate::model::decide::{Answer, Command, Limits, decide};
use crate::model::execution::{Head, State};
use crate::model::id::OperationId;

/// A question as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    /// What everybody sees of it.
    pub(super) row: InputRow,
    /// The canonical hash of its parameters.
    pub(super) params_hash: String,
    /// The canonical hash of its answer.
    pub(super) answer_hash: Option<String>,
    /// The write that asked it last, where a driver keeps it: a write may run again after an ambiguous commit.
    pub(super) asked_by: Option<OperationId>,
    /// The write that closed it, likewise.
    pub(super) closed_by: Option<OperationId>,
}

/// What a driver has to store of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing: it is stored already.
    None,
    /// A new row.
    New,
    /// The row is there and was asked again.
    Again,
}

/// What to tell whoever wants to use a lease: `Extended` when it is held.
pub(super) fn held(head: &Head, lease: LeaseRef, now_ms: i64, limits: &Limits) -> Answer {
    // Whoever may extend the lease holds it.
    let command = Command::Heartbeat { fencing_token: lease.fencing_token, ttl_ms: 0 };
    decide(head, &command, now_ms, limits).answer
}

/// Puts the questions of `ask` among the stored ones; their places there, in the order they were asked, with what to store.
pub(super) fn ask(head: &Head, stored: &mut Vec<Stored>, ask: &Ask) -> Vec<(usize, Change)> {
    if let Some(places) = asked_before(stored, ask) {
        return places.into_iter().map(|place| (place, Change::None)).collect();
    }
    let mut round = stored.iter().map(|stored| stored.row.round).max().unwrap_or(0);
    if head.state != State::Waiting || round == 0 {
        round += 1;
    }
    ask.questions.iter().map(|question| put(head, round, stored, (ask, question))).collect()
}

/// The places of the questions when this very write stored them.
fn asked_before(stored: &[Stored], ask: &Ask) -> Option<Vec<usize>> {
    let mut own: Vec<usize> =
        (0..stored.len()).filter(|place| stored[*place].asked_by == Some(ask.operation)).collect();
    let mut places = Vec::with_capacity(own.len());
    for question in &ask.questions {
        let place = own.iter().position(|place| is_same(&stored[*place], question))?;
        places.push(own.remove(place));
    }
    Some(places).filter(|places| !places.is_empty())
}

fn is_same(stored: &Stored, question: &NewQuestion) -> bool {
    stored.row.method == question.method && stored.params_hash == question.params_hash
}

fn put(head: &Head, round: u32, stored: &mut Vec<Stored>, (ask, question): (&Ask, &NewQuestion)) -> (usize, Change) {
    // The same question of an earlier attempt that this one has not asked again yet.
    let earlier = stored.iter().position(|stored| is_same(stored, question) && stored.row.attempt < head.attempt);
    if let Some(place) = earlier {
        let Stored { row, asked_by, .. } = &mut stored[place];
        row.round = round;
        row.attempt = head.attempt;
        row.parked = ask.parked;
        row.state = ask.state.clone();
        row.name.clone_from(&question.name);
        // What an expired or withdrawn question lost, it may gain when it is asked again.
        if matches!(row.outcome, Some(InputOutcome::Expired | InputOutcome::Withdrawn)) {
            row.outcome = None;
            row.asked_at_ms = ask.now_ms;
        }
        *asked_by = Some(ask.operation);
        return (place, Change::Again);
    }
    let number = stored.iter().map(|stored| stored.row.number).max().unwrap_or(0) + 1;
    let row = InputRow {
        number,
        round,
        attempt: head.attempt,
        parked: ask.parked,
        key: fresh_key(stored, &question.name, number),
        name: question.name.clone(),
        method: question.method.clone(),
        params: question.params.clone(),
        state: ask.state.clone(),
        asked_at_ms: ask.now_ms,
        outcome: None,
        answer: None,
    };
    let params_hash = question.params_hash.clone();
    stored.push(Stored { row, params_hash, answer_hash: None, asked_by: Some(ask.operation), closed_by: None });
    (stored.len() - 1, Change::New)
}

/// What answers name, never used twice in an execution.
fn fresh_key(stored: &[Stored], name: &str, number: u32) -> String {
    let mut key = name.to_owned();
    while stored.iter().any(|stored| stored.row.key == key) {
        key = match key == name {
            true => format!("{name}-{number}"),
            // The tool itself has a question of that name.
            false => format!("{key}-{number}"),
        };
    }
    key
}

/// Closes a question, once: what becomes of the answer, and the place of the row when it has to be stored.
pub(super) fn close(
    head: &Head,
    stored: &mut [Stored],
    answer: &NewAnswer,
    operation: OperationId,
) -> (Fate, Option<usize>) {
    let Some(place) = stored.iter().position(|stored| stored.row.number == answer.number) else {
        return (Fate::Unknown, None);
    };
    let Stored { row, answer_hash, closed_by, .. } = &mut stored[place];
    if row.outcome.is_some() && *closed_by == Some(operation) {
        return (Fate::Taken, None);
    }
    if row.outcome.is_some_and(InputOutcome::is_answer) {
        let same = row.outcome == Some(answer.outcome) && *answer_hash == answer.hash;
        return (if same { Fate::Same } else { Fate::Other }, None);
    }
    let mut outcome = answer.outcome;
    if head.state.is_settled() {
        if row.outcome.is_some() || outcome.is_answer() {
            return (Fate::Unknown, None);
        }
        outcome = InputOutcome::Withdrawn;
    }
    // What was withdrawn takes an answer all the same while its execution lives: the tool may ask it again. But only an
    // answer.
    if row.outcome.is_some() && !outcome.is_answer() {
        return (Fate::Same, None);
    }
    if row.outcome == Some(InputOutcome::Expired) {
        // The tool was told, and may have gone on from there.
        return (Fate::Other, None);
    }
    row.outcome = Some(outcome);
    row.answer.clone_from(&answer.text);
    answer_hash.clone_from(&answer.hash);
    *closed_by = Some(operation);
    (Fate::Taken, Some(place))
}

/// True when the execution goes on: it waits, something was answered, and nothing of its attempt is open any more.
pub(super) fn goes_on(head: &Head, stored: &[Stored], fates: &[Fate]) -> bool {
    let open = |stored: &Stored| stored.row.attempt == head.attempt && stored.row.outcome.is_none();
    head.state == State::Waiting && fates.contains(&Fate::Taken) && !stored.iter().any(open)
}

/// The key to be made, when one is due.
pub(super) fn next_key(newest: Option<&SealingKey>, wanted: &WantedKeys) -> Option<SealingKey> {
    if newest.is_some_and(|newest| newest.created_at_ms >= wanted.due_before_ms) {
        return None;
    }
    let generation = newest.map_or(1, |newest| newest.generation + 1);
    Some(SealingKey { generation, key: wanted.fresh, created_at_ms: wanted.now_ms })
}
