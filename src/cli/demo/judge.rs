//! Three witnesses against each other: what the callers were told, what the tools wrote into their own ledgers, and what
//! the store says. Finds what is lost, doubled or unknown; hides nothing.

use std::collections::HashMap;

use serde_json::json;

use super::super::failure::Failure;
use super::super::stage::program::Site;
use super::load::{Answered, ONCE};
use super::log::Log;
use super::story::{Counts, Story};
use crate::model::execution::{Head, State};
use crate::worker::demo::{FLAKY_LEDGER, LEDGER};

/// What was found.
pub struct Judgement {
    /// The counts.
    pub counts: Counts,
    /// Calls that the ledgers show.
    pub written: usize,
    /// `at_least_once` calls that the ledgers show more than once.
    pub run_again: usize,
    /// The calls whose outcome is unknown.
    pub unknown: Vec<Unknown>,
}

/// A call that was started once and not answered.
pub struct Unknown {
    /// The execution.
    pub head: Head,
    /// The tool's ledger shows its effect.
    pub took_effect: bool,
}

impl Judgement {
    /// How many unknown calls took effect.
    pub fn unknown_with_effect(&self) -> usize {
        self.unknown.iter().filter(|unknown| unknown.took_effect).count()
    }

    /// The unknown calls as JSON.
    pub fn unknown_facts(&self) -> serde_json::Value {
        let fact = |unknown: &Unknown| json!({ "id": unknown.head.id().to_string(), "key": unknown.head.ident.key, "took_effect": unknown.took_effect });
        self.unknown.iter().map(fact).collect()
    }
}

/// How often each call really ran, by what its tool wrote; under (is it [`ONCE`], key).
pub type Runs = HashMap<(bool, String), usize>;

/// Counts the lines of the two ledgers of the demo tools.
pub fn runs(site: &Site) -> Runs {
    let mut runs = Runs::new();
    for line in site.ledger_lines(LEDGER) {
        // `TEXT key=… token=…`
        let text = line.split(" key=").next().unwrap_or_default().to_owned();
        *runs.entry((true, text)).or_default() += 1;
    }
    for line in site.ledger_lines(FLAKY_LEDGER) {
        let name = serde_json::from_str(&line).unwrap_or(line);
        *runs.entry((false, name)).or_default() += 1;
    }
    runs
}

/// Asks the three and compares them. What does not fit is told to the story.
pub async fn judge(site: &Site, log: &Log, answered: &[Answered], story: &Story) -> Result<Judgement, Failure> {
    Ok(compare(&runs(site), &log.executions(&[]).await?, answered, story))
}

/// Compares the three.
pub fn compare(runs: &Runs, executions: &[Head], answered: &[Answered], story: &Story) -> Judgement {
    let by_key: HashMap<&str, &Head> =
        executions.iter().filter_map(|head| Some((head.ident.key.as_deref()?, head))).collect();
    let mut judged = Judgement {
        counts: Counts { calls: answered.len(), ..Counts::default() },
        written: runs.len(),
        run_again: 0,
        unknown: Vec::new(),
    };
    story.must(executions.len() == answered.len(), || {
        format!("{} calls were made and {} executions are stored", answered.len(), executions.len())
    });
    for call in answered {
        let ran = runs.get(&(call.tool == ONCE, call.key.clone())).copied().unwrap_or_default();
        match by_key.get(call.key.as_str()) {
            Some(head) => one(call, head, ran, (&mut judged, story)),
            None => judged.counts.lost += 1,
        }
    }
    judged
}

fn one(call: &Answered, head: &Head, ran: usize, (judged, story): (&mut Judgement, &Story)) {
    let counts = &mut judged.counts;
    let (key, told, once) = (&call.key, call.state.as_deref(), call.tool == ONCE);
    if once && ran > 1 {
        counts.duplicate += 1;
    }
    let attempts = head.attempt as usize;
    story.must(ran <= attempts, || format!("{key} ran {ran} times in {attempts} attempts"));
    match head.state {
        // Its effect is not there.
        State::Completed if ran == 0 => counts.lost += 1,
        State::Completed => {
            counts.completed += 1;
            counts.recovered += usize::from(head.attempt > 1);
            judged.run_again += usize::from(ran > 1);
            // A result may come after its caller was told that the outcome is unknown.
            story.must(matches!(told, Some("completed" | "unknown")), || {
                format!("{key} is completed and its caller was told {told:?}")
            });
        }
        State::Unknown => {
            counts.unknown += 1;
            story.must(once, || format!("{key} may be repeated and is unknown"));
            story.must(told == Some("unknown"), || format!("{key} is unknown and its caller was told {told:?}"));
            judged.unknown.push(Unknown { head: head.clone(), took_effect: ran > 0 });
        }
        State::Failed | State::Cancelled => counts.failed += 1,
        _ => counts.lost += 1,
    }
}
