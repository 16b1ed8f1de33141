//! Command lines, addresses and names.

use clap::{CommandFactory, Parser};

use crate::cli::address::Address;
use crate::cli::args::{Cli, Command};
use crate::cli::wrap::{Identity, store_name};

#[track_caller]
fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("durable-mcp").chain(line.split_whitespace()))
}

/// The words of a command as a shell splits them, single quotes being the only ones the README uses.
fn words(line: &str) -> Vec<String> {
    let pieces = line.split('\'').enumerate();
    let quoted =
        pieces.map(|(index, piece)| if index % 2 == 1 { piece.replace(' ', "\u{a0}") } else { piece.to_owned() });
    let joined: String = quoted.collect();
    joined.split_ascii_whitespace().map(|word| word.replace('\u{a0}', " ")).collect()
}

#[test]
fn every_command_the_readme_shows_is_one_the_program_takes() {
    let readme = include_str!("../../../README.md");
    let inline = readme.split('`').skip(1).step_by(2).filter(|code| !code.contains('\n'));
    let mut seen = 0;
    for command in inline.chain(readme.lines()).filter_map(|text| text.trim().strip_prefix("durable-mcp ")) {
        let command = command.split(" #").next().unwrap();
        let taken = Cli::try_parse_from(std::iter::once("durable-mcp".to_owned()).chain(words(command)));
        assert!(taken.is_ok(), "{command}: {}", taken.unwrap_err());
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} commands were found");
}

#[test]
fn command_lines_are_taken_or_refused() {
    Cli::command().debug_assert();
    for line in [
        "serve",
        "serve --demo --listen 127.0.0.1:0 --store sqlite:a.db --roles mcp,worker",
        "wrap -- npx -y server --flag",
        "wrap --name git-hub -- cmd --name other",
        "wrap --url https://crm.example/mcp --header Authorization:x --header b:c",
        "connect",
        "connect --url http://localhost:7400 --patience 30s --no-keys",
        "init",
        "init --from cursor --out - --keep-secrets",
        "init --from mcp.json --out a.toml --force",
        "install cursor --server a --server b --dry-run --json",
        "install vscode --all --scope project -y",
        "install claude-code --connect --url http://localhost:7400",
        "uninstall claude-desktop --config-file a.json",
        "wrap --url-env URL --header-env Authorization=TOKEN",
        "wrap --key-argument create_issue=client_request_id -- cmd",
        "call tool",
        "call tool --args - --key k --wait 5m --json --url http://localhost:1",
        "call tool --args {\"a\":-1}",
        "call tool --wait 0",
        "executions list --state ready,leased --state unknown --limit 5 --json",
        "executions show 0198 --url http://localhost:1",
        "executions events 0198",
        "executions result 0198",
        "executions list --key k --error-code lease_expired --attempts-over 1 --since 7d --until 2026-11-29T08:00:00Z --recovered",
        "executions why 0198 --json",
        "executions tail -f --from 1h --upstream github --json",
        "executions tail --after 1795989488493",
        "executions wait 0198 --timeout 5m",
        "executions cancel 0198 0199",
        "executions cancel --state ready --yes --reason x",
        "executions retry 0198 --reason x",
        "executions resolve 0198 --completed --result {\"content\":[]} --reason x",
        "executions resolve --tool t --failed --reason x --yes",
        "executions export --since 2026-11-29T08:00:00Z",
        "tools list --upstream github --json",
        "tools show github__create_issue",
        "token create --principal ci --scope call,read --scope cancel --expires-in 90d",
        "token list --json",
        "token revoke abc",
        "config check --config a.toml",
        "config show --json",
        "config schema",
    ] {
        assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
    }
    for line in [
        "",
        "nonsense",
        "serve extra",
        "wrap",
        "wrap cmd",
        "wrap --name a/b -- cmd",
        "wrap --name .. -- cmd",
        "wrap --url https://a -- cmd",
        "wrap --header a:b -- cmd",
        "wrap --key-argument x -- cmd",
        "call",
        "call tool --wait soon",
        "call tool --wait -1s",
        "executions",
        "executions list --state running",
        "executions list --limit 0",
        "executions show",
        "executions list --since soon",
        "executions list --attempts-over -1",
        "executions tail --after nonsense",
        "executions wait",
        "executions retry 0198",
        "executions retry 0198 --reason  ",
        "executions resolve 0198 --reason x",
        "executions resolve 0198 --completed --failed --reason x",
        "executions resolve 0198 --failed --result {} --reason x",
        "tools",
        "tools show",
        "token create",
        "token create --principal ci --scope everything",
        "config",
    ] {
        assert_eq!(parse(line).err().map(|error| error.exit_code()), Some(2), "{line}");
    }
}

#[test]
fn what_follows_the_two_dashes_belongs_to_the_wrapped_command() {
    let Command::Wrap(args) = parse("wrap -- cmd --name x --config y -- z").unwrap().command else { panic!() };
    assert_eq!(args.command, ["cmd", "--name", "x", "--config", "y", "--", "z"]);
    assert_eq!((args.name, args.configuration.config), (None, None));
}

#[test]
fn every_command_has_an_example_in_its_help() {
    fn visit(command: &clap::Command, path: &str) {
        let path = format!("{path} {}", command.get_name());
        match command.get_subcommands().next() {
            Some(_) => command.get_subcommands().for_each(|inner| visit(inner, &path)),
            None => {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                let named = path.split_whitespace().nth(1).unwrap_or_default();
                assert!(path.ends_with("schema") || help.contains(&format!("durable-mcp {named}")), "{path}: {help}");
            }
        }
    }
    Cli::command().get_subcommands().for_each(|command| visit(command, "durable-mcp"));
}

#[test]
fn an_address_is_a_server_or_its_endpoint() {
    for (text, base, endpoint) in [
        ("http://127.0.0.1:7400", "http://127.0.0.1:7400", "http://127.0.0.1:7400/mcp"),
        ("http://localhost:7400/", "http://localhost:7400", "http://localhost:7400/mcp"),
        ("http://localhost:7400/mcp", "http://localhost:7400", "http://localhost:7400/mcp"),
        ("http://localhost:7400/mcp/acme", "http://localhost:7400", "http://localhost:7400/mcp/acme"),
        ("https://gate.example/durable", "https://gate.example/durable", "https://gate.example/durable/mcp"),
        ("https://gate.example/durable/mcp/", "https://gate.example/durable", "https://gate.example/durable/mcp"),
        ("http://[::1]:7400", "http://[::1]:7400", "http://[::1]:7400/mcp"),
    ] {
        let address = Address::parse(text).unwrap();
        assert_eq!((address.base.as_str(), address.endpoint.as_str()), (base, endpoint), "{text}");
    }
    for text in ["", "localhost:7400", "ftp://a", "http://user:secret@a", "http://a/?x=secret", "http://", "/mcp"] {
        let failure = Address::parse(text).unwrap_err();
        assert_eq!(failure.exit, 2, "{text}");
        assert!(!failure.to_string().contains("secret"), "{failure}");
    }
}

#[test]
fn a_token_stays_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("servers")).unwrap();
    std::fs::write(folder.path().join("servers/127.0.0.1_7400.token"), "t\n").unwrap();
    for (url, found) in [
        ("http://127.0.0.1:7400", true),
        ("http://localhost:7400/mcp", true),
        ("http://127.0.0.1:7401", false),
        ("http://gate.example:7400", false),
    ] {
        assert_eq!(Address::parse(url).unwrap().local_token(folder.path()).is_some(), found, "{url}");
    }
}

fn identity<'a>(words: &[&str], folder: &str, env: &[(&str, &str)]) -> Identity<'a> {
    Identity {
        salt: "salt",
        words: words.iter().map(|word| word.to_string()).collect(),
        folder: folder.into(),
        env: env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
    }
}

#[test]
fn a_wrap_finds_its_store_again_and_another_account_does_not() {
    let name = store_name(&identity(&["npx", "-y", "server"], "/srv/a", &[("GITHUB_TOKEN", "one"), ("LANG", "C")]));
    assert!(name.starts_with("npx-") && name.len() == 4 + 12, "{name}");
    let again = identity(
        &["npx", "-y", "server"],
        "/srv/a",
        &[("LANG", "de"), ("SSH_AUTH_SOCK", "7"), ("GITHUB_TOKEN", "one")],
    );
    assert_eq!(store_name(&again), name);
    for other in [
        identity(&["npx", "-y", "server"], "/srv/a", &[("GITHUB_TOKEN", "two")]),
        identity(&["npx", "-y", "server"], "/srv/b", &[("GITHUB_TOKEN", "one")]),
        identity(&["npx", "-yserver"], "/srv/a", &[("GITHUB_TOKEN", "one")]),
        identity(&["npx", "-y", "server"], "/srv/a", &[("GITHUB_TOKEN", "one"), ("DB", "pg://u:p@h/d")]),
        Identity { salt: "other", ..identity(&["npx", "-y", "server"], "/srv/a", &[("GITHUB_TOKEN", "one")]) },
    ] {
        assert_ne!(store_name(&other), name, "{:?} {:?}", other.words, other.env);
    }
}

#[test]
fn the_name_of_a_store_is_readable_and_no_path() {
    for (word, start) in [
        ("/usr/bin/my.server", "my-server-"),
        ("..", "server-"),
        ("", "server-"),
        ("https://user:secret@crm.example:8443/mcp?key=secret", "crm-example-8443-"),
        ("ünï", "n-"),
    ] {
        let name = store_name(&identity(&[word], "/", &[]));
        assert!(name.starts_with(start), "{word}: {name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'), "{name}");
    }
}
