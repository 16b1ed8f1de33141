//! `demo retry`: a flaky tool is tried again with growing pauses, and the server is killed while the next attempt is
//! scheduled. The schedule is in the store; retries that run out are a final, visible failure.

use std::time::Duration;

use serde_json::json;

use super::super::failure::{Exit, Failure};
use super::super::stage::caller::{Caller, Told, ToolCall};
use super::super::stage::folder::Folder;
use super::super::stage::program::Launch;
use super::cast::{Cast, place, with_pid};
use super::log::{Log, words};
use super::story::{Counts, Story};
use super::{PATIENCE, set_up};
use crate::model::event::{Event, EventRecord};
use crate::model::execution::{Head, State};
use crate::model::revision::Era;

/// Pauses of about 1 s and 2 s.
const CONFIG: &str = r#"# The demo's configuration: one SQLite store, pauses of 1 s and 2 s (with the default jitter of 0.2).
[scheduler]
interval = "100ms"
[worker]
poll_interval = "10ms"
[defaults]
retry = { max_attempts = 3, initial_interval = "1s", backoff_coefficient = 2.0 }
[log]
level = "warn"
"#;

const TOOL: &str = "demo_flaky";
/// A retry starts at most so long after its time.
const LATE_MAX_MS: i64 = 2_000;

/// Plays the scene.
pub async fn play(folder: &Folder, story: Story) -> Result<Exit, Failure> {
    let mut cast = set_up(folder, CONFIG)?;
    let server = cast.start(Launch::new("server", "mcp,worker,scheduler")).await?;
    let log = cast.open_log().await?;
    story.say(format!("{}; at most 3 attempts, pauses of about 1 s and 2 s", with_pid(&server)))?;
    let place = place(&server)?;
    let ask = |key: &'static str, failures: u32| {
        let place = place.clone();
        tokio::spawn(async move {
            let arguments = format!(r#"{{"name":"{key}","failures":{failures}}}"#);
            let call = ToolCall { tool: TOOL, arguments: &arguments, key: Some(key), wait_ms: None };
            Caller::new(place, Era::Modern, "caller").call(&call).await
        })
    };
    let (report, hopeless) = (ask("report", 2), ask("hopeless", 9));
    story.say("call \"report\": demo_flaky loses its first 2 attempts; call \"hopeless\": it loses all")?;
    let head = log.submitted("report", PATIENCE).await?;
    let second = ("the second retry was not scheduled", PATIENCE);
    log.event(head.id(), second, |event| matches!(event, Event::Retried { attempt: 2, .. })).await?;
    let mut told_to = tell_new(&cast, &log, &head, (0, &story)).await?;

    let pid = server.process.pid();
    let mut server = server;
    server.process.kill();
    story.say(format!("kill -9 server (pid {pid}), while the third attempt is scheduled"))?;
    let cut = [report, hopeless].into_iter().map(|call| async move { matches!(call.await, Ok(Err(_))) });
    let cut: Vec<bool> = futures_util::future::join_all(cut).await;
    story.say(format!("the connections of {} callers are cut", cut.iter().filter(|cut| **cut).count()))?;
    let server = cast.restart(server).await?;
    let back_ms = story.now_ms();
    story.say_at(
        back_ms,
        format!("{} is started on the same store; the callers ask again with their keys", with_pid(&server)),
    )?;
    let (report, hopeless) = (answer(ask("report", 2)).await?, answer(ask("hopeless", 9)).await?);
    let end = ("the call did not end", PATIENCE);
    log.event(head.id(), end, Event::is_final).await?;
    told_to = tell_new(&cast, &log, &head, (told_to, &story)).await?;
    story.must(told_to > 0, || "nothing was told".to_owned());
    story.say(format!("the caller of \"report\" is told: \"{}\"", report.text))?;
    story.say(format!("the caller of \"hopeless\" is told: \"{}\"", hopeless.text))?;

    story.must(report.text.contains("succeeded on attempt 3"), || format!("the caller was told {:?}", report.text));
    let (mut counts, mut facts) = (Counts::default(), Vec::new());
    for head in log.executions(&[]).await? {
        let events = log.events(head.id()).await?;
        facts.push(judge(&head, &events, (back_ms, &story)));
        counts.calls += 1;
        match head.state {
            State::Completed => (counts.completed, counts.recovered) = (counts.completed + 1, counts.recovered + 1),
            State::Failed => counts.failed += 1,
            State::Unknown => counts.unknown += 1,
            _ => counts.lost += 1,
        }
    }
    log.close().await;
    story.must((counts.completed, counts.failed) == (1, 1), || "one call has to succeed and one to fail".to_owned());
    let verdict = "3 attempts each, none before its time, the schedule outlived the server, and what ran out says so";
    story.end(counts, verdict, json!({ "executions": facts }))
}

/// Tells the events after the one told last; returns the last one told.
async fn tell_new(cast: &Cast, log: &Log, head: &Head, (after, story): (i64, &Story)) -> Result<i64, Failure> {
    let mut last = after;
    let mut due_ms: Option<i64> = None;
    for record in log.events(head.id()).await? {
        let mut text = words(&record.event, |worker| cast.name(worker));
        match &record.event {
            Event::Leased { attempt, .. } if *attempt > 1 => {
                text.push_str(
                    &due_ms.map_or(String::new(), |due_ms| format!(", {} ms after its time", record.at_ms - due_ms)),
                );
            }
            Event::Retried { run_at_ms, .. } => {
                due_ms = Some(*run_at_ms);
                text.push_str(&format!(", the next is due in {:.2} s", (run_at_ms - record.at_ms) as f64 / 1_000.0));
            }
            _ => {}
        }
        if record.seq > after {
            story.say_at(record.at_ms, format!("report: {text}"))?;
            last = record.seq;
        }
    }
    Ok(last)
}

/// Checks the attempts of an execution against their times.
fn judge(head: &Head, events: &[EventRecord], (back_ms, story): (i64, &Story)) -> serde_json::Value {
    let key = head.ident.key.clone().unwrap_or_default();
    let (mut due_ms, mut attempts) = (None, Vec::new());
    for record in events {
        match &record.event {
            Event::Retried { run_at_ms, .. } => due_ms = Some(*run_at_ms),
            Event::Leased { attempt, .. } => {
                let late_ms = due_ms.map(|due_ms| record.at_ms - due_ms);
                // Nobody could start what came due while the server was away.
                let away_ms =
                    due_ms.map_or(0, |due_ms| if record.at_ms < back_ms { 0 } else { (back_ms - due_ms).max(0) });
                let fits = late_ms.is_none_or(|late_ms| (0..=LATE_MAX_MS + away_ms).contains(&late_ms));
                story.must(fits, || format!("attempt {attempt} of {key} came {late_ms:?} ms after its time"));
                attempts.push(json!({ "attempt": attempt, "late_ms": late_ms }));
            }
            _ => {}
        }
    }
    story.must(attempts.len() == 3, || format!("{key} had {} attempts instead of 3", attempts.len()));
    json!({ "id": head.id().to_string(), "key": key, "state": head.state.as_str(), "attempts": attempts })
}

async fn answer(
    call: tokio::task::JoinHandle<Result<Told, super::super::stage::caller::Error>>,
) -> Result<Told, Failure> {
    match tokio::time::timeout(PATIENCE + Duration::from_secs(1), call).await {
        Ok(Ok(Ok(told))) => Ok(told),
        Ok(Ok(Err(error))) => Err(Failure::new(Exit::Failure, format!("a caller got no result: {error}"))),
        _ => Err(Failure::new(Exit::Failure, "a caller was not answered")),
    }
}
