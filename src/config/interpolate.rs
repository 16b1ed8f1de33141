//! `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `${file:PATH}` inside strings; `$${` stays `${`. What came through is
//! secret from then on. Runs no command and fills in no setting of the configuration itself.

use super::error::{ErrorKind, Message, Problems, quoted};
use super::node::{Node, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// A secret file larger than this is no secret file.
const FILE_BYTES_MAX: u64 = 64 * 1024;

pub(super) struct Sources<'a> {
    pub env: &'a BTreeMap<String, String>,
    pub base_dir: &'a Path,
}

impl Sources<'_> {
    /// Fills in every string of the tree. `path` is the key of the node, for the messages.
    pub fn fill(&self, node: &mut Node, path: &str, problems: &mut Problems) {
        match &mut node.value {
            Value::String(text) if text.contains("${") => match self.filled(text) {
                Ok((filled, came_through)) => {
                    *text = filled;
                    node.secret |= came_through;
                    node.loose |= came_through;
                }
                Err(mut message) => {
                    message.reason = format!("{} {}", quoted(path), message.reason);
                    problems.error(ErrorKind::Variable, &node.place, message);
                    node.broken = true;
                    node.secret = true;
                }
            },
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.fill(item, &format!("{path}[{at}]"), problems);
                }
            }
            Value::Table(entries) => {
                for entry in entries {
                    let inner = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
                    self.fill(&mut entry.node, &inner, problems);
                }
            }
            _ => {}
        }
    }

    fn filled(&self, text: &str) -> Result<(String, bool), Message> {
        let mut out = String::with_capacity(text.len());
        let mut came_through = false;
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if at > 0 && rest.as_bytes()[at - 1] == b'$' {
                out.push_str(&rest[..at - 1]);
                out.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            out.push_str(&rest[..at]);
            let inner = &rest[at + 2..];
            let Some(end) = inner.find('}') else {
                return Err(Message::new(
                    "has `${` without `}`",
                    "close it, or write `$${` for the characters themselves",
                ));
            };
            out.push_str(&self.value(&inner[..end])?);
            came_through = true;
            rest = &inner[end + 1..];
        }
        out.push_str(rest);
        Ok((out, came_through))
    }

    fn value(&self, inner: &str) -> Result<String, Message> {
        if let Some(path) = inner.strip_prefix("file:") {
            return self.file(path);
        }
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if name.starts_with("input:") {
            let next = "put the value into an environment variable and name that";
            return Err(Message::new("has `${input:…}`, which asks a person and is not possible here", next));
        }
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(valid) {
            let next = "use `${NAME}`, `${NAME:-default}` or `${file:/path}`, or `$${` for the characters themselves";
            // What stands there is not quoted: it may be a secret with an accident in front.
            return Err(Message::new("has a `${…}` that names no variable", next));
        }
        // As in a shell, an empty variable counts as absent where a default is given.
        match (self.env.get(name), default) {
            (Some(value), None) => Ok(value.clone()),
            (Some(value), Some(_)) if !value.is_empty() => Ok(value.clone()),
            (_, Some(default)) => Ok(default.to_owned()),
            (None, None) => {
                let next = format!("set it, or write `${{{name}:-default}}`");
                Err(Message::new(format!("needs the environment variable {}, which is not set", quoted(name)), next))
            }
        }
    }

    fn file(&self, path: &str) -> Result<String, Message> {
        let full = self.base_dir.join(path);
        let wrong = |reason: String, next: &str| {
            Err(Message::new(format!("names the file {}, which {reason}", quoted(path)), next))
        };
        let size = match std::fs::metadata(&full) {
            Ok(metadata) => metadata.len(),
            Err(error) => {
                return wrong(format!("cannot be read ({})", cause(&error)), "check the path and its permissions");
            }
        };
        if size > FILE_BYTES_MAX {
            return wrong(format!("is larger than {FILE_BYTES_MAX} bytes"), "name a file that holds only the value");
        }
        match std::fs::read_to_string(&full) {
            // Editors end a file with a line break that is no part of the secret.
            Ok(content) => {
                Ok(content.strip_suffix('\n').map_or(content.as_str(), |s| s.trim_end_matches('\r')).to_owned())
            }
            Err(error) => wrong(format!("cannot be read ({})", cause(&error)), "name a file that holds UTF-8 text"),
        }
    }
}

/// What the system said, without its error number.
pub(super) fn cause(error: &std::io::Error) -> String {
    let text = error.to_string();
    let short = text.split(" (os error").next().unwrap_or_default();
    let mut chars = short.chars();
    chars.next().map_or(String::new(), |first| first.to_ascii_lowercase().to_string() + chars.as_str())
}
