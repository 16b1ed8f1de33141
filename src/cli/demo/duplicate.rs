//! `demo duplicate`: clients repeat their calls in every way that correct clients do, by time-out, by key, after a cut
//! stream, in both eras. The tool's own ledger says how often each really ran.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use super::super::failure::{Exit, Failure};
use super::super::stage::caller::{self, Caller, Error, Told, ToolCall};
use super::super::stage::folder::Folder;
use super::super::stage::program::{Launch, Running};
use super::cast::{Cast, caller, place, with_pid};
use super::log::Log;
use super::story::{Counts, Story};
use super::{PATIENCE, set_up};
use crate::mcp::reject::code;
use crate::model::execution::{Head, State};
use crate::model::revision::Era;
use crate::worker::demo::LEDGER;

/// Streams begin early, so that a person need not wait for one to be cut.
const CONFIG: &str = r#"# The demo's configuration: one SQLite store, streams that begin soon.
[server]
json_within = "100ms"
[log]
level = "warn"
"#;

const TOOL: &str = "demo_append";
/// What the client with a short time-out waits.
const SHORT: Duration = Duration::from_millis(300);
const TRIES_MAX: usize = 50;
const CROWD: usize = 20;

struct Scene {
    cast: Cast,
    log: Log,
    server: Running,
}

/// Plays the scenes.
pub async fn play(folder: &Folder, story: Story) -> Result<Exit, Failure> {
    let mut cast = set_up(folder, CONFIG)?;
    let server = cast.start(Launch::new("server", "mcp,worker,scheduler")).await?;
    let log = cast.open_log().await?;
    story.say(format!(
        "{}; demo_append writes one line into its ledger for each time it really runs",
        with_pid(&server)
    ))?;
    let scene = Scene { cast, log, server };
    let mut asked = 0;
    asked += scene.impatient(&story).await?;
    asked += scene.crowd(&story).await?;
    for (era, name) in [(Era::Legacy, "2025-11-25"), (Era::Modern, "2026-07-28")] {
        asked += scene.cut_stream(era, name, &story).await?;
    }
    asked += scene.conflict(&story).await?;

    let executions = scene.log.executions(&[]).await?;
    let lines = scene.cast.site.ledger_lines(LEDGER);
    story.print(&format!("\n  the tool's own ledger: {} lines for {asked} requests", lines.len()))?;
    lines.iter().try_for_each(|line| story.print(&format!("      {line}")))?;
    let mut counts = Counts { calls: executions.len(), ..Counts::default() };
    for head in &executions {
        let ran = scene.runs_of(head);
        match head.state {
            State::Completed if ran == 0 => counts.lost += 1,
            State::Completed => counts.completed += 1,
            State::Unknown => counts.unknown += 1,
            _ => counts.failed += 1,
        }
        counts.duplicate += usize::from(ran > 1);
    }
    scene.log.close().await;
    story.must(executions.len() == 4, || format!("{} executions are stored instead of 4", executions.len()));
    story.must(lines.len() == 4, || format!("the tool ran {} times instead of 4", lines.len()));
    let verdict = format!("{asked} requests, 4 calls, each run once; a key that stands for another call is refused");
    story.end(counts, &verdict, json!({ "requests": asked, "runs": lines.len() }))
}

impl Scene {
    /// A client gives up after 300 ms and calls again, without any key.
    async fn impatient(&self, story: &Story) -> Result<usize, Failure> {
        story.print("\n  1. a client gives up after 0.3 s and calls again (no key)\n")?;
        let mut client = caller(&self.server, Era::Modern, "impatient")?;
        let (arguments, mut tries) = (arguments("sent once", 1.0), 0);
        let call = ToolCall { tool: TOOL, arguments: &arguments, key: None, wait_ms: None };
        let told = loop {
            tries += 1;
            match tokio::time::timeout(SHORT, client.call(&call)).await {
                Ok(told) => break told.map_err(broken)?,
                Err(_) => {
                    client.cut();
                    story.say(format!("try {tries}: no answer within 0.3 s, the client hangs up"))?;
                }
            }
            if tries == TRIES_MAX {
                return Err(Failure::new(Exit::Failure, "the impatient client was never answered"));
            }
        };
        story.say(format!("try {tries}: {}", sentence(&told)))?;
        story.must(tries > 1 && attached(&told), || "the repeated call was not taken by the first one".to_owned());
        self.tell_runs("sent once", story)?;
        Ok(tries)
    }

    /// Twenty clients call at once with one key; one more comes when all is over.
    async fn crowd(&self, story: &Story) -> Result<usize, Failure> {
        story.print(&format!("\n  2. {CROWD} clients call at once with one key\n"))?;
        let place = place(&self.server)?;
        let mut crowd = JoinSet::new();
        for n in 0..CROWD {
            let place = place.clone();
            crowd.spawn(async move {
                let mut client = Caller::new(place, Era::Modern, &format!("client-{n}"));
                client.call(&keyed(&arguments("crowd", 0.5), "order-17")).await
            });
        }
        let mut all: Vec<Told> = Vec::new();
        while let Some(told) = crowd.join_next().await {
            all.push(told.map_err(|_| Failure::new(Exit::Failure, "a client died"))?.map_err(broken)?);
        }
        let same = all.iter().all(|told| told.text == all[0].text && id(told) == id(&all[0]));
        let joined = all.iter().filter(|told| attached(told)).count();
        story.say(format!(
            "{} answers, all of execution {}; {joined} of them joined the first call",
            all.len(),
            id(&all[0])
        ))?;
        story.must(same, || "the clients were told different things".to_owned());
        story.must(joined == CROWD - 1, || format!("{joined} of {CROWD} clients joined instead of {}", CROWD - 1));
        let begun = Instant::now();
        let mut late = caller(&self.server, Era::Modern, "latecomer")?;
        let told = late.call(&keyed(&arguments("crowd", 0.5), "order-17")).await.map_err(broken)?;
        let took = begun.elapsed();
        story.say(format!("one more, later: the stored result after {:.1} ms", took.as_secs_f64() * 1_000.0))?;
        story.must(id(&told) == id(&all[0]) && told.text == all[0].text, || {
            "the latecomer got another result".to_owned()
        });
        self.tell_runs("crowd", story)?;
        Ok(CROWD + 1)
    }

    /// The stream of the answer breaks; the client sends the call again under a new JSON-RPC id, as 2026-07-28 demands.
    async fn cut_stream(&self, era: Era, name: &str, story: &Story) -> Result<usize, Failure> {
        let number = if era == Era::Legacy { 3 } else { 4 };
        story.print(&format!("\n  {number}. the stream of the answer is cut (revision {name}, no key)\n"))?;
        let mut client = caller(&self.server, era, "streaming")?;
        let text = format!("cut {name}");
        let arguments = arguments(&text, 1.0);
        let call = ToolCall { tool: TOOL, arguments: &arguments, key: None, wait_ms: None };
        let pending = client.start(&call).await.map_err(broken)?;
        story.say(format!(
            "the answer begins as {}; the connection is cut",
            if pending.is_stream() { "a stream" } else { "JSON" }
        ))?;
        story.must(pending.is_stream(), || "the answer did not come as a stream".to_owned());
        client.cut();
        drop(pending);
        let told = client.call(&call).await.map_err(broken)?;
        story.say(format!("sent again under a new id: {}", sentence(&told)))?;
        story.must(attached(&told), || format!("the call repeated in {name} was not taken by the first one"));
        self.tell_runs(&text, story)?;
        Ok(2)
    }

    /// The same key with other arguments.
    async fn conflict(&self, story: &Story) -> Result<usize, Failure> {
        story.print("\n  5. the same key with other arguments\n")?;
        let mut client = caller(&self.server, Era::Modern, "confused")?;
        match client.call(&keyed(&arguments("something else", 0.0), "order-17")).await {
            Err(Error::Rpc { code: code::CONFLICT, message }) => {
                story.say(format!("refused with error {}: {message}", code::CONFLICT))?;
            }
            other => story.must(false, || format!("the conflict was answered by {other:?}")),
        }
        self.tell_runs("something else", story)?;
        let ran = self.runs("something else");
        story.must(ran == 0, || "the conflicting call ran".to_owned());
        Ok(1)
    }

    fn runs(&self, text: &str) -> usize {
        let start = format!("{text} key=");
        self.cast.site.ledger_lines(LEDGER).iter().filter(|line| line.starts_with(&start)).count()
    }

    fn runs_of(&self, head: &Head) -> usize {
        let key = format!(" key={} ", head.ident.effect_key);
        self.cast.site.ledger_lines(LEDGER).iter().filter(|line| line.contains(&key)).count()
    }

    fn tell_runs(&self, text: &str, story: &Story) -> Result<(), Failure> {
        let runs = self.runs(text);
        let times = if runs == 1 { "time" } else { "times" };
        story.say(format!("the ledger: it ran {runs} {times}"))
    }
}

fn arguments(text: &str, seconds: f64) -> String {
    json!({ "text": text, "seconds": seconds }).to_string()
}

fn keyed<'a>(arguments: &'a str, key: &'a str) -> ToolCall<'a> {
    ToolCall { tool: TOOL, arguments, key: Some(key), wait_ms: Some(PATIENCE.as_millis() as i64) }
}

fn broken(error: caller::Error) -> Failure {
    Failure::new(Exit::Failure, format!("a client got no result: {error}"))
}

fn attached(told: &Told) -> bool {
    told.execution.as_ref().is_some_and(|execution| execution.attached)
}

fn id(told: &Told) -> &str {
    told.execution.as_ref().map_or("?", |execution| &execution.id)
}

fn sentence(told: &Told) -> String {
    let joined = if attached(told) { "taken by the first call" } else { "a call of its own" };
    format!("\"{}\" ({joined}, execution {})", told.text, id(told))
}
