//! `demo stack`: a server, two workers and a scheduler on one store, callers that never pause, and a killer that ends one
//! process after the other, until it is stopped; then everything settles and is judged.

use std::time::{Duration, Instant};

use serde_json::json;

use super::super::args::StackArgs;
use super::super::failure::{Exit, Failure};
use super::super::stage::folder::Folder;
use super::super::stage::program::{Launch, Running};
use super::cast::{Cast, place, with_pid};
use super::crash::CONFIG;
use super::judge;
use super::load::Load;
use super::log::Log;
use super::story::Story;
use super::{PATIENCE, set_up};
use crate::model::execution::State;
use crate::serve::signals::Stop;

const CALLERS: usize = 8;
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// How long a killed process stays away.
const AWAY: Duration = Duration::from_millis(500);

/// Plays until `stop`, or for the time that was asked for.
pub async fn play(folder: &Folder, story: Story, args: &StackArgs, stop: &Stop) -> Result<Exit, Failure> {
    let mut cast = set_up(folder, CONFIG)?;
    let mut processes = Vec::new();
    let server = Launch { listen: args.listen.to_string(), ..Launch::new("server", "mcp") };
    for launch in [
        Launch::new("worker A", "worker"),
        server,
        Launch::new("worker B", "worker"),
        Launch::new("scheduler", "scheduler"),
    ] {
        processes.push(cast.start(launch).await?);
    }
    let log = cast.open_log().await?;
    let everybody: Vec<String> = processes.iter().map(with_pid).collect();
    story.say(format!("one SQLite store shared by {}", everybody.join(", ")))?;
    let server = &processes[SERVER];
    story.say(format!("the server listens on {}; Ctrl-C ends it all and counts", server.url))?;
    let load = Load::start(&place(server)?, CALLERS);

    let kills = run(&mut cast, &mut processes, (&load, &log, &story), (args, stop)).await?;
    story.say("the callers leave; what still runs is waited for")?;
    let cuts = load.cuts();
    let answered = load.end().await;
    let open = [State::Ready, State::Scheduled, State::Leased, State::Waiting];
    log.until(PATIENCE, "not everything was settled", async || {
        Ok(log.executions(&open).await?.is_empty().then_some(()))
    })
    .await?;
    let judged = judge::judge(&cast.site, &log, &answered, &story).await?;
    log.close().await;
    let took = judged.unknown_with_effect();
    story.print(&format!(
        "\n  {kills} kills cut {cuts} connections; {} at_least_once calls ran more than once; of {} unknown calls {took} took effect",
        judged.run_again,
        judged.unknown.len(),
    ))?;
    let facts =
        json!({ "kills": kills, "cuts": cuts, "run_again": judged.run_again, "unknown": judged.unknown_facts() });
    story.end(judged.counts, "whatever was killed, nothing was lost and nothing ran twice that may not", facts)
}

/// Where the server stands among the processes.
const SERVER: usize = 1;

/// Kills in turn and tells how it stands each second; returns the number of kills.
async fn run(
    cast: &mut Cast,
    processes: &mut Vec<Running>,
    (load, log, story): (&Load, &Log, &Story),
    (args, stop): (&StackArgs, &Stop),
) -> Result<usize, Failure> {
    let chaos = (args.chaos.0 > 0).then(|| args.chaos.duration());
    let end = args.duration.map(|duration| Instant::now() + duration.duration());
    let (mut kills, mut before, mut looked_at) = (0, 0, Instant::now());
    let mut next_kill = chaos.map(|chaos| Instant::now() + chaos);
    loop {
        let (started, answered) = load.so_far();
        let totals = log.totals().await?;
        let of = |state: State| totals.get(&state).copied().unwrap_or_default();
        story.say(format!(
            "calls {started:>6} ({:>3}/s)  completed {:>6}  running {:>2}  to run again {:>2}  unknown {:>3}  kills {kills}",
            (answered.saturating_sub(before) as f64 / looked_at.elapsed().as_secs_f64().max(0.001)).round(),
            of(State::Completed),
            of(State::Leased),
            of(State::Scheduled) + of(State::Ready),
            of(State::Unknown),
        ))?;
        (before, looked_at) = (answered, Instant::now());
        let status = Instant::now() + STATUS_EVERY;
        let wake = [Some(status), next_kill, end].into_iter().flatten().min().unwrap_or(status);
        tokio::select! {
            () = stop.soon.cancelled() => return Ok(kills),
            () = tokio::time::sleep_until(wake.into()) => {}
        }
        if end.is_some_and(|end| end <= Instant::now()) {
            return Ok(kills);
        }
        if let Some(chaos) = chaos
            && next_kill.is_some_and(|at| at <= Instant::now())
        {
            let turn = kills % processes.len();
            let mut victim = processes.remove(turn);
            let who = with_pid(&victim);
            victim.process.kill();
            story.say(format!("kill -9 {who}"))?;
            tokio::time::sleep(AWAY).await;
            let successor = cast.restart(victim).await?;
            story.say(format!("  {} is started in its place", with_pid(&successor)))?;
            processes.insert(turn, successor);
            kills += 1;
            next_kill = Some(Instant::now() + chaos);
        }
    }
}
