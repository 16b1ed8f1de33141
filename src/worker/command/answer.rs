//! What a run of a command means: a tool result, or what is known of an attempt without one. Pure.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::process::{End, Output};
use super::{CommandTool, guard};
use crate::model::json::{one_line, quoted, with_member};
use crate::worker::executor::Outcome;

/// Signals end a process with 128 + n, as shells and the guard have it.
const BY_SIGNAL: std::ops::RangeInclusive<i32> = 129..=159;

/// How the guard's stderr begins when it could not start the command.
const REFUSAL: &str = "durable-mcp: cannot start ";

/// The members of a tool result that are looked at.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(default)]
    content: Option<Vec<Block>>,
    #[serde(borrow, default, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
    #[serde(default, rename = "isError")]
    is_error: bool,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    _type: String,
}

/// What a run means.
pub(super) fn outcome(tool: &CommandTool, output: &Output) -> Outcome {
    let status = match &output.end {
        End::Exited(status) => *status,
        End::CutOff => return Outcome::lost("command_stopped", "the command was stopped before it ended"),
        End::TooMuch => {
            let text = format!(
                "The command wrote more than {} bytes to its stdout and was stopped; it may have had its effect. \
                 Ask it for less.",
                tool.limits.stdout_bytes
            );
            return Outcome::Result(failure(&text).into());
        }
    };
    if let Some(signal) = signal(status) {
        return Outcome::lost("command_killed", format!("the command was killed by signal {signal}"));
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    match status.code() {
        Some(0) => Outcome::Result(success(tool, &stdout).into()),
        Some(guard::EXIT_NOT_FOUND | guard::EXIT_NOT_EXECUTABLE) if guard_refused(tool, output) => {
            Outcome::not_started("command_not_startable", "the command could not be started")
        }
        code => Outcome::Result(failed(code, &stdout, output).into()),
    }
}

fn signal(status: ExitStatus) -> Option<i32> {
    status.signal().or_else(|| status.code().filter(|code| BY_SIGNAL.contains(code)).map(|code| code - 128))
}

/// A file that looks executable may still be none (its interpreter is missing, its format foreign). The guard says so
/// with two exit codes that are free to the command, and in words that are not.
fn guard_refused(tool: &CommandTool, output: &Output) -> bool {
    !tool.guard.is_empty() && output.stderr.starts_with(REFUSAL.as_bytes())
}

fn success(tool: &CommandTool, stdout: &str) -> String {
    let json = stdout.trim();
    match whole(json) {
        Some(result) => {
            let structured = result.structured.map(RawValue::get);
            if tool.has_output_schema && structured.is_none() && !result.is_error {
                return unstructured(stdout);
            }
            let json = one_line(json);
            match (result.content, structured) {
                (None, Some(structured)) => {
                    let text = quoted(&one_line(structured));
                    with_member(&json, "content", &format!(r#"[{{"type":"text","text":{text}}}]"#)).into_owned()
                }
                _ => json.into_owned(),
            }
        }
        None if !tool.has_output_schema => format!(r#"{{"content":[{}]}}"#, block(stdout)),
        None if is_object(json) => {
            format!(r#"{{"content":[{}],"structuredContent":{}}}"#, block(stdout), one_line(json))
        }
        None => unstructured(stdout),
    }
}

/// An official client takes a result without structured content for a broken one when the tool has an output schema.
fn unstructured(stdout: &str) -> String {
    failure(&format!(
        "The command ended with exit code 0, but printed no JSON object, which its output schema asks for. \
         It may have had its effect. It printed:\n{stdout}"
    ))
}

fn failed(code: Option<i32>, stdout: &str, output: &Output) -> String {
    let json = stdout.trim();
    if whole(json).is_some_and(|result| result.is_error && result.content.is_some()) {
        return one_line(json).into_owned();
    }
    let code = code.map_or_else(|| "unknown".to_owned(), |code| code.to_string());
    let mut text = format!("The command failed with exit code {code}.");
    for (name, written) in [("stderr", output.stderr_text()), ("stdout", stdout.trim_end().to_owned())] {
        if !written.is_empty() {
            text.push_str(&format!("\n{name}:\n{written}"));
        }
    }
    failure(&text)
}

fn failure(text: &str) -> String {
    format!(r#"{{"content":[{}],"isError":true}}"#, block(text))
}

fn block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

fn whole(json: &str) -> Option<Whole<'_>> {
    let whole: Whole<'_> = json.starts_with('{').then(|| serde_json::from_str(json).ok()).flatten()?;
    (whole.content.is_some() || whole.structured.is_some()).then_some(whole)
}

fn is_object(json: &str) -> bool {
    json.starts_with('{') && serde_json::from_str::<&RawValue>(json).is_ok()
}
