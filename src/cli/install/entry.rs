//! One server's entry in a client's configuration: what it starts, or why it is left alone. Reads only.

use std::path::Path;

use super::document::Node;

/// What an entry is.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A server that the client starts.
    Stdio {
        /// The program, as it is written.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// `PATH` of its environment, if it sets one.
        path: Option<String>,
    },
    /// A server that the client calls.
    Http {
        /// Its address, as it is written.
        url: String,
        /// The names of its headers.
        headers: Vec<String>,
    },
    /// A server behind `wrap` already.
    Wrapped {
        /// The program that wraps it.
        program: String,
        /// The name of its store.
        name: Option<String>,
    },
    /// `connect`.
    Connected {
        /// The program.
        program: String,
    },
    /// Something that is not understood well enough to be changed.
    Foreign(String),
}

/// Members with which a client does for a server what only it can do.
const OF_THE_CLIENT: [(&str, &str); 4] = [
    ("oauth", "the client signs in to this server by itself, which `wrap` can not do"),
    ("auth", "the client signs in to this server by itself, which `wrap` can not do"),
    ("headersHelper", "its headers come from a program that only the client runs"),
    ("sandboxEnabled", "it runs in the client's sandbox, which keeps `wrap` from its store"),
];

impl Entry {
    /// Reads an entry.
    pub fn read(node: &Node) -> Entry {
        let foreign = |why: &str| Entry::Foreign(why.to_owned());
        if !node.is_object() {
            return foreign("it is no object");
        }
        if let Some(name) = node.twice() {
            return Entry::Foreign(format!("the member {name:?} stands twice in it"));
        }
        for (member, why) in OF_THE_CLIENT {
            let set = node.get(member).is_some_and(|value| value.kind != super::document::Kind::Boolean(false));
            if set {
                return foreign(why);
            }
        }
        let kind = node.get("type").or_else(|| node.get("transport"));
        match kind.map(|kind| kind.text().unwrap_or_default()) {
            None | Some("stdio" | "http" | "streamable-http" | "streamableHttp" | "streamable_http") => {}
            Some("sse") => return foreign("it uses the old SSE transport, which is not spoken"),
            Some(other) => return Entry::Foreign(format!("its type {other:?} is not known")),
        }
        let is_http = kind.is_some_and(|kind| kind.text() != Some("stdio"));
        match (node.get("command"), node.get("url")) {
            (Some(command), None) if !is_http => stdio(node, command),
            (None, Some(url)) if kind.is_none() || is_http => http(node, url),
            (Some(_), Some(_)) => foreign("it has a command and a url"),
            (None, None) => foreign("it has no command and no url"),
            _ => foreign("its type does not fit what it names"),
        }
    }
}

fn stdio(node: &Node, command: &Node) -> Entry {
    let foreign = |why: &str| Entry::Foreign(why.to_owned());
    let Some(command) = command.text().filter(|text| !text.trim().is_empty()) else {
        return foreign("its command is no text");
    };
    let mut args = Vec::new();
    if let Some(list) = node.get("args") {
        if !list.is_array() {
            return foreign("its args are no list");
        }
        for item in list.items() {
            match item.text() {
                Some(text) => args.push(text.to_owned()),
                None => return foreign("one of its args is no text"),
            }
        }
    }
    if node.get("env").is_some_and(|env| !env.is_object()) {
        return foreign("its env is no object");
    }
    if is_ours(command) {
        let program = command.to_owned();
        return match args.first().map(String::as_str) {
            Some("wrap") => Entry::Wrapped { program, name: wrapped_name(&args) },
            Some("connect") => Entry::Connected { program },
            _ => foreign("it runs `durable-mcp` with a command that is no server"),
        };
    }
    if command.contains(char::is_whitespace) && args.is_empty() && !Path::new(command).exists() {
        return foreign("its command is a line for a shell; put the arguments into `args`");
    }
    let path = node.get("env").and_then(|env| env.get("PATH")).and_then(Node::text).map(str::to_owned);
    Entry::Stdio { command: command.to_owned(), args, path }
}

fn http(node: &Node, url: &Node) -> Entry {
    let foreign = |why: &str| Entry::Foreign(why.to_owned());
    let Some(url) = url.text().filter(|text| !text.trim().is_empty()) else {
        return foreign("its url is no text");
    };
    let known = url.starts_with("http://") || url.starts_with("https://") || url.starts_with("${");
    if !known {
        return foreign("its url is neither http nor https");
    }
    let untyped = node.get("type").or_else(|| node.get("transport")).is_none();
    if untyped && url.split(['?', '#']).next().is_some_and(|path| path.trim_end_matches('/').ends_with("/sse")) {
        return foreign("its url looks like the old SSE transport; give it the type `http` if it is not");
    }
    if node.get("env").is_some() {
        return foreign("it has a url and an env");
    }
    let mut headers = Vec::new();
    if let Some(map) = node.get("headers") {
        if !map.is_object() {
            return foreign("its headers are no object");
        }
        for member in map.members() {
            if member.value.text().is_none() {
                return foreign("one of its headers is no text");
            }
            if axum::http::HeaderName::from_bytes(member.name.as_bytes()).is_err() {
                return foreign("the name of one of its headers is malformed");
            }
            headers.push(member.name.clone());
        }
    }
    Entry::Http { url: url.to_owned(), headers }
}

/// Whether a command is this program, wherever it lies.
fn is_ours(command: &str) -> bool {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    matches!(name, "durable-mcp" | "durable-mcp.exe")
}

fn wrapped_name(args: &[String]) -> Option<String> {
    let flags = args.split(|arg| arg == "--").next().unwrap_or_default();
    let at = flags.iter().position(|flag| flag == "--name")?;
    flags.get(at + 1).cloned()
}
