//! `executions tail|wait|export`: what takes its time. Data goes to stdout line by line; how it goes on is shown on stderr,
//! at a terminal only.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{Ending, unreadable};
use crate::cli::args::{ExportArgs, TailArgs, WaitArgs};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Output, printable};
use crate::cli::source::{Position, Source};
use crate::engine::changes;
use crate::engine::clock::Clock;

/// The first pause after a lost connection, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// `executions tail`.
pub async fn tail(args: &TailArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let begin = match &args.after {
        Some(cursor) => Position::After(cursor.to_string()),
        None => Position::From(args.from.at_ms(Clock::System.now_ms())),
    };
    let mut tail = source.tail(args.filter.query(), begin);
    let mut lost = Lost::default();
    // What was on its way into the store at the beginning is to be seen a moment later.
    let mut last_look = Some(Duration::from_millis(changes::SETTLE_MS.unsigned_abs() + 1));
    loop {
        let piece = match source.tail_next(&mut tail, args.follow).await {
            Ok(piece) => piece,
            Err(failure) if args.follow && lost.may_come_back(&failure) => {
                lost.pause().await;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        lost.found();
        for event in &piece.events {
            let line = if args.source.json { event.clone() } else { event_line(event, out)? };
            out.line(&line)?;
        }
        if !args.follow && !piece.more {
            match last_look.take() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Ok(Exit::Ok),
            }
        }
    }
}

/// A connection that was there and broke.
#[derive(Default)]
struct Lost {
    answered: bool,
    pause: Option<Duration>,
}

impl Lost {
    /// A server that never answered is a wrong address; one that did may be starting again.
    fn may_come_back(&self, failure: &Failure) -> bool {
        self.answered && failure.exit == Exit::Unreachable as u8
    }

    async fn pause(&mut self) {
        if self.pause.is_none() {
            eprintln!("the server does not answer; trying again until it does");
        }
        let pause = self.pause.map_or(PAUSE.0, |pause| (pause * 2).min(PAUSE.1));
        self.pause = Some(pause);
        tokio::time::sleep(pause).await;
    }

    fn found(&mut self) {
        self.answered = true;
        if self.pause.take().is_some() {
            eprintln!("the server answers again");
        }
    }
}

/// An event for a person.
fn event_line(event: &str, out: &Output) -> Result<String, Failure> {
    let mut members: Map<String, Value> = serde_json::from_str(event).map_err(|_| unreadable())?;
    let mut take = |name: &str| match members.remove(name) {
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let (at, execution, kind) = (take("at"), take("execution"), take("type"));
    let tool = format!("{}/{}", take("upstream"), take("tool"));
    for known in ["cursor", "seq", "namespace", "principal"] {
        take(known);
    }
    let rest: Vec<String> = members.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let kind = format!("{:<9}", printable(&kind));
    let (tool, rest) = (printable(&tool), printable(&rest.join(" ")));
    Ok(format!("{at}  {execution}  {}  {tool}  {rest}", out.event(&kind)).trim_end().to_owned())
}

/// `executions wait`.
pub async fn wait(args: &WaitArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let id = source.find(&args.id).await?;
    let end = args.timeout.map(|limit| Instant::now() + Duration::from_millis(limit.0.unsigned_abs()));
    let progress = spinner("{spinner} {msg} {elapsed}");
    progress.set_message(format!("{id} goes on"));
    let mut lost = Lost { answered: true, pause: None };
    let row = loop {
        match source.wait(id, end).await {
            Err(failure) if lost.may_come_back(&failure) && end.is_none_or(|end| Instant::now() < end) => {
                lost.pause().await;
            }
            row => break row?,
        }
    };
    progress.finish_and_clear();
    let ending: Ending = serde_json::from_str(&row).map_err(|_| unreadable())?;
    if args.source.json {
        out.line(&row)?;
    } else {
        out.line(&format!("{id}  {}", out.state(&ending.state)))?;
    }
    ending.exit(args.source.json)
}

/// `executions export`.
pub async fn export(args: &ExportArgs, source: &Source, out: &Output) -> Result<Exit, Failure> {
    let progress = spinner("{spinner} {pos} executions {elapsed}");
    let mut line = |text: &str| {
        progress.inc(1);
        out.line(text)
    };
    let ended = source.export(&args.filter.query(), &mut line).await;
    progress.finish_and_clear();
    ended.map(|()| Exit::Ok)
}

/// Shown on stderr, at a terminal only.
fn spinner(template: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let progress = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template(template) {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}
