//! A stdio server directly and behind `wrap`: both are up all the time, and are measured in turn, so that a machine that
//! gets slower is slow for both. Each round has its own figures.

use std::ffi::OsString;

use super::closed_loop::{self, Client};
use super::machine::Machine;
use super::plan::Plan;
use super::report::{Header, Round, WrapReport};
use super::stdio::StdioClient;
use super::tally::{Measured, Window};
use super::{Ways, era_name, refuse_fault};
use crate::cli::args::BenchArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stage::caller::ToolCall;
use crate::cli::stage::folder::Folder;
use crate::cli::stage::process::{Process, Program, own_program};
use crate::cli::stage::program::Site;
use crate::model::revision::Era;

const ROUNDS: u32 = 2;
/// The tool that most examples have.
const TOOL: &str = "echo";
/// More slots than clients; the one server runs as much at once as we ask of it.
const CONFIG: &str = "[worker]\nslots = 4096\n[defaults]\nconcurrency = 4096\n[log]\nlevel = \"warn\"\n";

/// Runs the rounds and prints them.
pub async fn run(args: &BenchArgs, folder: &Folder, (out, stop): Ways<'_>) -> Result<Exit, Failure> {
    let plan = Plan::of(args, TOOL, Era::Legacy)?;
    let site = Site::new(folder.path(), CONFIG)?;
    let wrap =
        [own_program()?.into_os_string()].into_iter().chain(["wrap", "--name", "bench", "--"].map(OsString::from));
    let (_direct, direct) = start(&site, "direct", args.command.clone(), &plan).await?;
    let (_wrapped, wrapped) = start(&site, "wrap", wrap.chain(args.command.clone()).collect(), &plan).await?;
    let mut machine = Machine::before(folder.path(), args.concurrency as usize).await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let direct = measure(args, &plan, &direct, stop).await;
        let wrap = measure(args, &plan, &wrapped, stop).await;
        let ratio = wrap.calls_per_s / direct.calls_per_s.max(1e-9);
        rounds.push(Round { direct, wrap, ratio });
        if stop.is_cancelled() {
            break;
        }
    }
    machine.after(folder.path()).await?;
    let header = Header {
        target: args.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
        tool: plan.tool.clone(),
        era: era_name(plan.era),
        clients: args.concurrency as usize,
        warmup_s: args.warmup.0 as f64 / 1_000.0,
        interrupted: stop.is_cancelled(),
    };
    WrapReport { bench: "wrap", header, rounds, machine }.print(out, args.json)
}

/// Each way gets its part of the time in each round.
async fn measure(
    args: &BenchArgs,
    plan: &Plan,
    client: &StdioClient,
    stop: &tokio_util::sync::CancellationToken,
) -> Measured {
    let window = Window::after(args.warmup.duration() / ROUNDS, args.duration.duration() / (2 * ROUNDS));
    // Keys of another round are no new keys.
    let plan = Plan { run: hex::encode(&crate::engine::entropy()[..4]), ..plan.clone() };
    let clients = (0..args.concurrency).map(|_| Client::Stdio(client.clone())).collect();
    closed_loop::measure(&plan, clients, window, stop).await
}

/// Starts a server and tries one call.
async fn start(site: &Site, log: &str, argv: Vec<OsString>, plan: &Plan) -> Result<(Process, StdioClient), Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(Exit::Failure, format!("the working directory is not there: {error}")))?;
    let program =
        Program { log: log.to_owned(), folder: site.folder(), cwd: Some(&here), argv, env: site.env(), piped: true };
    let mut process = Process::start(program)?;
    let pipes = process.take_pipes().ok_or_else(|| Failure::new(Exit::Failure, "the server has no pipes"))?;
    let said = |failure: Failure, process: &Process| {
        let words = process.last_words();
        if words.is_empty() { failure } else { failure.next(format!("{log} said last: {words}")) }
    };
    let client = StdioClient::connect(pipes, plan.era).await.map_err(|failure| said(failure, &process))?;
    let tools = client.tools().await?;
    if !tools.contains(&plan.tool) {
        return Err(Failure::usage(format!("the server has no tool {}", plan.tool))
            .next(format!("name one of these with --tool: {}", crate::cli::output::printable(&tools.join(", ")))));
    }
    let key = plan.key(usize::MAX, 0);
    let arguments = plan.arguments_of(&key);
    let call = ToolCall { tool: &plan.tool, arguments: &arguments, key: Some(&key), wait_ms: None };
    let told = client.call(&call).await.map_err(|error| Failure::new(Exit::Failure, error.to_string()))?;
    refuse_fault(plan, plan.fault(&key, &told, None), &told.text)?;
    Ok((process, client))
}
