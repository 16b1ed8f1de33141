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
use crate::model::json::quoted;
use crate::worker::demo::{FLAKY_LEDGER, LEDGER};

/// What was found.
pub struct Judgement {
    /// The counts.
    pub counts: Counts,
    /// `at_least_once` calls that the ledger shows more than once.
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

/// How often each line stands in the two ledgers of the demo tools, by tool and key.
fn runs(site: &Site) -> HashMap<(bool, String), usize> {
    let mut runs = HashMap::new();
    for line in site.ledger_lines(LEDGER) {
        // `TEXT key=… token=…`
        let text = line.split(" key=").next().unwrap_or_default().to_owned();
        *runs.entry((true, text)).or_default() += 1;
    }
    for line in site.ledger_lines(FLAKY_LEDGER) {
        *runs.entry((false, line)).or_default() += 1;
    }
    runs
}

/// Compares the three. What does not fit is told to the story.
pub async fn judge(site: &Site, log: &Log, answered: &[Answered], story: &Story) -> Result<Judgement, Failure> {
    let runs = runs(site);
    let executions = log.executions(&[]).await?;
    let by_key: HashMap<&str, &Head> =
        executions.iter().filter_map(|head| Some((head.ident.key.as_deref()?, head))).collect();
    let mut counts = Counts { calls: answered.len(), ..Counts::default() };
    let (mut run_again, mut unknown) = (0, Vec::new());
    story.must(executions.len() == answered.len(), || {
        format!("{} calls were made and {} executions are stored", answered.len(), executions.len())
    });
    for call in answered {
        let once = call.tool == ONCE;
        let line = if once { call.key.clone() } else { quoted(&call.key) };
        let ran = runs.get(&(once, line)).copied().unwrap_or_default();
        let Some(head) = by_key.get(call.key.as_str()) else {
            counts.lost += 1;
            continue;
        };
        if once && ran > 1 {
            counts.duplicate += 1;
        }
        let allowed = head.attempt as usize;
        story.must(ran <= allowed, || format!("{} ran {ran} times in {allowed} attempts", call.key));
        let told = call.state.as_deref();
        match head.state {
            State::Completed if ran == 0 => counts.lost += 1,
            State::Completed => {
                counts.completed += 1;
                counts.recovered += usize::from(head.attempt > 1);
                run_again += usize::from(ran > 1);
                // A result may come after its caller was told that the outcome is unknown.
                story.must(matches!(told, Some("completed" | "unknown")), || {
                    format!("{} is completed and its caller was told {told:?}", call.key)
                });
            }
            State::Unknown => {
                counts.unknown += 1;
                story.must(once, || format!("{} may be repeated and is unknown", call.key));
                story.must(told == Some("unknown"), || {
                    format!("{} is unknown and its caller was told {told:?}", call.key)
                });
                unknown.push(Unknown { head: (*head).clone(), took_effect: ran > 0 });
            }
            State::Failed | State::Cancelled => counts.failed += 1,
            _ => counts.lost += 1,
        }
    }
    Ok(Judgement { counts, run_again, unknown })
}
