//! The names under which tools are exposed: `server__tool`, short enough for every client, each used once.
//! Does not rename anything (`splice` does) and does not check what characters an upstream uses.

use std::borrow::Cow;
use std::collections::HashMap;

use sha2::{Digest, Sha256};

#[cfg(test)]
mod tests;

/// Clients refuse longer tool names.
pub const NAME_CHARS_MAX: usize = 64;
/// What stands between a server's name and its tools' names where no prefix is configured.
pub const SEPARATOR: &str = "__";
const HASH_CHARS: usize = 8;

/// How the tools of one server are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming<'a> {
    /// As the upstream names them, whatever their length (`wrap`).
    Unchanged,
    /// The prefix as it is, then the tool; at most 64 characters (`serve`).
    Prefixed(&'a str),
}

/// The exposed name of a tool. A name that is too long keeps its start and ends in a hash of the whole.
pub fn exposed<'a>(naming: Naming<'_>, tool: &'a str) -> Cow<'a, str> {
    match naming {
        Naming::Unchanged => Cow::Borrowed(tool),
        Naming::Prefixed("") => shortened(Cow::Borrowed(tool)),
        Naming::Prefixed(prefix) => shortened(Cow::Owned(format!("{prefix}{tool}"))),
    }
}

fn shortened(name: Cow<'_, str>) -> Cow<'_, str> {
    if name.chars().count() <= NAME_CHARS_MAX {
        return name;
    }
    let digest = hex::encode(Sha256::digest(name.as_bytes()));
    let start: String = name.chars().take(NAME_CHARS_MAX - HASH_CHARS - 1).collect();
    Cow::Owned(format!("{start}_{}", &digest[..HASH_CHARS]))
}

/// The tools of one server, in its order.
#[derive(Debug, Clone)]
pub struct ServerTools<'a> {
    pub server: &'a str,
    pub naming: Naming<'a>,
    pub tools: Vec<&'a str>,
}

/// A tool and the name it is exposed under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed<'a> {
    pub name: Cow<'a, str>,
    pub server: &'a str,
    pub tool: &'a str,
}

/// A tool that is left out because its exposed name is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision<'a> {
    pub name: Cow<'a, str>,
    /// The owner of the name: (server, tool), or `None` for a built-in tool.
    pub kept: Option<(&'a str, &'a str)>,
    pub lost: (&'a str, &'a str),
}

/// The exposed tools in order, and those that lost their name to an earlier one.
#[derive(Debug, Default)]
pub struct Assignment<'a> {
    pub tools: Vec<Exposed<'a>>,
    pub collisions: Vec<Collision<'a>>,
}

/// Names all tools. `reserved` are the names of the built-in tools; after them the order of the servers decides.
pub fn assign<'a>(servers: &[ServerTools<'a>], reserved: &[&'a str]) -> Assignment<'a> {
    let mut owners: HashMap<Cow<'a, str>, Option<(&'a str, &'a str)>> =
        reserved.iter().map(|name| (Cow::Borrowed(*name), None)).collect();
    let mut assignment = Assignment::default();
    for server in servers {
        for tool in &server.tools {
            let name = exposed(server.naming, tool);
            let lost = (server.server, *tool);
            match owners.get(&name) {
                Some(kept) => assignment.collisions.push(Collision { name, kept: *kept, lost }),
                None => {
                    owners.insert(name.clone(), Some(lost));
                    assignment.tools.push(Exposed { name, server: server.server, tool });
                }
            }
        }
    }
    assignment
}
