//! The configured servers and commands: whether each program is there, and whether each server shakes hands in time and
//! keeps its stdout clean. Uses the legs of `worker`, so that what works here works there; every process has ended when it
//! returns.

use std::path::{Path, PathBuf};

use futures_util::future::join_all;

use super::check::Check;
use super::command::{self, Obstacle};
use crate::cli::install::client::{Client, System};
use crate::config::Loaded;
use crate::config::tools::Server;
use crate::serve::upstreams::{program, server_settings};
use crate::worker::upstream::{Heard, Status, Upstream};

/// Checks every enabled server and command, all at once. `desktop`: also with the `PATH` of a desktop client.
pub async fn check(loaded: &Loaded, desktop: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, tool) in loaded.config.tools.iter().filter(|(_, tool)| tool.enabled) {
        let argv0 = tool.command.first().map(|word| word.to_string()).unwrap_or_default();
        let path = tool.env.get("PATH").map(|path| path.expose().to_owned()).unwrap_or_else(own_path);
        checks.push(of_program(("command", name), &argv0, (loaded, &path)));
    }
    let servers = loaded.config.servers.iter().filter(|(_, server)| server.enabled);
    let servers = join_all(servers.map(|(name, server)| of_server(loaded, name, server, desktop))).await;
    checks.extend(servers.into_iter().flatten());
    checks
}

async fn of_server(loaded: &Loaded, name: &str, server: &Server, desktop: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(command) = &server.command {
        let set = server.env.get("PATH").map(|path| path.expose().to_owned());
        let path = set.clone().unwrap_or_else(own_path);
        let cwd = server.cwd.as_ref().map(|cwd| loaded.base_dir.join(PathBuf::from(cwd.to_string())));
        let mut check = of_program(("command", name), command, (loaded, &path));
        let fine = check.status == super::Status::Ok;
        if let Some(cwd) = cwd.filter(|cwd| fine && !cwd.is_dir()) {
            check = check.fail(format!("its folder {} is not there", cwd.display()), "correct `cwd`");
        } else if desktop && fine && set.is_none() {
            check = in_desktop_path(check, command);
        }
        let startable = check.status != super::Status::Fail;
        checks.push(check);
        if !startable {
            return checks;
        }
    }
    let upstream = Upstream::start(server_settings(loaded, name, server, None));
    let status = upstream.first_start().await;
    upstream.shutdown().await;
    let heard = upstream.heard();
    match server.command {
        Some(_) => {
            checks.push(of_handshake(name, &status, &heard));
            checks.push(of_stdout(name, server, &heard));
        }
        None => checks.push(of_connection(name, &status)),
    }
    checks
}

fn own_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

fn of_program((check, name): (&'static str, &str), command: &str, (loaded, path): (&Loaded, &str)) -> Check {
    let check = Check::of(check, Some(name));
    match command::find(Path::new(&program(&loaded.base_dir, command)), path) {
        Ok(found) => Check { message: found.display().to_string(), ..check },
        Err(obstacle) => {
            let (message, next) = obstacle.told(command);
            check.fail(message, next)
        }
    }
}

/// A bare name that only a shell's `PATH` finds is not found by a client that was started from a menu.
fn in_desktop_path(check: Check, command: &str) -> Check {
    let least = Client::least_path(System::here());
    match command::find(Path::new(command), least) {
        Err(Obstacle::NotInPath) => {
            let next = format!("write {} as the command, or set PATH in its env", check.message);
            check.warn(format!("`{command}` is not in the PATH that a desktop client gives ({least})"), next)
        }
        _ => check,
    }
}

fn of_handshake(name: &str, status: &Status, heard: &Heard) -> Check {
    let check = Check::of("handshake", Some(name));
    let said = heard.last_stderr_line.as_deref().map(|line| format!("; its last words on stderr: {line}"));
    let said = said.unwrap_or_default();
    match status {
        Status::Ready(facts) => Check { message: format!("it speaks {} over stdio", facts.revision.name()), ..check },
        Status::Starting => check.fail(
            format!("it does not answer within its start_timeout{said}"),
            "start it by hand and look what it waits for, or raise start_timeout",
        ),
        Status::Down { reason, .. } | Status::Failed { reason } => {
            check.fail(format!("{reason}{said}"), "start it by hand with the same arguments and environment")
        }
        Status::Stopped => check.fail("it was stopped", "run `durable-mcp doctor` again"),
    }
}

fn of_stdout(name: &str, server: &Server, heard: &Heard) -> Check {
    let check = Check::ok("stdout", Some(name), "nothing but protocol messages");
    let Some(first) = &heard.first_stray_line else { return check };
    let lines = if heard.stray_lines == 1 { "a line" } else { "lines" };
    let command = server.command.as_ref().map(|command| command.to_string()).unwrap_or_default();
    let (source, next) = source_of(first, &command);
    check.warn(
        format!("{} {lines} on its stdout that are no protocol message, first: {first:?}; {source}", heard.stray_lines),
        next,
    )
}

/// Who is known to write such a line, and how it is kept off stdout.
fn source_of(line: &str, command: &str) -> (String, String) {
    const KNOWN: [(&str, &str, &str); 7] = [
        ("npm ", "it comes from npm", "start the package's own program instead of `npm run`, or add --silent"),
        ("> ", "it comes from `npm run` or `yarn`", "start the package's own program, or add --silent"),
        ("[dotenv", "it comes from the package dotenv", "set DOTENV_CONFIG_QUIET=true in its env"),
        ("Debugger ", "it comes from Node's debugger", "take --inspect out of NODE_OPTIONS"),
        ("Requirement already", "it comes from pip", "install the package once instead of at each start"),
        ("Collecting ", "it comes from pip", "install the package once instead of at each start"),
        ("Downloading", "it comes from a package runner", "install the package once instead of at each start"),
    ];
    match KNOWN.iter().find(|(start, ..)| line.trim_start().starts_with(start)) {
        Some((_, source, next)) => ((*source).to_owned(), (*next).to_owned()),
        None => (
            format!("`{command}` or what it starts prints it"),
            "let it log to stderr: on stdout such lines break clients that are less patient than this one".into(),
        ),
    }
}

fn of_connection(name: &str, status: &Status) -> Check {
    let check = Check::of("server", Some(name));
    match status {
        Status::Ready(facts) => Check { message: format!("it speaks {} over HTTP", facts.revision.name()), ..check },
        Status::Starting => {
            check.fail("it does not answer within its start_timeout", "check its address and the network")
        }
        Status::Down { reason, .. } | Status::Failed { reason } => {
            check.fail(reason.clone(), "check its address, its credentials and the network")
        }
        Status::Stopped => check.fail("it was stopped", "run `durable-mcp doctor` again"),
    }
}
