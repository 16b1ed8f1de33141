//! The transition table as data: which event may lead from which state to which. `docs/states.md` shows it, a test
//! compares the two, and the property tests hold `decide` against it. Decides nothing itself.

use super::execution::State::{self, *};

/// `(from, event, to)`; the first event of every execution starts at no state.
pub const TRANSITIONS: &[(Option<State>, &str, State)] = &[
    (None, "submitted", Ready),
    (None, "submitted", Scheduled),
    (Some(Scheduled), "promoted", Ready),
    (Some(Scheduled), "leased", Leased),
    (Some(Scheduled), "completed", Completed),
    (Some(Scheduled), "failed", Failed),
    (Some(Scheduled), "cancelled", Cancelled),
    (Some(Ready), "leased", Leased),
    (Some(Ready), "completed", Completed),
    (Some(Ready), "failed", Failed),
    (Some(Ready), "cancelled", Cancelled),
    (Some(Leased), "completed", Completed),
    (Some(Leased), "failed", Failed),
    (Some(Leased), "retried", Scheduled),
    (Some(Leased), "released", Ready),
    (Some(Leased), "held", Waiting),
    (Some(Leased), "parked", Waiting),
    (Some(Leased), "lost", Unknown),
    (Some(Leased), "cancelled", Cancelled),
    (Some(Waiting), "resumed", Leased),
    (Some(Waiting), "resumed", Ready),
    (Some(Waiting), "completed", Completed),
    (Some(Waiting), "retried", Scheduled),
    (Some(Waiting), "lost", Unknown),
    (Some(Waiting), "failed", Failed),
    (Some(Waiting), "cancelled", Cancelled),
    (Some(Unknown), "completed", Completed),
    (Some(Unknown), "failed", Failed),
    (Some(Unknown), "retried", Scheduled),
];

/// Events that change no state, permitted anywhere.
pub const NOTES: &[&str] = &["rejected", "conflicted"];

/// True when the table permits `event` to lead from `from` to `to`.
pub fn permits(from: Option<State>, event: &str, to: State) -> bool {
    if NOTES.contains(&event) {
        return from == Some(to);
    }
    TRANSITIONS.contains(&(from, event, to))
}
