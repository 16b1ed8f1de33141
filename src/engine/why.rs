//! Why an execution stands where it stands, in five plain sentences made from its row and its log: what was asked, who ran
//! it, what was lost, what was decided, what can be done. For people who answer for it and have not read the docs. Pure:
//! the same row and log give the same words; times are told relative to each other.

use schemars::JsonSchema;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::Time;
use crate::model::event::{Event, EventRecord, Order};
use crate::model::execution::{Effect, ErrorInfo, Head, ResultSource, State};
use crate::model::policy::Delivery;

#[cfg(test)]
mod tests;

/// The five sentences (some are two).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema, JsonSchema)]
pub struct Why {
    /// The execution.
    pub id: String,
    /// Where it stands.
    #[schemars(with = "State")]
    pub state: &'static str,
    /// What was asked, by whom and when.
    pub asked: String,
    /// Who ran it, and how often.
    pub ran: String,
    /// What was lost, and what came too late.
    pub lost: String,
    /// What was decided, and by whom.
    pub decided: String,
    /// What can be done now.
    pub next: String,
}

/// Attempts and losses told one by one; of more, the rest is counted.
const TOLD: usize = 4;

/// The sentences about a row and its whole log.
pub fn why(head: &Head, log: &[EventRecord]) -> Why {
    let story = Story { head, log };
    Why {
        id: head.id().to_string(),
        state: head.state.as_str(),
        asked: story.asked(),
        ran: story.ran(),
        lost: story.lost(),
        decided: story.decided(),
        next: story.next(),
    }
}

struct Story<'a> {
    head: &'a Head,
    log: &'a [EventRecord],
}

impl Story<'_> {
    fn asked(&self) -> String {
        let ident = &self.head.ident;
        let key = match &ident.key {
            Some(key) => format!("with the idempotency key “{key}”"),
            None => "without an idempotency key".to_owned(),
        };
        let at = Time(self.head.created_at_ms);
        let tool = format!("{} of {}", ident.tool, ident.upstream);
        let (ordered, later) = self.log.iter().find_map(submission).unwrap_or_default();
        let mut text = match (ident.retry_of, ordered) {
            (Some(old), Some(by)) => {
                format!("{} ordered execution {old}, a call of {tool} by {}, again at {at}", said(by), ident.principal)
            }
            (Some(old), None) => {
                format!("Execution {old}, a call of {tool} by {}, was run again at {at}", ident.principal)
            }
            (None, _) => format!("{} called {tool} at {at}", ident.principal),
        };
        text.push_str(&format!(", {key}"));
        if let Some(run_at_ms) = later {
            text.push_str(&format!(", to start {} later", span(run_at_ms - self.head.created_at_ms)));
        }
        text.push('.');
        let conflicts = self.count(|event| matches!(event, Event::Conflicted { .. }));
        if conflicts > 0 {
            text.push_str(&format!(
                " {} came under the same key with other arguments or from another caller; nothing was run for {}.",
                number(conflicts, "another call", "other calls"),
                if conflicts == 1 { "it" } else { "them" }
            ));
        }
        text
    }

    fn ran(&self) -> String {
        let mut starts: Vec<String> = Vec::new();
        let mut before_ms = self.head.created_at_ms;
        let (mut newest_try, mut is_new) = (0, false);
        for record in self.log {
            match &record.event {
                Event::Leased { worker, attempt, .. } => {
                    // A lease that goes on with an attempt after an input round is no other try.
                    is_new = newest_try != *attempt;
                    if is_new {
                        let when = if starts.is_empty() { "after the call" } else { "after that" };
                        starts.push(format!("by worker {worker} {} {when}", span(record.at_ms - before_ms)));
                        newest_try = *attempt;
                        before_ms = record.at_ms;
                    }
                }
                Event::Released { .. } if is_new => {
                    starts.pop();
                    newest_try = newest_try.saturating_sub(1);
                }
                _ => {}
            }
        }
        let released = self.count(|event| matches!(event, Event::Released { .. }));
        let back = match released {
            0 => String::new(),
            released => format!(" It was given back unstarted {}.", times(released)),
        };
        let now = match self.head.state {
            State::Leased => " It runs now.",
            State::Waiting if self.head.lease.is_some() => " It waits for input now, and its worker stays with it.",
            State::Waiting => " It waits for input now, and no worker is bound to it.",
            _ => "",
        };
        if starts.is_empty() {
            return format!("Nobody has started it.{back}");
        }
        let hidden = starts.len().saturating_sub(TOLD);
        let told: Vec<String> = match hidden {
            0 => starts.clone(),
            _ => {
                let mut told = starts[..TOLD - 1].to_vec();
                told.push(format!("{} more", hidden));
                told.push(format!("last {}", starts[starts.len() - 1]));
                told
            }
        };
        format!("It was started {}: {}.{now}{back}", times(starts.len()), listed(&told))
    }

    fn lost(&self) -> String {
        let mut told = Vec::new();
        let mut leased_at_ms = self.head.created_at_ms;
        for record in self.log {
            match &record.event {
                Event::Leased { .. } => leased_at_ms = record.at_ms,
                Event::Lost { attempt, error } => {
                    told.push(loss(*attempt, record.at_ms - leased_at_ms, error));
                }
                Event::Retried { attempt, error, by: None, ran, .. } => {
                    let after_ms = record.at_ms - leased_at_ms;
                    told.push(match (record.event.is_loss(), ran) {
                        (true, _) => loss(*attempt, after_ms, error),
                        (false, true) => format!(
                            "Attempt {attempt} brought an error {} after its start: {} ({}).",
                            span(after_ms),
                            plain(&error.message),
                            error.code
                        ),
                        (false, false) => {
                            format!(
                                "Attempt {attempt} never reached the tool: {} ({}).",
                                plain(&error.message),
                                error.code
                            )
                        }
                    });
                }
                Event::Failed { attempt, error, by: None, ran: true } if is_loss(error) => {
                    told.push(loss(*attempt, record.at_ms - leased_at_ms, error));
                }
                _ => {}
            }
        }
        let mut text = match told.len() {
            0 => "No attempt was lost.".to_owned(),
            many if many > TOLD => {
                format!("{} Then {} more were lost or repeated. {}", told[0], many - 2, told[many - 1])
            }
            _ => told.join(" "),
        };
        let stale = self.count(|event| matches!(event, Event::Rejected { reason, .. } if reason == "stale_token"));
        let late = self.count(|event| matches!(event, Event::Rejected { reason, .. } if reason != "stale_token"));
        if stale > 0 {
            let word = number(stale, "report", "reports");
            text.push_str(&format!(" {word} of an earlier attempt came too late and changed nothing."));
        }
        if late > 0 {
            let word = number(late, "report", "reports");
            text.push_str(&format!(" {word} came after the end and changed nothing."));
        }
        text
    }

    fn decided(&self) -> String {
        let head = self.head;
        match head.state {
            State::Completed => self.completion(),
            State::Failed => self.failure(),
            State::Cancelled => self.cancellation(),
            State::Unknown => {
                let source = source_of_delivery(head);
                format!(
                    "This tool runs at most once ({source}), so the call was not run again by itself: whether it took effect \
                     is unknown.{}",
                    self.order().map_or(String::new(), |by| format!(" {} had ordered that last attempt.", said(by)))
                )
            }
            State::Scheduled => match self.newest_retry() {
                Some((record, run_at_ms, by)) => {
                    let who = by.map_or("The tool's policy permits".to_owned(), |by| format!("{} ordered", said(by)));
                    format!(
                        "{who} another attempt ({} of {}), due {} after the last one ended.",
                        head.attempt + 1,
                        head.attempts_allowed,
                        span(run_at_ms - record.at_ms)
                    )
                }
                None => format!("It is to start {} after the call.", span(head.run_at_ms - head.created_at_ms)),
            },
            State::Ready => "Nothing is decided yet: it waits for a free worker.".to_owned(),
            State::Leased => "Nothing is decided yet: a worker works on it.".to_owned(),
            State::Waiting => "Nothing is decided yet: the tool asked the client for input.".to_owned(),
        }
    }

    fn completion(&self) -> String {
        let head = self.head;
        let ended = self.log.iter().rev().find_map(|record| match &record.event {
            Event::Completed { by, .. } => Some((record.at_ms, by.as_ref())),
            _ => None,
        });
        let (at_ms, by) = ended.unwrap_or((head.updated_at_ms, None));
        let after = span(at_ms - head.created_at_ms);
        let kind = if head.is_error { "an answer that reports an error" } else { "an answer" };
        match head.source {
            Some(ResultSource::LateResult) => format!(
                "The tool gave {kind}; it came after its lease was gone, but from the newest attempt, and was recorded \
                 {after} after the call."
            ),
            Some(ResultSource::Reconcile) => format!(
                "The server of the tool was asked what became of the call and said that it took effect; that was recorded \
                 as the answer {after} after the call."
            ),
            Some(ResultSource::Resolve) => {
                let who = by.map_or("A person".to_owned(), said);
                format!("{who} decided that it is completed, {after} after the call.")
            }
            Some(ResultSource::Result) | None => format!("The tool gave {kind}, recorded {after} after the call."),
        }
    }

    fn failure(&self) -> String {
        let head = self.head;
        let ended = self.log.iter().rev().find_map(|record| match &record.event {
            Event::Failed { by, error, .. } => Some((record.at_ms, by.as_ref(), error)),
            _ => None,
        });
        let Some((at_ms, by, error)) = ended else { return "It failed.".to_owned() };
        let after = span(at_ms - head.created_at_ms);
        if let Some(by) = by {
            return format!("{} decided that it failed, {after} after the call.", said(by));
        }
        match error.code.as_str() {
            "queue_timeout" => {
                format!("It waited too long in the queue and failed {after} after the call, never started.")
            }
            "total_timeout" => format!("The whole time for the call ran out, and it failed {after} after the call."),
            _ if is_loss(error) => format!(
                "{} used, so it failed {after} after the call.",
                match head.attempts_allowed {
                    1 => "The one permitted attempt was".to_owned(),
                    allowed => format!("{} of {allowed} permitted attempts were", head.attempt),
                }
            ),
            code => {
                format!("It failed {after} after the call and is not run again: {} ({code}).", plain(&error.message))
            }
        }
    }

    fn cancellation(&self) -> String {
        let ended = self.log.iter().rev().find_map(|record| match &record.event {
            Event::Cancelled { by, effect } => Some((record.at_ms, by, *effect)),
            _ => None,
        });
        let Some((at_ms, by, effect)) = ended else { return "It was cancelled.".to_owned() };
        let effect = match effect {
            Effect::None => "it had not reached the tool, so it had no effect",
            Effect::Unknown => "it had been started, so it may have had its effect",
        };
        format!("{} cancelled it {} after the call; {effect}.", said(by), span(at_ms - self.head.created_at_ms))
    }

    fn next(&self) -> String {
        let (head, id) = (self.head, self.head.id());
        let check =
            format!("Look at the tool whether it took effect (it got the effect key {})", head.ident.effect_key);
        match head.state {
            State::Completed if head.is_error => format!(
                "`durable-mcp executions result {id}` shows the error; a new call with another key runs the tool again."
            ),
            State::Completed => {
                format!("Nothing has to be done; `durable-mcp executions result {id}` shows the answer.")
            }
            State::Failed | State::Cancelled => {
                let again = format!(
                    "`durable-mcp executions retry {id} --reason …` runs it again as a new execution with the same keys"
                );
                match head.effect_possible || head.effect == Some(Effect::Unknown) {
                    true => format!("{check}; if it did not, {again}."),
                    false => format!("It took no effect; {again}."),
                }
            }
            State::Unknown => format!(
                "{check}; then say so with `durable-mcp executions resolve {id} --completed --reason …` or `--failed`, or \
                 let it run once more with `durable-mcp executions retry {id} --reason …`."
            ),
            State::Leased | State::Waiting => {
                let lost = match head.ident.policy.delivery {
                    Delivery::AtLeastOnce => "it is run again by itself if its worker is lost",
                    Delivery::AtMostOnce => "if its worker is lost it becomes unknown and is not run again by itself",
                };
                format!(
                    "Wait (`durable-mcp executions wait {id}`) or stop it (`durable-mcp executions cancel {id}`); {lost}."
                )
            }
            State::Ready | State::Scheduled => {
                format!("Wait (`durable-mcp executions wait {id}`) or stop it (`durable-mcp executions cancel {id}`).")
            }
        }
    }

    fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.log.iter().filter(|record| is(&record.event)).count()
    }

    /// The person who ordered the newest attempt.
    fn order(&self) -> Option<&Order> {
        self.newest_retry().and_then(|(_, _, by)| by)
    }

    fn newest_retry(&self) -> Option<(&EventRecord, i64, Option<&Order>)> {
        self.log.iter().rev().find_map(|record| match &record.event {
            Event::Retried { run_at_ms, by, .. } => Some((record, *run_at_ms, by.as_ref())),
            _ => None,
        })
    }
}

/// Who ordered a submission, and when it may start.
fn submission(record: &EventRecord) -> Option<(Option<&Order>, Option<i64>)> {
    match &record.event {
        Event::Submitted { run_at_ms, by } => Some((by.as_ref(), *run_at_ms)),
        _ => None,
    }
}

fn loss(attempt: u32, after_ms: i64, error: &ErrorInfo) -> String {
    format!(
        "Attempt {attempt} was lost {} after its start: {} ({}).",
        span(after_ms),
        plain(&error.message),
        error.code
    )
}

fn is_loss(error: &ErrorInfo) -> bool {
    crate::model::event::LOSS_CODES.contains(&error.code.as_str())
}

/// A person with the reason.
fn said(by: &Order) -> String {
    match by.reason.trim() {
        "" => by.principal.clone(),
        reason => format!("{} (“{}”)", by.principal, plain(reason)),
    }
}

/// A sentence in another one: without its full stop.
fn plain(text: &str) -> &str {
    text.trim().trim_end_matches('.')
}

fn source_of_delivery(head: &Head) -> &'static str {
    match head.ident.policy.delivery_source.as_str() {
        "config" => "the operator's configuration says so",
        "default" => "nothing says that a repeat is safe",
        _ => "its description says so",
    }
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

fn number(count: usize, one: &str, many: &str) -> String {
    match count {
        // The first letter of a sentence.
        1 if one.starts_with("another") => format!("A{}", &one[1..]),
        1 => format!("A {one}"),
        count => format!("{count} {many}"),
    }
}

/// `a, b and c`.
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// A length of time for people.
pub fn span(ms: i64) -> String {
    let ms = ms.max(0);
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 if ms % 1_000 / 100 == 0 => format!("{seconds} s"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{minutes} min {} s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}
