//! The list of commands in `docs/cli.md` is made from the command line's types; this test compares the two.
//! `BLESS=1 cargo nextest run the_commands_in_docs_are_those_of_the_program` writes the file anew.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use crate::cli::args::Cli;
use crate::cli::failure::Exit;
use crate::cli::schemas::file_of;
use crate::config::OTHER_VARIABLES;

const START: &str = "<!-- commands: made from the program -->\n";
const END: &str = "<!-- end of commands -->\n";

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli.md")
}

/// Every command that does something, with purpose, form, example and the schema of its output.
fn commands() -> String {
    let mut page = String::new();
    walk(&Cli::command(), "", &mut page);
    page
}

fn walk(command: &clap::Command, words: &str, page: &mut String) {
    let leaf = command.get_subcommands().next().is_none();
    if leaf {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let usage = command.clone().bin_name(format!("durable-mcp {words}")).render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").split_whitespace().collect::<Vec<_>>().join(" ");
        write!(page, "\n### `{words}`\n\n{about}.\n\n```text\n{usage}\n```\n").unwrap();
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = help.lines().map(str::trim).filter(|line| line.starts_with("durable-mcp ")).collect();
        assert!(!examples.is_empty(), "{words} has an example");
        write!(page, "\n```sh\n{}\n```\n", examples.join("\n")).unwrap();
        if command.get_arguments().any(|argument| argument.get_long() == Some("json")) {
            let file = file_of(words);
            write!(page, "\n`--json`: [schemas/{file}](schemas/{file}).\n").unwrap();
        }
    }
    for inner in command.get_subcommands() {
        walk(inner, format!("{words} {}", inner.get_name()).trim(), page);
    }
}

#[test]
fn the_commands_in_docs_are_those_of_the_program() {
    let written = std::fs::read_to_string(document()).unwrap();
    let (before, rest) = written.split_once(START).expect("the start mark");
    let (_, after) = rest.split_once(END).expect("the end mark");
    let wanted = format!("{before}{START}{}\n{END}{after}", commands());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(document(), &wanted).unwrap();
    } else {
        assert!(written == wanted, "docs/cli.md is behind the program; the head of this file says how to renew it");
    }
}

#[test]
fn the_page_names_every_exit_code_and_variable() {
    let written = std::fs::read_to_string(document()).unwrap();
    use Exit::{Auth, Conflict, Failure, Interrupted, NotFound, Ok, Running, ToolError, Unknown, Unreachable, Usage};
    for exit in [Ok, Failure, Usage, NotFound, Auth, ToolError, Conflict, Unreachable, Running, Unknown, Interrupted] {
        assert!(written.contains(&format!("| {} | ", exit as u8)), "{exit:?}");
    }
    for name in
        OTHER_VARIABLES.iter().filter(|name| !["DURABLE_MCP_CRASH_AT", "DURABLE_MCP_CLOCK_SHIFT"].contains(name))
    {
        assert!(written.contains(&format!("`{name}`")), "{name}");
    }
}
