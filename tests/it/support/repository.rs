//! The files of this repository as data, for tests of what is shipped beside the program. Changes none of them.

use std::path::{Path, PathBuf};

use clap::Parser;
use durable_mcp::cli::args::Cli;
use serde_json::Value;

/// The folder of the manifest.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file's text.
pub fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The documents of a YAML text, with anchors and merge keys followed.
pub fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("no YAML: {error}\n{text}"))
}

/// The files below a folder whose names end so.
pub fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&root().join(folder), &mut |path| {
        if path.to_str().is_some_and(|name| name.ends_with(end)) {
            found.push(path.to_owned());
        }
    });
    found.sort();
    found
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if ["node_modules", ".venv", "target", "dist"].iter().any(|left_out| name == *left_out) {
            continue;
        }
        let path = entry.path();
        if path.is_dir() { walk(&path, visit) } else { visit(&path) }
    }
}

/// The version of the program.
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Why the program does not take these arguments, if it does not.
pub fn refuses(arguments: &[String]) -> Option<String> {
    let words = std::iter::once("durable-mcp").chain(arguments.iter().map(String::as_str));
    match Cli::try_parse_from(words) {
        Ok(_) => None,
        Err(error) if !error.use_stderr() => None,
        Err(error) => Some(format!("durable-mcp {}: {error}", arguments.join(" "))),
    }
}

/// The strings of a list; anything else in it is told as what it is.
pub fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
}

/// `25s` or `2m` in milliseconds.
pub fn millis(text: &str) -> i64 {
    durable_mcp::config::units::Millis::parse(text).unwrap_or_else(|| panic!("{text:?} is no duration")).0
}

/// `server.shutdown_grace` and `server.listen` of a configuration file of ours.
pub fn grace_and_port(path: &str) -> (i64, u64) {
    let table: toml::Table = text(path).parse().unwrap();
    let server = table["server"].as_table().unwrap();
    let grace = millis(server["shutdown_grace"].as_str().unwrap());
    let port = server["listen"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
    (grace, port)
}

/// A file without a fault, and changes of which each breaks one rule, which says so.
#[track_caller]
pub fn assert_found(good: &str, faults_of: impl Fn(&str) -> Vec<String>, planted: &[(&str, &str, &str)]) {
    assert_eq!(faults_of(good), Vec::<String>::new(), "the file itself");
    for (from, to, says) in planted {
        assert!(good.contains(from), "nothing to plant a fault in: {from}");
        let faults = faults_of(&good.replacen(from, to, 1));
        assert!(
            faults.iter().any(|fault| fault.contains(says)),
            "{from:?} -> {to:?}: {faults:?} say nothing of {says:?}"
        );
    }
}
