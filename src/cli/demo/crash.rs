//! `demo crash`: workers are killed under load, again and again. What each of them was running is settled by the others:
//! repeated where that is allowed, honestly unknown where it is not.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::super::failure::{Exit, Failure};
use super::super::stage::folder::Folder;
use super::super::stage::program::{Launch, Running};
use super::cast::{Cast, place, with_pid};
use super::judge::{self, Judgement};
use super::load::Load;
use super::log::{self, Log};
use super::story::Story;
use super::{PATIENCE, set_up};
use crate::model::event::Event;
use crate::model::execution::{Head, State};
use crate::model::policy::Delivery;

/// Short times, so that a person sees it happen; nothing else differs from the defaults.
pub const CONFIG: &str = r#"# The demo's configuration: one SQLite store, short times.
[lease]
ttl = "2s"
[scheduler]
interval = "100ms"
[worker]
poll_interval = "10ms"
[defaults]
retry = { max_attempts = 5, initial_interval = "100ms" }
[log]
level = "warn"
"#;

const CALLERS: usize = 8;
const KILLS: usize = 5;
/// Calls that a victim runs at least when it is killed.
const HELD_MIN: usize = 2;
const BETWEEN_KILLS: Duration = Duration::from_millis(700);

/// What one kill did.
struct Kill {
    victim: String,
    pid: u32,
    at_ms: i64,
    held: usize,
    again: usize,
    unknown: usize,
    settled_ms: i64,
    recovered_ms: Option<i64>,
}

/// Plays the scene.
pub async fn play(folder: &Folder, story: Story) -> Result<Exit, Failure> {
    let mut cast = set_up(folder, CONFIG)?;
    let server = cast.start(Launch::new("server", "mcp")).await?;
    let scheduler = cast.start(Launch::new("scheduler", "scheduler")).await?;
    let mut workers = Vec::new();
    for name in ["worker A", "worker B"] {
        workers.push(cast.start(Launch::new(name, "worker")).await?);
    }
    let log = cast.open_log().await?;
    let everybody: Vec<String> = [&server, &scheduler].into_iter().chain(&workers).map(with_pid).collect();
    story.say(format!("one SQLite store shared by {}", everybody.join(", ")))?;
    let load = Load::start(&place(&server)?, CALLERS);
    story.say(format!(
        "{CALLERS} callers call without a pause: demo_append (at_most_once) and demo_flaky (at_least_once) in turn"
    ))?;

    let mut kills = Vec::new();
    for n in 0..KILLS {
        tokio::time::sleep(BETWEEN_KILLS).await;
        let victim = workers.swap_remove(n % 2);
        let (kill, successor) = kill(&mut cast, &log, victim, &story).await?;
        kills.push(kill);
        workers.push(successor);
        // The pair stays in its order, so that they are killed in turn.
        workers.sort_by(|a, b| a.launch.name.cmp(&b.launch.name));
    }
    let answered = load.end().await;
    story.say(format!("the callers leave; each of their {} calls was answered", answered.len()))?;
    let judged = judge::judge(&cast.site, &log, &answered, &story).await?;
    tell(&judged, &cast, &log, &story).await?;
    log.close().await;
    story.must(judged.counts.recovered > 0, || "no call was recovered".to_owned());
    let facts = json!({
        "kills": kills.iter().map(Kill::facts).collect::<Vec<_>>(),
        "run_again": judged.run_again,
        "unknown": judged.unknown_facts(),
    });
    let verdict = format!(
        "{KILLS} workers killed, nothing lost, no at_most_once call ran twice, and what nobody can know is called unknown"
    );
    story.end(judged.counts, &verdict, facts)
}

/// Kills a worker that is at work, follows what it was running to the end, and starts its successor.
async fn kill(cast: &mut Cast, log: &Log, mut victim: Running, story: &Story) -> Result<(Kill, Running), Failure> {
    let pid = victim.process.pid();
    let held = log
        .until(PATIENCE, "a worker got no work", async || {
            if log.held_by(pid).await?.len() < HELD_MIN {
                return Ok(None);
            }
            // It stands still while it is looked at: it could end its calls before it is killed, and once it is dead the
            // scheduler settles them at once.
            victim.process.signal(Signal::STOP);
            let held = log.held_by(pid).await?;
            if held.len() < HELD_MIN {
                victim.process.signal(Signal::CONT);
                return Ok(None);
            }
            Ok(Some(held))
        })
        .await?;
    let at_ms = story.now_ms();
    victim.process.kill();
    story.say_at(at_ms, format!("kill -9 {}, which was running {} calls", with_pid(&victim), held.len()))?;
    let name = victim.launch.name.clone();
    let mut kill =
        Kill { victim: name, pid, at_ms, held: held.len(), again: 0, unknown: 0, settled_ms: 0, recovered_ms: None };
    let mut again = Vec::new();
    for head in &held {
        let what = ("a call of the killed worker was not settled", PATIENCE);
        let token = head.fencing_token;
        let settled = log.event(head.id(), what, |event| settles(event, head.attempt, token)).await?;
        kill.settled_ms = kill.settled_ms.max(settled.at_ms - at_ms);
        match settled.event {
            Event::Retried { .. } => again.push(head.clone()),
            Event::Lost { .. } => kill.unknown += 1,
            // Its result was on its way into the store when the worker died.
            _ => {}
        }
        story.must(matches!(settled.event, Event::Completed { .. }) || is_fitting(head, &settled.event), || {
            format!("{} was settled as {}", head.id(), settled.event.name())
        });
    }
    kill.again = again.len();
    story.say_at(
        at_ms + kill.settled_ms,
        format!(
            "  {:.2} s after the kill the scheduler has settled them: {} to run again (at_least_once), {} unknown (at_most_once)",
            seconds(kill.settled_ms),
            kill.again,
            kill.unknown
        ),
    )?;
    recover(cast, log, &mut kill, &again).await?.into_iter().try_for_each(|(at_ms, line)| story.say_at(at_ms, line))?;
    let successor = cast.restart(victim).await?;
    story.say(format!("  {} is started in its place", with_pid(&successor)))?;
    Ok((kill, successor))
}

/// Follows what runs again until it is completed; returns a line for each worker that did it.
async fn recover(cast: &Cast, log: &Log, kill: &mut Kill, again: &[Head]) -> Result<Vec<(i64, String)>, Failure> {
    let mut by: Vec<(String, usize, i64)> = Vec::new();
    for head in again {
        let what = ("a call was not recovered", PATIENCE);
        let done = log.event(head.id(), what, |event| matches!(event, Event::Completed { .. })).await?;
        let leases = log.events(head.id()).await?;
        let last = leases.iter().rev().find_map(|record| match &record.event {
            Event::Leased { worker, .. } => Some(cast.name(worker)),
            _ => None,
        });
        let took_ms = done.at_ms - kill.at_ms;
        kill.recovered_ms = Some(kill.recovered_ms.unwrap_or_default().max(took_ms));
        let who = last.unwrap_or_else(|| "nobody".to_owned());
        match by.iter_mut().find(|(known, ..)| *known == who) {
            Some((_, count, latest_ms)) => (*count, *latest_ms) = (*count + 1, (*latest_ms).max(took_ms)),
            None => by.push((who, 1, took_ms)),
        }
    }
    by.sort_by_key(|(_, _, took_ms)| *took_ms);
    let line = |(who, count, took_ms): (String, usize, i64)| {
        let text = format!("  {who} has recovered {count} of them {:.2} s after the kill", seconds(took_ms));
        (kill.at_ms + took_ms, text)
    };
    Ok(by.into_iter().map(line).collect())
}

fn settles(event: &Event, lost_attempt: u32, token: i64) -> bool {
    match event {
        Event::Retried { attempt, .. } | Event::Lost { attempt, .. } | Event::Failed { attempt, .. } => {
            *attempt == lost_attempt
        }
        Event::Completed { fencing_token, .. } => *fencing_token == Some(token),
        Event::Cancelled { .. } => true,
        _ => false,
    }
}

fn is_fitting(head: &Head, event: &Event) -> bool {
    match head.ident.policy.delivery {
        Delivery::AtMostOnce => matches!(event, Event::Lost { .. }),
        Delivery::AtLeastOnce => matches!(event, Event::Retried { .. }),
    }
}

/// Tells what the ledgers say, and shows the log of one call of each kind.
async fn tell(judged: &Judgement, cast: &Cast, log: &Log, story: &Story) -> Result<(), Failure> {
    let recovered = log.executions(&[State::Completed]).await?.into_iter().find(|head| head.attempt > 1);
    for head in recovered.iter().chain(judged.unknown.first().map(|unknown| &unknown.head)) {
        let (delivery, id) = (head.ident.policy.delivery.as_str(), head.id());
        story.print(&format!("\n  the log of {id} ({delivery}):"))?;
        for record in log.events(id).await? {
            let words = log::words(&record.event, |worker| cast.name(worker));
            story.print(&format!("  {:>4}  {words}", record.seq))?;
        }
    }
    let took = judged.unknown_with_effect();
    story.print(&format!(
        "\n  the ledgers of the tools: {} calls stand there, {} at_least_once calls more than once;\n  \
         of the {} unknown calls {} took effect and {} did not: nobody but the tool can know, and none was run again",
        judged.written,
        judged.run_again,
        judged.unknown.len(),
        took,
        judged.unknown.len() - took,
    ))
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}

impl Kill {
    fn facts(&self) -> serde_json::Value {
        json!({
            "victim": self.victim,
            "pid": self.pid,
            "held": self.held,
            "run_again": self.again,
            "unknown": self.unknown,
            "settled_after_ms": self.settled_ms,
            "recovered_after_ms": self.recovered_ms,
        })
    }
}
