//! The committed schemas are those of the types that are printed, and every command with `--json` has one.
//! `BLESS=1 cargo nextest run the_schemas_in_docs_are_those_of_the_types` writes them anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use crate::cli::args::Cli;
use crate::cli::schemas::{ALIKE, OUTPUTS, file_of};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas")
}

/// The words of every command that has `--json`.
fn commands_with_json() -> BTreeSet<String> {
    fn walk(command: &clap::Command, words: &str, found: &mut BTreeSet<String>) {
        if command.get_arguments().any(|argument| argument.get_long() == Some("json")) {
            found.insert(words.to_owned());
        }
        for inner in command.get_subcommands() {
            walk(inner, format!("{words} {}", inner.get_name()).trim(), found);
        }
    }
    let mut found = BTreeSet::new();
    walk(&Cli::command(), "", &mut found);
    found
}

#[test]
fn every_command_with_json_has_a_schema() {
    let described: BTreeSet<String> = OUTPUTS
        .iter()
        .map(|output| output.command)
        .chain(ALIKE.iter().map(|(alike, _)| *alike))
        .map(str::to_owned)
        .collect();
    assert_eq!(commands_with_json(), described, "src/cli/schemas.rs has a line for each");
}

#[test]
fn the_schemas_in_docs_are_those_of_the_types() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut known = BTreeSet::new();
    for output in OUTPUTS {
        let path = folder().join(output.file());
        let wanted = format!("{}\n", serde_json::to_string_pretty(&output.schema()).unwrap());
        if bless {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, &wanted).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == wanted, "{}: the head of this file says how to renew it", path.display());
        jsonschema::validator_for(&output.schema()).unwrap();
        known.insert(output.file());
    }
    let there: BTreeSet<String> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(there, known, "no schema is left of a command that is gone");
    for (alike, _) in ALIKE {
        assert!(known.contains(&file_of(alike)));
    }
}
