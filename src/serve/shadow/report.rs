//! What a shadow saw and what DurableMCP would have done, as JSON and in words. Holds names of tools and numbers, no
//! arguments, no results, no keys.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this shape.
    pub version: u32,
    /// True: the conversation goes on, and a final report follows.
    pub interim: bool,
    /// The name under which `wrap` would know the server.
    pub server: String,
    /// When the conversation began (RFC 3339).
    pub started_at: String,
    /// How long it took so far, in milliseconds.
    pub duration_ms: i64,
    /// Why it ended.
    pub end: End,
    /// What the client calls itself.
    pub client: Option<String>,
    /// The protocol revision that was agreed on or used.
    pub revision: Option<String>,
    /// Everything together.
    pub total: Tally,
    /// By tool.
    pub tools: BTreeMap<String, ToolReport>,
    /// What is wrong besides calls.
    pub wire: Wire,
    /// Single observations, oldest first, up to a limit.
    pub findings: Vec<Finding>,
    /// What the limits of the watching kept out of this report.
    pub missed: Missed,
}

/// Why a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It has not.
    None,
    /// The client closed the server's input.
    ClientLeft,
    /// A signal.
    Signal,
    /// The server ended by itself.
    ServerEnded,
}

/// One tool.
#[derive(Clone, Debug, Serialize)]
pub struct ToolReport {
    /// Its effective delivery, and where that comes from.
    pub delivery: &'static str,
    pub delivery_source: &'static str,
    #[serde(flatten)]
    pub tally: Tally,
}

/// What became of calls, and what would have become of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Calls that the client sent.
    pub calls: u64,
    /// … that the server answered.
    pub answered: u64,
    /// … with `isError: true`.
    pub tool_errors: u64,
    /// … with a JSON-RPC error.
    pub rpc_errors: u64,
    /// Calls without an answer at the end.
    pub unanswered: u64,
    /// The longest time to an answer, in milliseconds.
    pub longest_ms: i64,
    /// Would not have run: the same key, the same call.
    pub deduplicated_by_key: u64,
    /// Would not have run: the same call without a key, whose first caller had no answer and did not wait any more.
    pub deduplicated_unkeyed: u64,
    /// Would have been refused: the same key, another call.
    pub conflicts: u64,
    /// Equal calls without a key while the first was still waited for: they stay two.
    pub kept_apart: u64,
    /// Would have got a handle at the end of the wait budget.
    pub handles: u64,
    /// Would have got their id at once (`wait = 0`).
    pub accepted: u64,
    /// Answers that came after the client had given up; they would have been kept for the next ask.
    pub late_results: u64,
    /// Would have been cancelled at the client's word.
    pub cancelled: u64,
    /// Lost, or refused in a way that is retried: would have run again.
    pub retried: u64,
    /// Lost: would have been reported as `unknown` and not run again.
    pub unknown: u64,
    /// Lost with no attempt left: would have failed.
    pub failed: u64,
    /// Left unanswered by a client that left: would have been let to its end.
    pub finished_later: u64,
    /// Would have been refused for its form: a bad key, too large.
    pub refused: u64,
}

/// What is wrong with the conversation itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Wire {
    /// Lines on the server's stdout that are no JSON-RPC; DurableMCP keeps them from the client.
    pub stdout_pollution: u64,
    /// Messages of the client that DurableMCP would have refused (strict JSON, size, revision).
    pub refused_messages: u64,
    /// Answers larger than `limits.result_bytes`.
    pub oversized_results: u64,
}

/// What the limits kept out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// Calls that were forgotten to stay below `wrap.shadow_calls`; a repeat of one was taken for new.
    pub forgotten_calls: u64,
    /// Bytes that passed while the watcher was behind.
    pub unwatched_bytes: u64,
    /// Findings beyond the limit.
    pub findings: u64,
}

/// One observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The member of [`Tally`] it counts in.
    pub kind: &'static str,
    /// The tool.
    pub tool: String,
    /// When, in milliseconds since the conversation began.
    pub at_ms: i64,
    /// Since the call it repeats, or since the call began.
    pub after_ms: i64,
}

impl Tally {
    /// Counts that say something about DurableMCP, with their names in JSON and in words.
    fn lines(&self) -> Vec<(u64, &'static str)> {
        let all = [
            (self.deduplicated_by_key, "repeats that would not have run twice (same key)"),
            (self.deduplicated_unkeyed, "re-issued calls that would not have run twice (no key, first caller gone)"),
            (self.conflicts, "keys used again for another call: refused as conflict"),
            (
                self.kept_apart,
                "equal calls while the first was still waited for: kept apart (unkeyed = \"coalesce\" joins them)",
            ),
            (self.handles, "calls beyond the wait budget: answered with a handle, the work going on"),
            (self.accepted, "calls with wait = 0: answered with their id at once"),
            (self.late_results, "results that came after the client had given up: kept for the next ask"),
            (self.cancelled, "calls cancelled at the client's word"),
            (self.retried, "lost calls that would have run again"),
            (self.unknown, "lost calls that would have been reported as unknown, and not run again"),
            (self.failed, "lost calls with no attempt left: failed"),
            (self.finished_later, "calls cut off by the client's leaving that would have been let to their end"),
            (self.refused, "calls refused for their form"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0).collect()
    }

    /// In how many ways DurableMCP would have mattered.
    pub fn is_quiet(&self) -> bool {
        self.lines().is_empty()
    }
}

impl Report {
    /// One JSON object, with a line break at its end.
    pub fn json(&self) -> String {
        // Plain numbers and strings always serialise.
        let mut text = serde_json::to_string_pretty(self).expect("a report is always JSON");
        text.push('\n');
        text
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let total = &self.total;
        let client = self.client.as_deref().map_or_else(|| "a client".to_owned(), printable);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "durable-mcp shadow: {} calls of {client} in {:.1} s, {} answered, {} without an answer; {}",
            total.calls,
            self.duration_ms as f64 / 1_000.0,
            total.answered,
            total.unanswered,
            match self.end {
                End::None => "it goes on",
                End::ClientLeft => "the client left",
                End::Signal => "ended by a signal",
                End::ServerEnded => "the server ended by itself",
            }
        );
        match total.is_quiet() {
            true => out.push_str("DurableMCP would have changed nothing about them.\n"),
            false => out.push_str("DurableMCP would have seen to\n"),
        }
        for (count, words) in total.lines() {
            let _ = writeln!(out, "{count:>6}  {words}");
        }
        for (count, words) in [
            (self.wire.stdout_pollution, "lines on the server's stdout that are no JSON-RPC (kept from the client)"),
            (self.wire.refused_messages, "messages of the client that break the protocol (refused)"),
            (self.wire.oversized_results, "results over limits.result_bytes"),
            (self.missed.unwatched_bytes, "bytes passed unwatched: the counts are too low"),
            (self.missed.forgotten_calls, "calls forgotten to stay below wrap.shadow_calls"),
        ] {
            if count > 0 {
                let _ = writeln!(out, "{count:>6}  {words}");
            }
        }
        for (name, tool) in &self.tools {
            let _ = writeln!(
                out,
                "  {}: {} calls, {} ({}), longest {} ms",
                printable(name),
                tool.tally.calls,
                tool.delivery,
                tool.delivery_source,
                tool.tally.longest_ms
            );
        }
        out
    }
}

/// What a tool or a client named can hold control sequences; a terminal must not obey them.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
