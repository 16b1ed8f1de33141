//! `bench`: a closed loop of checked calls against a server over HTTP, or a stdio server directly and behind `wrap`, with
//! the limits of the machine from the same run. Compares with nothing that it did not measure itself.

mod closed_loop;
mod machine;
mod plan;
mod report;
mod side_by_side;
mod stdio;
mod tally;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::address::Address;
use super::args::BenchArgs;
use super::client::TOKEN_VARIABLE;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::stage::caller::{Caller, Error, Place, ToolCall};
use super::stage::folder::Folder;
use super::stage::program::{Launch, Running, Site};
use crate::model::revision::Era;
use crate::serve::signals;
use closed_loop::Client;
use machine::Machine;
use plan::{Fault, Plan};
pub use report::BenchView;
use report::{Header, HttpReport};
use tally::Window;

/// The configuration of a server of our own: more slots than clients, nothing else differs from the defaults.
const CONFIG: &str = "[worker]\nslots = 4096\n[log]\nlevel = \"warn\"\n";
/// The tool of our own server.
const DEMO_TOOL: &str = "demo_echo";
const NAME: &str = "durable-mcp-bench";

/// Runs the command. Ctrl-C ends the measurement and prints what there is.
pub async fn run(args: BenchArgs, out: Output) -> Result<Exit, Failure> {
    if args.duration.0 < 1 {
        return Err(Failure::usage("--duration is 0").next("give it a second or more"));
    }
    let stop = signals::follow()
        .map_err(|error| Failure::new(Exit::Failure, format!("signals can not be followed: {error}")))?;
    let folder = Folder::make("bench", false)?;
    let measured = async {
        match args.command.is_empty() {
            true => over_http(&args, &folder, (&out, &stop.soon)).await,
            false => side_by_side::run(&args, &folder, (&out, &stop.soon)).await,
        }
    };
    tokio::select! {
        // What was measured until then is printed, and the report says that it was ended early.
        ended = measured => if stop.soon.is_cancelled() { Ok(Exit::Interrupted) } else { ended },
        () = stop.now.cancelled() => Ok(Exit::Interrupted),
    }
}

type Ways<'a> = (&'a Output, &'a tokio_util::sync::CancellationToken);

async fn over_http(args: &BenchArgs, folder: &Folder, (out, stop): Ways<'_>) -> Result<Exit, Failure> {
    let plan = Plan::of(args, DEMO_TOOL, Era::Modern)?;
    let clients = args.concurrency as usize;
    let (own, address) = match &args.url {
        Some(url) => (None, Address::parse(url)?),
        None => {
            let server = own_server(folder).await?;
            let address = server.address()?;
            (Some(server), address)
        }
    };
    let bearer = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
    let place = Arc::new(Place::new(&address, bearer)?);
    try_once(&place, &plan).await?;
    let mut machine = Machine::before(folder.path(), clients).await?;
    let caller = |n: usize| Client::Http(Box::new(Caller::new(place.clone(), plan.era, &format!("{NAME}-{n}"))));
    let window = Window::after(args.warmup.duration(), args.duration.duration());
    let measured = closed_loop::measure(&plan, (0..clients).map(caller).collect(), window, stop).await;
    machine.after(folder.path()).await?;
    let header = Header {
        target: match own {
            Some(_) => "its own server".to_owned(),
            None => address.endpoint.clone(),
        },
        tool: plan.tool.clone(),
        era: era_name(plan.era),
        clients,
        warmup_s: args.warmup.0 as f64 / 1_000.0,
        interrupted: stop.is_cancelled(),
    };
    drop(own);
    HttpReport { bench: "http", header, measured, machine }.print(out, args.json)
}

async fn own_server(folder: &Folder) -> Result<Running, Failure> {
    let site = Site::new(folder.path(), CONFIG)?;
    site.start(Launch::new("server", "mcp,worker,scheduler")).await
}

/// One call before anything is measured: what can not work is said at once.
async fn try_once(place: &Arc<Place>, plan: &Plan) -> Result<(), Failure> {
    let key = plan.key(usize::MAX, 0);
    let arguments = plan.arguments_of(&key);
    let call = ToolCall { tool: &plan.tool, arguments: &arguments, key: Some(&key), wait_ms: None };
    let told = Caller::new(place.clone(), plan.era, NAME).call(&call).await;
    let told = told.map_err(|error| match &error {
        Error::Status { status: 401 | 403, .. } => Failure::new(Exit::Auth, error.to_string())
            .next(format!("put a token of this server into {TOKEN_VARIABLE}")),
        Error::Wire(_) => Failure::new(Exit::Unreachable, format!("{}: {error}", place.authority()))
            .next("start a server with `durable-mcp serve`, or leave out --url"),
        _ => Failure::new(Exit::Failure, format!("{}: {error}", plan.tool))
            .next("name a tool of that server with --tool, and its arguments with --args"),
    })?;
    refuse_fault(plan, plan.fault(&key, &told, None), &told.text)
}

/// An answer that is no good now will not be better a thousand times.
fn refuse_fault(plan: &Plan, fault: Option<Fault>, text: &str) -> Result<(), Failure> {
    let tool = &plan.tool;
    let text: String = super::output::printable(text).chars().take(200).collect();
    match fault {
        None => Ok(()),
        Some(Fault::Wrong(what)) => Err(Failure::new(Exit::Failure, format!("{tool}: {what}: {text}"))),
        Some(Fault::Error(kind)) => Err(Failure::new(Exit::ToolError, format!("{tool}: {kind}: {text}"))
            .next("give arguments with which it works: --args '{…}'")),
    }
}

fn era_name(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}
