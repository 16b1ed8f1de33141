//! Configurations of clients that name this program: whether what they start is still there, of this version, and whether
//! what `install` put behind `wrap` still is. Reads their files and asks a program for its version; changes nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use clap::ValueEnum;
use tokio::process::Command;

use super::check::Check;
use super::command;
use crate::cli::failure::Failure;
use crate::cli::install::client::{Client, System};
use crate::cli::install::document::Node;
use crate::cli::install::entry::Entry;
use crate::cli::install::record::{Record, Records};
use crate::cli::install::surroundings;
use crate::cli::install::target::{self, Found, Target};

/// A program that prints its version takes no longer.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks the clients that are there; with `only` that one, which must be there, and the servers that it starts without us.
pub async fn check(only: Option<Client>, data_dir: &Path) -> Result<Vec<Check>, Failure> {
    let around = match surroundings() {
        Ok(around) => around,
        // Without a user's folder there are no clients of this user.
        Err(_) if only.is_none() => return Ok(Vec::new()),
        Err(failure) => return Err(failure),
    };
    let records = Records::of(data_dir);
    let mut run = Run { only, checks: Vec::new(), versions: BTreeMap::new() };
    for client in only.map_or(Client::value_variants().to_vec(), |client| vec![client]) {
        let mut found_any = false;
        for place in client.places(&around) {
            let check = Check::of("client", Some(client.title()));
            match Target::read(&place) {
                Ok(None) => {}
                Ok(Some(target)) => {
                    found_any = true;
                    match target.entries(client) {
                        Ok(entries) => {
                            run.target(client, &target, (&entries, records.read(&target.original.path))).await
                        }
                        Err(failure) => run.checks.push(unreadable(check, failure)),
                    }
                }
                Err(failure) => run.checks.push(unreadable(check, failure)),
            }
        }
        if only.is_some() && !found_any && run.checks.is_empty() {
            let failure = target::not_found(client, &client.places(&around));
            run.checks.push(unreadable(Check::of("client", Some(client.title())), failure));
        }
    }
    Ok(run.checks)
}

fn unreadable(check: Check, failure: Failure) -> Check {
    check.fail(failure.error, failure.next.unwrap_or_else(|| "correct the file".into()))
}

struct Run {
    only: Option<Client>,
    checks: Vec<Check>,
    /// What programs said of themselves.
    versions: BTreeMap<String, Option<String>>,
}

impl Run {
    async fn target(&mut self, client: Client, target: &Target, (entries, record): (&[Found], Option<Record>)) {
        for found in entries {
            let subject = format!("{}: {}", client.title(), found.shown());
            let check = Check::of("client", Some(&subject));
            let node = target.document.root.as_ref().and_then(|root| root.at(&found.at));
            let wrapped_once = record.as_ref().is_some_and(|record| record.change(&found.at).is_some());
            match (&found.entry, node) {
                (Entry::Wrapped { program, .. } | Entry::Connected { program }, Some(node)) => {
                    let check = self.ours(check, client, (program, node)).await;
                    self.checks.push(check);
                }
                (Entry::Stdio { .. } | Entry::Http { .. }, _) if wrapped_once => {
                    let next = format!("durable-mcp install {} --server {}", client.name(), found.name());
                    self.checks.push(check.warn("it was put behind durable-mcp and is not any more", next));
                }
                (Entry::Stdio { .. } | Entry::Http { .. }, _) if self.only.is_some() => {
                    let next = format!("durable-mcp install {} --server {}", client.name(), found.name());
                    self.checks.push(check.warn("it is not behind durable-mcp: its calls are not durable", next));
                }
                _ => {}
            }
        }
    }

    async fn ours(&mut self, check: Check, client: Client, (program, node): (&str, &Node)) -> Check {
        let path = path_of(client, node);
        let again = format!("`durable-mcp install {}` writes it anew", client.name());
        // What the client fills in is known to the client alone.
        if program.contains("${") {
            return Check { message: "its program is filled in by the client".into(), ..check };
        }
        let found = match command::find(Path::new(program), &path) {
            Ok(found) => found,
            Err(obstacle) => return check.fail(format!("it starts {program}: {}", obstacle.told(program).0), again),
        };
        let args: Vec<&str> =
            node.get("args").map(Node::items).unwrap_or_default().iter().filter_map(Node::text).collect();
        if let Some(inner) = args.iter().skip_while(|word| **word != "--").nth(1).filter(|inner| !inner.contains("${"))
            && let Err(obstacle) = command::find(Path::new(inner), &path)
        {
            let (what, next) = obstacle.told(inner);
            return check.fail(format!("it wraps {inner}: {what}, in the PATH that the client gives"), next);
        }
        let shown = found.display().to_string();
        if !self.versions.contains_key(&shown) {
            let version = version_of(&found).await;
            self.versions.insert(shown.clone(), version);
        }
        let own = env!("CARGO_PKG_VERSION");
        match self.versions[&shown].as_deref() {
            Some(version) if version == own => Check { message: format!("{shown} {own}"), ..check },
            Some(version) => check.warn(format!("it starts {shown} of version {version}, this one is {own}"), again),
            None => check.fail(format!("{shown} does not say its version: it is no durable-mcp that works"), again),
        }
    }
}

/// `PATH` as the client gives it to this entry.
fn path_of(client: Client, node: &Node) -> String {
    let set = node.get("env").and_then(|env| env.get("PATH")).and_then(Node::text).filter(|path| !path.contains("${"));
    match (set, client) {
        (Some(path), _) => path.to_owned(),
        // It is started in a shell.
        (None, Client::ClaudeCode) => std::env::var("PATH").unwrap_or_default(),
        (None, _) => Client::least_path(System::here()).to_owned(),
    }
}

async fn version_of(program: &Path) -> Option<String> {
    let mut asking = Command::new(program);
    asking.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let said = tokio::time::timeout(VERSION_TIMEOUT, asking.output()).await.ok()?.ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    Some(text.strip_prefix("durable-mcp ")?.trim().to_owned())
}
