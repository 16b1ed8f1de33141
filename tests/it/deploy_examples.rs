//! Every configuration that a reader may copy is taken by `config check`: the files, and the blocks of the pages. So is
//! every command line that the deployment's files and docs/operating.md tell somebody to type.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::repository::{files, refuses, root};

/// What `config check` says of a text, with every variable set and every secret file there.
async fn said(folder: &Path, name: &str, text: &str) -> (bool, String) {
    let secrets = folder.join("secrets");
    std::fs::create_dir_all(&secrets).unwrap();
    let mut command = tokio::process::Command::new(crate::support::program_binary());
    command.env_clear().env("HOME", folder).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut text = text.replace("/run/secrets", secrets.to_str().unwrap());
    for variable in text.split("${").skip(1).filter_map(|rest| rest.split('}').next()) {
        match variable.strip_prefix("file:") {
            Some(path) => std::fs::write(path, "0123abcd\n").unwrap(),
            None => {
                let variable = variable.trim_start_matches("env:");
                if !variable.contains(":-") {
                    let is_address = variable.ends_with("_DSN");
                    command.env(variable, if is_address { "https://0123abcd@errors.example/1" } else { "0123abcd" });
                }
            }
        }
    }
    // What an example names beside itself is there for it.
    if name.ends_with("md") && text.contains("schemas/") {
        std::fs::create_dir_all(folder.join("schemas")).unwrap();
        for file in text.split('"').filter(|part| part.starts_with("schemas/")) {
            std::fs::write(folder.join(file), "{\"type\":\"object\"}").unwrap();
        }
    }
    let file = match name.ends_with("md") {
        true => folder.join("block.toml"),
        false => {
            text = text.replace("schemas/", root().join("examples/schemas/").to_str().unwrap());
            folder.join("example.toml")
        }
    };
    std::fs::write(&file, text).unwrap();
    let ran = command.args(["config", "check", "--config", file.to_str().unwrap()]).output().await.unwrap();
    (ran.status.success(), String::from_utf8_lossy(&ran.stderr).into_owned())
}

/// The fenced blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in page.lines() {
        match &mut open {
            Some(block) if line.trim_start().starts_with("```") => {
                found.push(std::mem::take(block));
                open = None;
            }
            Some(block) => *block += &format!("{line}\n"),
            None if line.trim() == format!("```{language}") => open = Some(String::new()),
            None => {}
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_and_every_block_of_the_pages_is_a_configuration_that_holds() {
    let folder = crate::support::scratch();
    let mut checked = BTreeSet::new();
    let examples = [files("examples", ".toml"), files("deploy", ".toml")].concat();
    for path in &examples {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let text = std::fs::read_to_string(path).unwrap();
        let (well, said) = said(folder.path(), &name, &text).await;
        assert!(well && !said.contains("warning"), "{name}: {said}");
        checked.insert(name);
    }
    let pages = [files("docs", ".md"), vec![root().join("README.md")]].concat();
    let mut in_pages = 0;
    for path in &pages {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        for block in blocks(&std::fs::read_to_string(path).unwrap(), "toml") {
            let (well, said) = said(folder.path(), &name, &block).await;
            assert!(well && !said.contains("warning"), "{name}: {said}\n{block}");
            in_pages += 1;
        }
    }
    assert!(checked.len() >= 5 && in_pages >= 3, "{checked:?}, {in_pages} blocks");
    // Three faults of the kinds that creep in: a word that is no setting, a value out of bounds, two settings that disagree.
    for (planted, says) in [
        ("[server]\nlisten = \"127.0.0.1:7400\"\nlisten_on = \"x\"\n", "listen_on"),
        ("[worker]\nslots = 0\n", "slots"),
        ("[server]\nlisten = \"0.0.0.0:7400\"\n", "auth.mode"),
    ] {
        let (well, said) = said(folder.path(), "planted.md", planted).await;
        assert!(!well && said.contains(says), "{planted}: {said}");
    }
}

/// The command lines of a text: lines that begin with the program, as they stand in comments and fenced blocks.
fn command_lines(text: &str) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for line in text.replace("\\\n", " ").lines() {
        let line = line.trim().trim_start_matches("# ").trim_start_matches('#').trim().trim_start_matches("$ ");
        let line = line.strip_prefix("docker compose run --rm --no-deps server-1").or(line.strip_prefix("durable-mcp"));
        let Some(rest) = line.filter(|rest| rest.starts_with(' ')) else { continue };
        let rest = rest.split(['|', '>', '#', '<']).next().unwrap_or_default().split("&&").next().unwrap_or_default();
        let words: Vec<String> =
            rest.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned()).collect();
        lines.push(words);
    }
    lines
}

#[test]
fn every_command_that_somebody_is_told_to_type_is_taken() {
    let mut told = files("deploy", "");
    told.extend(["compose.yaml", "Dockerfile", "server.yaml", "docs/operating.md"].map(|file| root().join(file)));
    let mut count = 0;
    for path in told.iter().filter(|path| !path.to_str().unwrap().contains("/secrets/")) {
        let text = std::fs::read_to_string(path).unwrap();
        for words in command_lines(&text) {
            assert_eq!(refuses(&words), None, "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= 8, "{count} commands were found");
    let planted = command_lines("# durable-mcp db migrat\n  durable-mcp token create --scopes call\n");
    assert_eq!(planted.iter().filter(|words| refuses(words).is_some()).count(), 2, "{planted:?}");
}
