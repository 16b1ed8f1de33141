//! What a demo tells: lines with the time since its start, as they happen, and at the end the counts and a verdict. Knows
//! no scene: what is told was read elsewhere.

use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;

use super::super::failure::{Exit, Failure};
use super::super::output::Output;
use crate::engine::clock::Clock;

/// What became of the calls of a demo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Calls that were made, repeats not counted.
    pub calls: usize,
    /// With a result.
    pub completed: usize,
    /// Completed after an attempt had been lost.
    pub recovered: usize,
    /// Without a result, and none to come.
    pub failed: usize,
    /// Accepted and gone: must be 0.
    pub lost: usize,
    /// Run more often than their delivery permits: must be 0.
    pub duplicate: usize,
    /// Started once, outcome never learnt, said so.
    pub unknown: usize,
}

/// A line of the story.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Line {
    /// Since the beginning.
    at_ms: i64,
    /// What happened.
    text: String,
}

/// See the module.
pub struct Story {
    demo: &'static str,
    out: Output,
    json: bool,
    clock: Clock,
    start_ms: i64,
    lines: Mutex<Vec<Line>>,
    wrong: Mutex<Vec<String>>,
}

/// What a demo prints at its end with `--json`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Demo")]
pub struct Report<'a> {
    /// Which scene.
    demo: &'a str,
    /// Everything was as it must be.
    ok: bool,
    /// The same in words.
    verdict: &'a str,
    /// What became of the calls.
    counts: Counts,
    /// How long it took.
    duration_ms: i64,
    /// Figures that only this scene has.
    facts: serde_json::Value,
    /// What was not as it must be.
    wrong: &'a [String],
    /// What was told.
    lines: &'a [Line],
}

impl Story {
    /// Begins now.
    pub fn begin(demo: &'static str, out: Output, json: bool) -> Story {
        let clock = Clock::System;
        let start_ms = clock.now_ms();
        Story { demo, out, json, clock, start_ms, lines: Mutex::default(), wrong: Mutex::default() }
    }

    /// Milliseconds since the epoch, as the events of the store have them.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Tells what happens now.
    pub fn say(&self, text: impl Into<String>) -> Result<(), Failure> {
        self.say_at(self.now_ms(), text)
    }

    /// Tells what happened at this time.
    pub fn say_at(&self, at_ms: i64, text: impl Into<String>) -> Result<(), Failure> {
        let (at_ms, text) = (at_ms - self.start_ms, text.into());
        self.print(&format!("{:>6.2} s  {text}", at_ms as f64 / 1_000.0))?;
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(Line { at_ms, text });
        Ok(())
    }

    /// Prints a line without a time.
    pub fn print(&self, text: &str) -> Result<(), Failure> {
        match self.json {
            true => eprintln!("{text}"),
            false => self.out.line(text)?,
        }
        Ok(())
    }

    /// Notes something that is not as it must be, unless it `holds`.
    pub fn must(&self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(otherwise());
        }
    }

    /// Tells the counts and the verdict; the exit code says whether everything is as it must be.
    pub fn end(self, counts: Counts, verdict: &str, facts: serde_json::Value) -> Result<Exit, Failure> {
        self.must(counts.lost == 0, || format!("{} calls are lost", counts.lost));
        self.must(counts.duplicate == 0, || format!("{} calls ran more often than they may", counts.duplicate));
        let ended = counts.completed + counts.failed + counts.unknown;
        self.must(ended + counts.lost == counts.calls, || format!("{ended} of {} calls have ended", counts.calls));
        let wrong = std::mem::take(&mut *self.wrong.lock().unwrap_or_else(PoisonError::into_inner));
        let lines = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        let duration_ms = self.now_ms() - self.start_ms;
        let Counts { calls, completed, recovered, failed, lost, duplicate, unknown } = counts;
        self.print("")?;
        self.print(&format!(
            "  calls {calls:>9}     completed {completed:>5}     recovered {recovered:>5}     failed {failed:>3}"
        ))?;
        self.print(&format!("  lost {lost:>10}     duplicate {duplicate:>5}     unknown {unknown:>7}"))?;
        self.print("")?;
        let verdict = match wrong.as_slice() {
            [] => format!("As it must be: {verdict}"),
            wrong => format!("NOT as it must be: {}", wrong.join("; ")),
        };
        self.print(&format!("{verdict} ({:.1} s)", duration_ms as f64 / 1_000.0))?;
        let ok = wrong.is_empty();
        if self.json {
            let report = Report {
                demo: self.demo,
                ok,
                verdict: &verdict,
                counts,
                duration_ms,
                facts,
                wrong: &wrong,
                lines: &lines,
            };
            let text = serde_json::to_string(&report)
                .map_err(|error| Failure::new(Exit::Failure, format!("the report has no JSON: {error}")))?;
            self.out.line(&text)?;
        }
        Ok(if ok { Exit::Ok } else { Exit::Failure })
    }
}
