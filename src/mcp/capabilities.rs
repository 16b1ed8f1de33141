//! What this server declares: the union of what its upstreams declare, and what it can do itself. Per namespace; a
//! capability of an upstream that a namespace does not see is not declared to it.

use std::fmt::Write;

use super::face::Face;
use super::offering::Declared;
use super::task;
use crate::model::revision::Era;

/// The `capabilities` object, as JSON. Lists change whenever an upstream comes, goes or says so, whatever it declared.
/// `more` are further members, as names and JSON values: of `capabilities.extensions` (2026-07-28), or of the object
/// itself.
pub fn capabilities(declared: Declared, era: Era, more: &[(&str, &str)]) -> String {
    let mut out = String::from("{\"tools\":{\"listChanged\":true}");
    if declared.resources {
        let subscribe = declared.subscribe;
        let _ = write!(out, ",\"resources\":{{\"subscribe\":{subscribe},\"listChanged\":true}}");
    }
    if declared.prompts {
        out.push_str(",\"prompts\":{\"listChanged\":true}");
    }
    if declared.completions {
        out.push_str(",\"completions\":{}");
    }
    if declared.logging {
        out.push_str(",\"logging\":{}");
    }
    let members: Vec<String> = more.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    if !members.is_empty() {
        let members = members.join(",");
        let _ = match era {
            Era::Modern => write!(out, ",\"extensions\":{{{members}}}"),
            Era::Legacy => write!(out, ",{members}"),
        };
    }
    out.push('}');
    out
}

impl Face {
    /// The extensions of 2026-07-28 that are spoken here, as names and JSON values.
    pub(super) fn extensions(&self) -> Vec<(&'static str, &'static str)> {
        vec![(task::EXTENSION, "{}")]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(declared: Declared, era: Era, extensions: &[(&str, &str)]) -> Value {
        serde_json::from_str(&capabilities(declared, era, extensions)).unwrap()
    }

    #[test]
    fn only_what_an_upstream_declares_is_declared_besides_tools() {
        assert_eq!(of(Declared::default(), Era::Legacy, &[]), json!({"tools": {"listChanged": true}}));
        let all = Declared { resources: true, subscribe: true, prompts: true, completions: true, logging: true };
        let expected = json!({
            "tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true}, "completions": {}, "logging": {},
        });
        assert_eq!(of(all, Era::Legacy, &[]), expected);
    }

    #[test]
    fn extensions_are_members_of_their_own_in_2026_07_28() {
        assert_eq!(of(Declared::default(), Era::Legacy, &[("tasks", "{}")])["tasks"], json!({}));
        let extended = of(Declared::default(), Era::Modern, &[("a/b", "{}")]);
        assert_eq!(extended["extensions"], json!({"a/b": {}}));
        assert_eq!(of(Declared::default(), Era::Modern, &[]).get("extensions"), None);
    }
}
