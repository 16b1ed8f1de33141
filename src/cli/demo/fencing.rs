//! `demo fencing`: a worker is stopped past its lease while its tool runs, and goes on later as if nothing had happened.
//! Its fencing token decides what its late result is worth.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::super::failure::{Exit, Failure};
use super::super::stage::caller::{Caller, Told, ToolCall};
use super::super::stage::folder::Folder;
use super::super::stage::program::{Launch, Running};
use super::cast::{Cast, caller, place, with_pid};
use super::log::{Log, pid_of, words};
use super::story::{Counts, Story};
use super::{PATIENCE, set_up};
use crate::model::event::{Event, EventRecord};
use crate::model::execution::{Head, ResultSource};
use crate::model::revision::Era;

/// The tool is a process of its own, as most tools are: it goes on while its worker is stopped, and its answer waits in
/// the pipe. It writes what it did into a ledger, with the token that it was given.
const TOOL: &str = r#"#!/bin/sh
# $1: seconds. The arguments come as JSON on stdin; nothing in them matters here.
set -eu
cat >/dev/null
sleep "$1"
echo "$DURABLE_MCP_IDEMPOTENCY_KEY attempt $DURABLE_MCP_ATTEMPT token $DURABLE_MCP_FENCING_TOKEN" >>ledger.txt
echo "done by attempt $DURABLE_MCP_ATTEMPT under fencing token $DURABLE_MCP_FENCING_TOKEN"
"#;
const TOOL_FILE: &str = "tool.sh";
const LEDGER: &str = "ledger.txt";

/// A heartbeat follows a lease so late that the worker is stopped outside of a write.
const CONFIG: &str = r#"# The demo's configuration: one SQLite store, short leases, two commands as tools.
[lease]
ttl = "1800ms"
heartbeat = "1500ms"
[scheduler]
interval = "100ms"
[worker]
poll_interval = "10ms"
[defaults]
retry = { initial_interval = "200ms" }
[log]
level = "warn"
[tools.rebuild_index]
description = "May run again: at_least_once."
command = ["sh", "tool.sh", "1"]
cwd = "."
delivery = "at_least_once"
[tools.charge_card]
description = "Must not run twice: at_most_once."
command = ["sh", "tool.sh", "1"]
cwd = "."
"#;

/// From the lease to the stop: the tool has begun, and no heartbeat is due.
const BEFORE_STOP: Duration = Duration::from_millis(300);

/// From the tool's line in the ledger to its answer.
const INTO_THE_PIPE: Duration = Duration::from_millis(100);

struct Scene {
    cast: Cast,
    log: Log,
    server: Running,
    workers: Vec<Running>,
}

/// Plays the two scenes.
pub async fn play(folder: &Folder, story: Story) -> Result<Exit, Failure> {
    let mut cast = set_up(folder, CONFIG)?;
    std::fs::write(folder.path().join(TOOL_FILE), TOOL)
        .map_err(|error| Failure::new(Exit::Failure, format!("{TOOL_FILE}: {error}")))?;
    let server = cast.start(Launch::new("server", "mcp,scheduler")).await?;
    let mut workers = Vec::new();
    for name in ["worker A", "worker B"] {
        workers.push(cast.start(Launch::new(name, "worker")).await?);
    }
    let log = cast.open_log().await?;
    let everybody: Vec<String> = std::iter::once(&server).chain(&workers).map(with_pid).collect();
    story.say(format!("one SQLite store shared by {}; a lease lasts 1.8 s", everybody.join(", ")))?;
    let scene = Scene { cast, log, server, workers };
    let mut counts = Counts { calls: 2, ..Counts::default() };
    let refused = scene.at_least_once(&story, &mut counts).await?;
    let late = scene.at_most_once(&story, &mut counts).await?;
    scene.log.close().await;
    let facts = json!({ "at_least_once": refused, "at_most_once": late });
    let verdict = "the older token changed nothing, the newest one completed a call whose outcome had been unknown";
    story.end(counts, verdict, facts)
}

impl Scene {
    /// Another worker takes the call over; the stopped one's result comes under an old token.
    async fn at_least_once(&self, story: &Story, counts: &mut Counts) -> Result<serde_json::Value, Failure> {
        story.print("\n  1. at_least_once: rebuild_index takes 1 s and may run again\n")?;
        let (head, call) = self.begin("rebuild_index", "index-1").await?;
        let (victim, first) = self.stop_holder(&head, story).await?;
        let retried =
            self.wait(&head, "the lease did not expire", |event| matches!(event, Event::Retried { .. })).await?;
        self.say(&retried, story, &format!(", since its lease was not renewed{}", after(&first, &retried)))?;
        let second = self.lease(&head, 2).await?;
        self.say(&second, story, "")?;
        self.tool_has_run(&head).await?;
        victim.process.signal(Signal::CONT);
        let continued_ms = story.now_ms();
        story
            .say_at(continued_ms, format!("SIGCONT {}: it knows of nothing and brings its result", with_pid(victim)))?;
        let rejected = self
            .wait(&head, "the late result was not refused", |event| matches!(event, Event::Rejected { .. }))
            .await?;
        self.say(&rejected, story, ": nothing changed")?;
        let completed = self
            .wait(&head, "the second attempt did not end", |event| matches!(event, Event::Completed { .. }))
            .await?;
        self.say(&completed, story, "")?;
        let told = answer(call).await?;
        story.say(format!("the caller, who waited all the time, is told: \"{}\"", told.text.trim()))?;
        let runs = self.runs(&head);
        tell_runs(&runs, story)?;
        story.must(
            matches!(&rejected.event, Event::Rejected { fencing_token: 1, reason, .. } if matches!(reason.as_str(), "stale_token" | "ended")),
            || format!("the late result was judged as {:?}", rejected.event),
        );
        story.must(is_completed(&completed, 2, ResultSource::Result), || format!("it ended as {:?}", completed.event));
        story.must(told.text.contains("attempt 2"), || format!("the caller was told {:?}", told.text));
        story.must(runs.len() == 2, || format!("the ledger shows {} runs instead of 2", runs.len()));
        (counts.completed, counts.recovered) = (counts.completed + 1, counts.recovered + 1);
        Ok(json!({
            "id": head.id().to_string(),
            "rejected": { "fencing_token": 1, "after_ms": rejected.at_ms - continued_ms },
            "completed": { "fencing_token": 2 },
            "runs": runs.len(),
        }))
    }

    /// Nobody takes the call over; the stopped worker's token is still the newest one.
    async fn at_most_once(&self, story: &Story, counts: &mut Counts) -> Result<serde_json::Value, Failure> {
        story.print("\n  2. at_most_once: charge_card takes 1 s and must not run twice\n")?;
        let (head, call) = self.begin("charge_card", "charge-1").await?;
        let (victim, first) = self.stop_holder(&head, story).await?;
        let lost = self.wait(&head, "the lease did not expire", |event| matches!(event, Event::Lost { .. })).await?;
        self.say(&lost, story, &format!(", since its lease was not renewed{}", after(&first, &lost)))?;
        let told = answer(call).await?;
        let sentence = told.text.split(". ").next().unwrap_or_default().to_owned();
        story.say(format!("the caller is told the truth: \"{sentence}.\""))?;
        let again = self.ask_again("charge_card", "charge-1").await?;
        let told_state =
            |told: &Told| told.execution.as_ref().map(|execution| execution.state.clone()).unwrap_or_default();
        story.say(format!("asked again with the same key: {}, and nothing is run", told_state(&again)))?;
        story.must(told_state(&told) == "unknown" && told_state(&again) == "unknown", || {
            format!("the caller was told {:?}, then {:?}", told.text, again.text)
        });
        self.tool_has_run(&head).await?;
        victim.process.signal(Signal::CONT);
        let continued_ms = story.now_ms();
        story.say_at(continued_ms, format!("SIGCONT {}: it brings its result", with_pid(victim)))?;
        let completed =
            self.wait(&head, "the late result did not count", |event| matches!(event, Event::Completed { .. })).await?;
        self.say(&completed, story, ": no newer lease was granted, so it is evidence")?;
        let at_last = self.ask_again("charge_card", "charge-1").await?;
        story.say(format!("asked once more with the same key: \"{}\"", at_last.text.trim()))?;
        let runs = self.runs(&head);
        tell_runs(&runs, story)?;
        story.must(is_completed(&completed, 1, ResultSource::LateResult), || {
            format!("it ended as {:?}", completed.event)
        });
        story.must(at_last.text.contains("attempt 1"), || format!("the caller was told {:?}", at_last.text));
        counts.duplicate += usize::from(runs.len() > 1);
        (counts.completed, counts.recovered) = (counts.completed + 1, counts.recovered + 1);
        Ok(json!({
            "id": head.id().to_string(),
            "unknown_for_ms": completed.at_ms - lost.at_ms,
            "completed": { "fencing_token": 1, "source": "late_result", "after_ms": completed.at_ms - continued_ms },
            "runs": runs.len(),
        }))
    }

    /// Calls, and waits until a worker has the lease.
    async fn begin(&self, tool: &'static str, key: &'static str) -> Result<(Head, Call), Failure> {
        let place = place(&self.server)?;
        let call = tokio::spawn(async move {
            let mut caller = Caller::new(place, Era::Modern, "caller");
            caller.call(&ToolCall { tool, arguments: "{}", key: Some(key), wait_ms: None }).await
        });
        let head = self.log.submitted(key, PATIENCE).await?;
        Ok((head, call))
    }

    async fn ask_again(&self, tool: &'static str, key: &'static str) -> Result<Told, Failure> {
        let mut caller = caller(&self.server, Era::Modern, "another caller")?;
        let told = caller.call(&ToolCall { tool, arguments: "{}", key: Some(key), wait_ms: None }).await;
        told.map_err(|error| Failure::new(Exit::Failure, error.to_string()))
    }

    /// Stops the worker that has the first lease, in the middle of its tool.
    async fn stop_holder(&self, head: &Head, story: &Story) -> Result<(&Running, EventRecord), Failure> {
        let first = self.lease(head, 1).await?;
        self.say(&first, story, "")?;
        let holder = self.workers.iter().find(|worker| matches!(&first.event, Event::Leased { worker: name, .. } if pid_of(name) == Some(worker.process.pid())));
        let holder =
            holder.ok_or_else(|| Failure::new(Exit::Failure, "a call was leased to no worker of this demo"))?;
        tokio::time::sleep(BEFORE_STOP).await;
        holder.process.signal(Signal::STOP);
        story.say(format!(
            "SIGSTOP {}: no heartbeat from now on; its tool, a process of its own, goes on",
            with_pid(holder)
        ))?;
        Ok((holder, first))
    }

    /// Waits until the stopped worker's tool has done its work, so that its answer stands in the pipe.
    async fn tool_has_run(&self, head: &Head) -> Result<(), Failure> {
        self.log.until(PATIENCE, "the tool did not run", async || Ok(self.runs(head).pop())).await?;
        tokio::time::sleep(INTO_THE_PIPE).await;
        Ok(())
    }

    async fn lease(&self, head: &Head, token: i64) -> Result<EventRecord, Failure> {
        let is = |event: &Event| matches!(event, Event::Leased { fencing_token, .. } if *fencing_token == token);
        self.wait(head, "no worker took the call", is).await
    }

    async fn wait(&self, head: &Head, what: &str, is: impl Fn(&Event) -> bool) -> Result<EventRecord, Failure> {
        self.log.event(head.id(), (what, PATIENCE), is).await
    }

    fn say(&self, record: &EventRecord, story: &Story, more: &str) -> Result<(), Failure> {
        let words = words(&record.event, |worker| self.cast.name(worker));
        story.say_at(record.at_ms, format!("{words}{more}"))
    }

    /// What the tool wrote into its ledger for this call.
    fn runs(&self, head: &Head) -> Vec<String> {
        let path: PathBuf = self.cast.site.folder().join(LEDGER);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let key = head.ident.effect_key.to_string();
        text.lines().filter(|line| line.starts_with(&key)).map(str::to_owned).collect()
    }
}

type Call = tokio::task::JoinHandle<Result<Told, super::super::stage::caller::Error>>;

async fn answer(call: Call) -> Result<Told, Failure> {
    let told = tokio::time::timeout(PATIENCE, call).await;
    match told {
        Ok(Ok(Ok(told))) => Ok(told),
        Ok(Ok(Err(error))) => Err(Failure::new(Exit::Failure, format!("the caller got no result: {error}"))),
        _ => Err(Failure::new(Exit::Failure, "the caller was not answered")),
    }
}

fn tell_runs(runs: &[String], story: &Story) -> Result<(), Failure> {
    story.print(&format!("\n  the tool's own ledger (effect key, attempt, token): {}", runs.len()))?;
    runs.iter().try_for_each(|line| story.print(&format!("      {line}")))
}

fn is_completed(record: &EventRecord, token: i64, from: ResultSource) -> bool {
    matches!(&record.event, Event::Completed { fencing_token: Some(under), source, .. } if *under == token && *source == from)
}

fn after(first: &EventRecord, then: &EventRecord) -> String {
    format!(" ({:.2} s after it was granted)", (then.at_ms - first.at_ms) as f64 / 1_000.0)
}
