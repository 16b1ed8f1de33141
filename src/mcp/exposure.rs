//! Under which names prompts are shown, and which namespace sees whose prompts and resources. The rules come from the
//! configuration; resources keep their URIs.

use std::borrow::Cow;
use std::collections::HashMap;

use super::names::{self, Naming};
use crate::engine::catalog::Listing;

/// What is shown of the upstreams to whom, besides tools.
#[derive(Clone, Debug, Default)]
pub struct Exposure {
    /// The prefix of each upstream's prompts, the same as that of its tools; one without has its names unchanged.
    pub prefixes: HashMap<String, String>,
    /// The patterns of the namespaces that see only some tools: full names, or with a `*` at the end.
    pub patterns: HashMap<String, Vec<String>>,
}

impl Exposure {
    /// The name clients call a prompt by.
    pub fn prompt<'n>(&self, upstream: &str, name: &'n str) -> Cow<'n, str> {
        match self.prefixes.get(upstream) {
            Some(prefix) => names::exposed(Naming::Prefixed(prefix), name),
            None => Cow::Borrowed(name),
        }
    }

    /// True when callers in `namespace` may see the prompt of this exposed name.
    pub fn shows_prompt(&self, namespace: &str, exposed: &str) -> bool {
        self.patterns.get(namespace).is_none_or(|patterns| {
            patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => exposed.starts_with(start),
                None => pattern == exposed,
            })
        })
    }

    /// True when callers in `namespace` may see an upstream's resources: all who see any of its tools, or would see one
    /// by any name.
    pub fn shows_resources(&self, namespace: &str, upstream: &str, listing: &Listing) -> bool {
        let Some(patterns) = self.patterns.get(namespace) else { return true };
        let prefix = self.prefixes.get(upstream).map_or("", String::as_str);
        let whole = |pattern: &String| pattern.strip_suffix('*').is_some_and(|start| prefix.starts_with(start));
        patterns.iter().any(whole)
            || listing.tools.iter().any(|tool| tool.upstream == upstream && tool.service.is_offered_in(namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposure() -> Exposure {
        Exposure {
            prefixes: [("docs".to_owned(), "docs__".to_owned()), ("plain".to_owned(), String::new())].into(),
            patterns: [("few".to_owned(), vec!["docs__*".to_owned(), "greet".to_owned()])].into(),
        }
    }

    #[test]
    fn prompts_are_named_as_tools_are() {
        let exposure = exposure();
        assert_eq!(exposure.prompt("docs", "summary"), "docs__summary");
        assert_eq!(exposure.prompt("plain", "summary"), "summary");
        assert_eq!(exposure.prompt("wrapped", "summary"), "summary");
    }

    #[test]
    fn a_namespace_with_patterns_sees_what_they_name() {
        let exposure = exposure();
        assert!(exposure.shows_prompt("few", "docs__summary") && exposure.shows_prompt("few", "greet"));
        assert!(!exposure.shows_prompt("few", "summary"));
        assert!(exposure.shows_prompt("default", "summary"));
        let nothing = Listing::default();
        assert!(exposure.shows_resources("few", "docs", &nothing));
        assert!(!exposure.shows_resources("few", "plain", &nothing));
        assert!(exposure.shows_resources("default", "plain", &nothing));
    }
}
