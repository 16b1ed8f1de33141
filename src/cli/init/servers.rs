//! A client's servers as sections of a configuration. What is behind `wrap` already is taken for what it is behind it; what
//! is not understood stays in the file as a comment with the reason.

use std::path::Path;

use super::secrets::{Variables, variable};
use crate::cli::failure::Failure;
use crate::cli::install::client::{Client, Surroundings};
use crate::cli::install::document::{Kind, Node};
use crate::cli::install::entry::Entry;
use crate::cli::install::target::{Found, Target};
use crate::cli::output::printable;

/// One configuration to take servers from.
pub struct Source<'a> {
    /// The client that it is of; a file may be of any.
    pub client: Option<Client>,
    /// Where we are.
    pub around: &'a Surroundings,
    /// The configuration.
    pub target: &'a Target,
}

/// What was taken.
#[derive(Default)]
pub struct Servers {
    sections: Vec<(String, String)>,
    left: Vec<String>,
}

impl Servers {
    /// So many servers.
    pub fn count(&self) -> usize {
        self.sections.len()
    }

    /// Takes the servers of a configuration. Errors: the place for servers holds something else.
    pub fn take(&mut self, source: &Source<'_>, variables: &mut Variables) -> Result<(), Failure> {
        let client = source.client.unwrap_or_else(|| source.guess());
        for found in source.target.entries(client)? {
            // The servers of other projects are not this user's here.
            if found.project().is_some_and(|project| Path::new(project) != source.around.folder) {
                continue;
            }
            let Some(node) = source.target.document.root.as_ref().and_then(|root| root.at(&found.at)) else { continue };
            let name = plain_name(found.name());
            if self.sections.iter().any(|(taken, _)| *taken == name) {
                self.left.push(format!("{}: another server has this name", found.shown()));
                continue;
            }
            match source.section(&name, &found, node, variables) {
                Ok(section) => self.sections.push((name, section)),
                Err(why) => self.left.push(format!("{}: {why}", found.shown())),
            }
        }
        Ok(())
    }

    /// The whole file.
    pub fn file(&self, from: &str) -> String {
        let mut out = format!(
            "# The servers of {}, behind one durable-mcp.\n\
             # Check it with `durable-mcp config check --config FILE`; `durable-mcp init` alone writes a file with every setting.\n\
             # A tool is offered as NAME__tool; with `prefix = \"\"` in a server's section under its own name.\n",
            printable(from)
        );
        for (_, section) in &self.sections {
            out.push('\n');
            out.push_str(section);
        }
        if !self.left.is_empty() {
            out.push_str("\n# Left out:\n");
            self.left.iter().for_each(|line| out.push_str(&format!("# {line}\n")));
        }
        out.push_str(
            "\n# What a lost call of a tool may do is decided by its annotations; say it here where you know better:\n\
             # [servers.NAME.tools.TOOL]\n# delivery = \"at_most_once\"                  # or \"at_least_once\"\n",
        );
        out
    }
}

/// What a server is reached by.
struct Reach {
    command: Option<(String, Vec<String>)>,
    url: Option<String>,
    /// The names of variables in `env` that are headers, with the header.
    headers: Vec<(String, String)>,
}

impl Source<'_> {
    /// A file is read as that of the client that writes such files.
    fn guess(&self) -> Client {
        let root = self.target.document.root.as_ref();
        let has = |name: &str| root.is_some_and(|root| root.get(name).is_some());
        match (has("servers") && !has("mcpServers"), has("projects")) {
            (true, _) => Client::Vscode,
            (false, true) => Client::ClaudeCode,
            (false, false) => Client::Cursor,
        }
    }

    fn section(&self, name: &str, found: &Found, node: &Node, variables: &mut Variables) -> Result<String, String> {
        let reach = reach(&found.entry, node)?;
        let mut out = String::new();
        if name != found.name() {
            out.push_str(&format!("# {}\n", printable(found.name())));
        }
        out.push_str(&format!("[servers.{name}]\n"));
        if node.get("disabled").is_some_and(|value| value.kind == Kind::Boolean(true)) {
            out.push_str("enabled = false\n");
        }
        // Variables keep their names where they can: arguments come after them.
        let mut env = Vec::new();
        let mut headers = Vec::new();
        for member in node.get("headers").map_or(&[][..], Node::members) {
            let value = member.value.text().unwrap_or_default();
            headers.push((member.name.clone(), variables.header(name, &member.name, value)));
        }
        for member in node.get("env").map_or(&[][..], Node::members) {
            let value = match &member.value.kind {
                Kind::String(text) | Kind::Number(text) => text.clone(),
                Kind::Boolean(value) => value.to_string(),
                _ => continue,
            };
            let header = reach.headers.iter().find(|(variable, _)| *variable == member.name);
            match header {
                Some((_, header)) => headers.push((header.clone(), variables.header(name, header, &value))),
                // What `install` put there for `wrap` is not the server's.
                None if matches!(found.entry, Entry::Wrapped { .. }) && is_ours(&member.name) => {}
                None => env.push((member.name.clone(), variables.env(name, &member.name, &value))),
            }
        }
        if let Some((command, args)) = &reach.command {
            out.push_str(&format!("command = {}\n", self.text(name, command, variables)));
            let args = variables.args(name, args);
            if !args.is_empty() {
                let args: Vec<String> = args.iter().map(|arg| self.text(name, arg, variables)).collect();
                out.push_str(&format!("args = [{}]\n", args.join(", ")));
            }
        }
        if let Some(url) = &reach.url {
            let url = variables.url(name, url);
            out.push_str(&format!("url = {}\n", self.text(name, &url, variables)));
        }
        if let Some(cwd) = node.get("cwd").and_then(Node::text) {
            out.push_str(&format!("cwd = {}\n", self.text(name, cwd, variables)));
        }
        for (key, pairs) in [("env", env), ("headers", headers)] {
            if !pairs.is_empty() {
                let pairs: Vec<String> = pairs
                    .iter()
                    .map(|(member, value)| format!("{} = {}", key_of(member), self.text(name, value, variables)))
                    .collect();
                out.push_str(&format!("{key} = {{ {} }}\n", pairs.join(", ")));
            }
        }
        if node.get("envFile").is_some() {
            out.push_str(
                "# its envFile is not read: set its variables where the server is started, and name them in `env`\n",
            );
        }
        Ok(out)
    }

    /// A text as TOML has it, with what only the client fills in replaced.
    fn text(&self, server: &str, text: &str, variables: &mut Variables) -> String {
        if self.client == Some(Client::ClaudeDesktop) && text.contains("${") && !is_from(variables, text) {
            // Claude Desktop fills nothing in: it stands for itself.
            return toml(&text.replace("${", "$${"));
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let Some(end) = rest[at..].find('}') else { break };
            let inner = &rest[at + 2..at + end];
            out.push_str(&rest[..at]);
            out.push_str(&self.filled(server, inner, variables));
            rest = &rest[at + end + 1..];
        }
        // An open one stands for itself.
        out.push_str(&rest.replace("${", "$${"));
        toml(&out)
    }

    fn filled(&self, server: &str, inner: &str, variables: &mut Variables) -> String {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
        let name = name.strip_prefix("env:").unwrap_or(name);
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match inner {
            "workspaceFolder" | "CLAUDE_PROJECT_DIR" | "cwd" => path(self.project()),
            "workspaceFolderBasename" => self.project().file_name().map_or(String::new(), |name| path(Path::new(name))),
            "userHome" => path(&self.around.home),
            "pathSeparator" | "/" => "/".to_owned(),
            _ if inner.starts_with("CLAUDE_PROJECT_DIR:-") => path(self.project()),
            _ if is_name || inner.starts_with("file:") => format!("${{{inner}}}"),
            _ => variables.asked(server, &variable(inner.trim_start_matches("input:"))),
        }
    }

    /// The folder that a project's configuration is about.
    fn project(&self) -> &Path {
        let folder = self.target.place.path.parent().unwrap_or(&self.around.folder);
        let inner = folder.file_name().is_some_and(|name| name == ".vscode" || name == ".cursor");
        match (inner, self.target.place.path.file_name().is_some_and(|name| name == ".mcp.json")) {
            (true, _) => folder.parent().unwrap_or(folder),
            (false, true) => folder,
            (false, false) => &self.around.folder,
        }
    }
}

fn is_from(variables: &Variables, text: &str) -> bool {
    variables.names().any(|name| text.contains(&format!("${{{name}}}")))
}

fn is_ours(name: &str) -> bool {
    name == "PATH" || name == "MCP_SERVER_URL" || name.starts_with("DURABLE_MCP_")
}

fn reach(entry: &Entry, node: &Node) -> Result<Reach, String> {
    let headers = Vec::new();
    match entry {
        Entry::Stdio { command, args, .. } => {
            Ok(Reach { command: Some((command.clone(), args.clone())), url: None, headers })
        }
        Entry::Http { url, .. } => Ok(Reach { command: None, url: Some(url.clone()), headers }),
        Entry::Connected { .. } => Err("it leads to durable-mcp itself".to_owned()),
        Entry::Foreign(why) => Err(why.clone()),
        Entry::Wrapped { .. } => {
            let words: Vec<&str> =
                node.get("args").map_or(&[][..], Node::items).iter().filter_map(Node::text).collect();
            if let Some(at) = words.iter().position(|word| *word == "--") {
                let (command, args) = words[at + 1..].split_first().ok_or("it wraps nothing")?;
                let args = args.iter().map(|word| (*word).to_owned()).collect();
                return Ok(Reach { command: Some(((*command).to_owned(), args)), url: None, headers });
            }
            let values = |flag: &'static str| {
                words.windows(2).filter(move |pair| pair[0] == flag).map(|pair| pair[1]).collect::<Vec<_>>()
            };
            let from_env = |name: &str| node.get("env").and_then(|env| env.get(name)).and_then(Node::text);
            let url = values("--url").first().copied();
            let url = url.or_else(|| values("--url-env").first().and_then(|name| from_env(name)));
            let headers = values("--header-env").into_iter().filter_map(|pair| pair.split_once('='));
            let headers = headers.map(|(header, variable)| (variable.to_owned(), header.to_owned())).collect();
            Ok(Reach { command: None, url: Some(url.ok_or("it wraps nothing")?.to_owned()), headers })
        }
    }
}

/// A name as a section can have it.
fn plain_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).take(64).collect();
    let plain = plain.trim_matches('-').to_owned();
    if plain.is_empty() { "server".to_owned() } else { plain }
}

fn key_of(name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain { name.to_owned() } else { toml(name) }
}

/// A basic string of TOML, which is JSON's but for one character.
fn toml(text: &str) -> String {
    crate::model::json::quoted(text).replace('\u{7f}', "\\u007f")
}
