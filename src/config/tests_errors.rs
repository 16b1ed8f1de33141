//! What is wrong with a bad configuration, as the exact line that people read.

use super::tests::{Folder, environment};
use super::*;

/// Loads the text and compares its errors, without the name of the file, line by line.
fn check(name: &str, content: &str, wanted: &[&str]) {
    let folder = Folder::with(&[(name, content)]);
    let errors = match folder.load(name, &[]) {
        Ok(_) => panic!("passes: {content}"),
        Err(errors) => errors,
    };
    let file = folder.path(name).display().to_string();
    let lines: Vec<String> = errors
        .iter()
        .map(|error| {
            let line = error.to_string();
            assert!(!line.contains('\n'), "{line:?}");
            line.strip_prefix(&file).map_or(line.clone(), |rest| rest.trim_start_matches(':').to_owned())
        })
        .collect();
    assert_eq!(lines, wanted, "{content}");
}

fn toml(content: &str, wanted: &[&str]) {
    check("a.toml", content, wanted);
}

fn json(content: &str, wanted: &[&str]) {
    check("a.json", content, wanted);
}

#[test]
fn probe() {
    toml("[server]\nlistn = \"x\"\n", &[]);
}
