//! The demo tools: a stand-in for tools that answer, take long, fail, write and crash. They keep a ledger of what they
//! really did in the data folder, for people to compare. Not for production, and listed only where asked for.

mod ask;

#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::executor::{Executor, Job, Outcome, Report};
use crate::engine::waiters::Progress;
use crate::model::json::quoted;

/// The upstream's name of the demo tools.
pub const UPSTREAM: &str = "demo";
/// The tool that asks its client.
pub const ASK: &str = "demo_ask";
/// What `demo_append` writes, in the data folder.
pub const LEDGER: &str = "demo-ledger.txt";
/// What `demo_flaky` writes, in the data folder.
pub const FLAKY_LEDGER: &str = "demo-flaky.txt";

/// The longest `demo_sleep`, in seconds.
const SLEEP_MAX_S: f64 = 86_400.0;
/// Reports of a sleep at most so far apart.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// The tool objects, in the order they are listed.
const DEFINITIONS: [&str; 6] = [
    concat!(
        r#"{"name":"demo_echo","title":"Echo","description":"Answers the message.","inputSchema":{"type":"object","#,
        r#""properties":{"message":{"type":"string","description":"What to answer."}},"required":["message"]},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":false}}"#
    ),
    concat!(
        r#"{"name":"demo_sleep","title":"Sleep","description":"Answers after some seconds, and reports progress until "#,
        r#"then. Can be cancelled.","inputSchema":{"type":"object","properties":{"seconds":{"type":"number","#,
        r#""minimum":0,"maximum":86400,"description":"How long to sleep."}},"required":["seconds"]},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":false}}"#
    ),
    concat!(
        r#"{"name":"demo_flaky","title":"Flaky","description":"Loses its first attempts under a name, then succeeds. "#,
        r#"Shows retries.","inputSchema":{"type":"object","properties":{"name":{"type":"string","#,
        r#""description":"Attempts are counted per name."},"failures":{"type":"integer","minimum":0,"#,
        r#""description":"How many attempts are lost."},"seconds":{"type":"number","minimum":0,"maximum":86400,"#,
        r#""description":"How long it takes; the attempt is counted in the middle."}},"required":["name","failures"]},"#,
        r#""annotations":{"idempotentHint":true,"openWorldHint":false}}"#
    ),
    concat!(
        r#"{"name":"demo_append","title":"Append","description":"Appends one line to the demo ledger: a side effect "#,
        r#"that can be counted. Has no hints, so it is started at most once.","inputSchema":{"type":"object","#,
        r#""properties":{"text":{"type":"string","description":"The line."},"seconds":{"type":"number","minimum":0,"#,
        r#""maximum":86400,"description":"How long it takes; the line is written in the middle."}},"required":["text"]}}"#
    ),
    concat!(
        r#"{"name":"demo_crash","title":"Crash","description":"Kills the worker process that runs it, once; the next "#,
        r#"attempt answers.","inputSchema":{"type":"object"},"#,
        r#""annotations":{"idempotentHint":true,"openWorldHint":false}}"#
    ),
    concat!(
        r#"{"name":"demo_ask","title":"Ask","description":"Asks the user a question and answers what the user said. "#,
        r#"Needs a client with elicitation.","inputSchema":"#,
        r#"{"type":"object","properties":{"question":{"type":"string","description":"What to ask."},"#,
        r#""parked":{"type":"boolean","description":"Ends with the question and goes on with the answer, so that a "#,
        r#"restart between the two loses nothing."},"times":{"type":"integer","minimum":1,"maximum":20,"#,
        r#""description":"How often to ask."}},"required":["question"]},"#,
        r#""annotations":{"idempotentHint":true,"openWorldHint":false}}"#
    ),
];

/// Runs the demo tools.
#[derive(Clone, Debug)]
pub struct Demo {
    folder: Arc<Path>,
}

impl Demo {
    /// Demo tools with their ledgers in `folder`, which must exist.
    pub fn new(folder: &Path) -> Demo {
        Demo { folder: folder.into() }
    }

    /// The tool objects, in the order they are listed.
    pub fn definitions() -> Vec<Box<RawValue>> {
        let raw =
            |text: &str| RawValue::from_string(text.to_owned()).expect("the definitions are JSON, a test says so");
        DEFINITIONS.into_iter().map(raw).collect()
    }

    async fn flaky(&self, job: &Job) -> Outcome {
        #[derive(Deserialize)]
        struct Arguments {
            name: String,
            failures: u64,
            #[serde(default)]
            seconds: f64,
        }
        let (name, failures, half) = match serde_json::from_str(&job.arguments) {
            Ok(Arguments { name, failures, seconds }) if is_duration(seconds) => (name, failures, seconds / 2.0),
            _ => return refused("demo_flaky needs a text `name` and a whole number `failures`."),
        };
        if !pause(job, half).await {
            return interrupted();
        }
        let path = self.folder.join(FLAKY_LEDGER);
        let line = quoted(&name);
        let count = write(move || {
            append(&path, &line)?;
            count(&path, &line)
        });
        let counted = count.await;
        if !pause(job, half).await {
            return interrupted();
        }
        match counted {
            Ok(attempt) if attempt <= failures => {
                let text = format!("attempt {attempt} under this name is one of the {failures} that demo_flaky loses");
                Outcome::lost("demo_flaky", text)
            }
            Ok(attempt) => answer(&format!("{name} succeeded on attempt {attempt}.")),
            Err(error) => refused(&format!("The ledger of demo_flaky cannot be written: {error}")),
        }
    }

    async fn append(&self, job: &Job) -> Outcome {
        #[derive(Deserialize)]
        struct Arguments {
            text: String,
            #[serde(default)]
            seconds: f64,
        }
        let (text, half) = match serde_json::from_str(&job.arguments) {
            Ok(Arguments { text, seconds }) if is_duration(seconds) => (text, seconds / 2.0),
            _ => return refused("demo_append needs a text `text`."),
        };
        if !pause(job, half).await {
            return interrupted();
        }
        let line = format!("{} key={} token={}", on_one_line(&text), job.effect_key, job.fencing_token);
        let path = self.folder.join(LEDGER);
        let written = write(move || append(&path, &line)).await;
        if !pause(job, half).await {
            return interrupted();
        }
        match written {
            Ok(()) => answer(&format!("Appended to {LEDGER}: {text}")),
            Err(error) => refused(&format!("The ledger cannot be written: {error}")),
        }
    }
}

#[async_trait]
impl Executor for Demo {
    async fn run(&self, job: Job, report: Report<'_>) -> Outcome {
        match job.tool.as_str() {
            "demo_echo" => echo(&job.arguments),
            "demo_sleep" => sleep(&job, report).await,
            "demo_flaky" => self.flaky(&job).await,
            "demo_append" => self.append(&job).await,
            "demo_crash" => crash(&job).await,
            ASK => ask::ask(&job).await,
            name => Outcome::not_started("unknown_tool", format!("there is no demo tool {name}")),
        }
    }
}

/// The benchmark's tool: the message goes from argument to answer as the JSON it is, in one copy.
fn echo(arguments: &str) -> Outcome {
    #[derive(Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
    }
    match serde_json::from_str::<Arguments<'_>>(arguments) {
        Ok(Arguments { message }) if message.get().starts_with('"') => text_result(message.get()),
        _ => refused("demo_echo needs a text `message`."),
    }
}

async fn sleep(job: &Job, report: Report<'_>) -> Outcome {
    #[derive(Deserialize)]
    struct Arguments {
        seconds: f64,
    }
    let seconds = match serde_json::from_str(&job.arguments) {
        Ok(Arguments { seconds }) if is_duration(seconds) => seconds,
        _ => return refused("demo_sleep needs a number `seconds` from 0 to 86400."),
    };
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(seconds);
    // Ten reports, but no more than a second apart.
    let every = REPORT_EVERY.min(Duration::from_secs_f64(seconds / 10.0)).max(Duration::from_millis(10));
    let mut next = start + every;
    loop {
        tokio::select! {
            () = job.cancel.cancelled() => return interrupted(),
            () = tokio::time::sleep_until(next.min(end)) => {}
        }
        if next >= end {
            return answer(&format!("Slept {seconds} seconds."));
        }
        let slept = (next - start).as_secs_f64();
        let message = Some(format!("slept {slept:.1} of {seconds} seconds"));
        report(Progress { progress: slept, total: Some(seconds), message });
        next += every;
    }
}

fn is_duration(seconds: f64) -> bool {
    (0.0..=SLEEP_MAX_S).contains(&seconds)
}

/// Lets time pass; false when the call was told to stop meanwhile.
async fn pause(job: &Job, seconds: f64) -> bool {
    if seconds <= 0.0 {
        return true;
    }
    tokio::select! {
        () = job.cancel.cancelled() => false,
        () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => true,
    }
}

fn interrupted() -> Outcome {
    Outcome::lost("cancelled", "the call was interrupted")
}

async fn crash(job: &Job) -> Outcome {
    if job.attempt > 1 {
        return answer(&format!("Recovered on attempt {}.", job.attempt));
    }
    // Not to be caught, like a power cut seen from the process.
    match rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL) {
        Ok(()) => std::future::pending().await,
        Err(error) => refused(&format!("The process cannot kill itself: {error}")),
    }
}

async fn write<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// One write per line, so that lines of several processes do not mix; on the disk before it returns.
fn append(path: &PathBuf, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()
}

fn count(path: &PathBuf, line: &str) -> io::Result<u64> {
    let mut found = 0;
    for known in BufReader::new(std::fs::File::open(path)?).lines() {
        found += u64::from(known? == line);
    }
    Ok(found)
}

fn on_one_line(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn answer(text: &str) -> Outcome {
    text_result(&quoted(text))
}

/// A result with one text block; `text` is a JSON string.
fn text_result(text: &str) -> Outcome {
    const HEAD: &str = r#"{"content":[{"type":"text","text":"#;
    const TAIL: &str = "}]}";
    let mut result = String::with_capacity(HEAD.len() + text.len() + TAIL.len());
    result.push_str(HEAD);
    result.push_str(text);
    result.push_str(TAIL);
    Outcome::Result(result.into())
}

fn refused(text: &str) -> Outcome {
    let text = quoted(text);
    Outcome::Result(format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#).into())
}
