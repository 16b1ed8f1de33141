//! Entries there and back: every fixture of a client's configuration is wrapped and unwrapped to its very bytes.

mod changed_since;
mod entries;
mod places;
mod shown;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::client::{Client, Place, Scope, Surroundings, System};
use super::document::Document;
use super::file::Original;
use super::plan::{Plan, Planner};
use super::record::Record;
use super::target::{Found, Target};

/// This program, as entries name it.
const PROGRAM: &str = "/opt/durable/durable-mcp";

fn around() -> Surroundings {
    Surroundings {
        system: System::Linux,
        home: PathBuf::from("/home/ada"),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        folder: PathBuf::from("/home/ada/project"),
    }
}

fn planner(client: Client, around: &Surroundings) -> Planner<'_> {
    Planner { client, around, program: PROGRAM.to_owned(), data_dir: None, named: true, taken: Vec::new() }
}

fn target(text: &str) -> Target {
    let path = PathBuf::from("/home/ada/client.json");
    let place = Place { path: path.clone(), scope: Scope::User };
    let document = Document::read(text.as_bytes()).unwrap();
    Target { place, original: Original { path, bytes: Some(text.as_bytes().to_vec()) }, document }
}

/// All entries of a text behind `wrap`, with what is known of it then.
fn installed(client: Client, text: &str) -> Plan {
    let (around, target) = (around(), target(text));
    let found = target.entries(client).unwrap();
    planner(client, &around).install(&target, &found, Record::default()).unwrap()
}

/// What `uninstall` makes of a text.
fn uninstalled(client: Client, text: &str, record: Record) -> Plan {
    let (around, target) = (around(), target(text));
    let found: Vec<Found> = target.entries(client).unwrap();
    planner(client, &around).uninstall(&target, &found, record).unwrap()
}

fn text_of(plan: &Plan) -> String {
    String::from_utf8(plan.next.as_ref().expect("it changes").bytes()).unwrap()
}

/// The fixtures, with the client that each belongs to.
fn fixtures() -> Vec<(Client, PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/clients");
    let mut found = Vec::new();
    for client in [Client::ClaudeDesktop, Client::ClaudeCode, Client::Cursor, Client::Vscode] {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder.join(client.name())).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        found.extend(files.into_iter().map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (client, path, text)
        }));
    }
    assert!(found.len() >= 20, "only {} fixtures", found.len());
    found
}
