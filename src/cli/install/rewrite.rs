//! From an entry to the same entry behind `wrap`: the changes to its text, and nothing outside of it. What a client fills in
//! stays where the client fills it in, and no secret moves into the arguments, where every user of the machine could read it.

use super::document::Node;
use super::edit::{self, Edits, Hand, Pairs};
use super::entry::Entry;
use super::secret::has_secret;
use crate::model::json::quoted;

/// The variable that carries an address with a secret in it.
const URL_VARIABLE: &str = "MCP_SERVER_URL";

/// What an entry is to become.
#[derive(Clone, Debug)]
pub struct Wrapping {
    /// This program.
    pub program: String,
    /// The name of the store.
    pub name: String,
    /// The server's program, to be found in any environment.
    pub command: String,
    /// `PATH` for the server, where it needs one.
    pub path: Option<String>,
    /// The data folder, where it is not the usual one.
    pub data_dir: Option<String>,
}

/// The variable that carries a header.
pub fn header_variable(header: &str, taken: &[String]) -> String {
    let word: String =
        header.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let name = format!("MCP_HEADER_{word}");
    let numbered = |n: usize| if n == 1 { name.clone() } else { format!("{name}_{n}") };
    (1..).map(numbered).find(|name| !taken.contains(name)).unwrap_or(name.clone())
}

/// The changes that put an entry behind `wrap`. Only `Stdio`, `Http` and `Wrapped` entries have any.
pub fn wrap(text: &str, node: &Node, entry: &Entry, wrapping: &Wrapping) -> Edits {
    let mut edits = Edits::default();
    match entry {
        Entry::Stdio { .. } => stdio(&mut edits, text, node, wrapping),
        Entry::Http { url, headers } => http(&mut edits, text, node, (url, headers, wrapping)),
        Entry::Wrapped { .. } | Entry::Connected { .. } => {
            if let Some(command) = node.get("command").filter(|command| command.text() != Some(&wrapping.program)) {
                edits.replace(command.span.clone(), quoted(&wrapping.program));
            }
        }
        Entry::Foreign(_) => {}
    }
    edits
}

fn stdio(edits: &mut Edits, text: &str, node: &Node, wrapping: &Wrapping) {
    let Some(command) = node.member("command") else { return };
    edits.replace(command.value.span.clone(), quoted(&wrapping.program));
    let words = ["wrap", "--name", &wrapping.name, "--", &wrapping.command].map(str::to_owned);
    let last = match node.member("args") {
        Some(args) => {
            edit::prepend_items(edits, text, &args.value, &words);
            args
        }
        None => {
            let list = edit::array(&words, &Hand::of(text, node));
            edit::insert_after(edits, text, (node, command), ("args", &list));
            command
        }
    };
    let env = node.get("env");
    let wanted = [("PATH", &wrapping.path), ("DURABLE_MCP_DATA_DIR", &wrapping.data_dir)];
    let pairs = wanted.into_iter().filter(|(name, _)| env.is_none_or(|env| env.get(name).is_none()));
    let pairs: Pairs = pairs.filter_map(|(name, value)| Some((name.to_owned(), quoted(value.as_deref()?)))).collect();
    let hand = Hand::of(text, node);
    match env {
        _ if pairs.is_empty() => {}
        Some(env) => edit::append_members(edits, text, (env, &hand), &pairs),
        None => {
            let object = edit::object(&pairs, &hand);
            edit::insert_after(edits, text, (node, last), ("env", &object));
        }
    }
}

fn http(edits: &mut Edits, text: &str, node: &Node, parts: (&str, &[String], &Wrapping)) {
    let (url, headers, wrapping) = parts;
    let Some(address) = node.member("url") else { return };
    let hand = Hand::of(text, node);
    let Hand { lead, colon, .. } = hand;
    let is_secret = has_secret(url) || url.contains("${");
    let mut words = vec!["wrap".to_owned(), "--name".to_owned(), wrapping.name.clone()];
    match is_secret {
        true => words.extend(["--url-env".to_owned(), URL_VARIABLE.to_owned()]),
        false => words.extend(["--url".to_owned(), url.to_owned()]),
    }
    let mut variables = Vec::new();
    for header in headers {
        let variable = header_variable(header, &variables);
        words.extend(["--header-env".to_owned(), format!("{header}={variable}")]);
        variables.push(variable);
    }
    let command =
        format!("\"command\"{colon}{},{lead}\"args\"{colon}{}", quoted(&wrapping.program), edit::array(&words, &hand));
    edits.replace(address.key.start..address.value.span.end, command);
    // A client's placeholders in the address and in headers are filled in by the client as before: in the environment.
    let exact_url = &text[address.value.span.clone()];
    let mut more = Pairs::new();
    if is_secret {
        more.push((URL_VARIABLE.to_owned(), exact_url.to_owned()));
    }
    more.extend(wrapping.data_dir.iter().map(|folder| ("DURABLE_MCP_DATA_DIR".to_owned(), quoted(folder))));
    match node.member("headers") {
        Some(map) => {
            edits.replace(map.key.clone(), "\"env\"");
            for (member, variable) in map.value.members().iter().zip(&variables) {
                edits.replace(member.key.clone(), quoted(variable));
            }
            edit::append_members(edits, text, (&map.value, &hand), &more);
        }
        None if more.is_empty() => {}
        None => {
            let object = edit::object(&more, &hand);
            edits.insert(address.value.span.end, format!(",{lead}\"env\"{colon}{object}"));
        }
    }
    for kind in ["type", "transport"] {
        if let Some(kind) = node.get(kind) {
            edits.replace(kind.span.clone(), "\"stdio\"");
        }
    }
}
