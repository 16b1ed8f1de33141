//! `tools/list`, `initialize` and `server/discover`: what a client learns about us. Deterministic, from the catalog's
//! picture; built-in tools come last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::builtin;
use super::cursor::{self, BadCursor, Position};
use super::face::{Face, SERVER_INFO};
use super::splice;
use crate::engine::catalog::{Listing, Tool};
use crate::model::revision::{Era, Revision, modern_names};

/// Rendered pages, for the newest picture only.
#[derive(Debug, Default)]
pub struct Pages {
    rendered: Mutex<(u64, HashMap<PageKey, Arc<str>>)>,
}

type PageKey = (Era, String, u64);

/// Pages kept; more namespaces or tools than that are rendered anew.
const PAGES_MAX: usize = 256;

impl Face {
    /// The result of `tools/list` for a namespace.
    pub async fn tools_list(&self, era: Era, namespace: &str, cursor: Option<&str>) -> Result<Arc<str>, BadCursor> {
        let listing = self.listing().await;
        let offset = match cursor {
            Some(cursor) => {
                let position = cursor::decode(&self.cursor_key, namespace, cursor)?;
                if position.snapshot != listing.version {
                    return Err(BadCursor);
                }
                position.offset
            }
            None => 0,
        };
        let key = (era, namespace.to_owned(), offset);
        let mut rendered = self.pages.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if rendered.0 != listing.version || rendered.1.len() >= PAGES_MAX {
            *rendered = (listing.version, HashMap::new());
        }
        let page = rendered.1.entry(key).or_insert_with(|| self.page(&listing, era, namespace, offset).into());
        Ok(page.clone())
    }

    fn page(&self, listing: &Listing, era: Era, namespace: &str, offset: u64) -> String {
        let visible: Vec<&Arc<Tool>> = listing.tools.iter().filter(|tool| is_offered(tool, namespace)).collect();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(visible.len());
        let end = start.saturating_add(self.settings.page_size).min(visible.len());
        let mut tools: Vec<String> = visible[start..end].iter().filter_map(|tool| render(tool)).collect();
        let last = end == visible.len();
        if last {
            tools.extend(builtin::definitions(self.settings.builtins));
        }
        let mut page = format!("{{\"tools\":[{}]", tools.join(","));
        if !last {
            let position = Position { snapshot: listing.version, offset: end as u64 };
            let cursor = cursor::encode(&self.cursor_key, namespace, position);
            page.push_str(&format!(",\"nextCursor\":\"{cursor}\""));
        }
        if era == Era::Modern {
            page.push_str(&format!(
                ",\"resultType\":\"complete\",\"ttlMs\":{},\"cacheScope\":\"private\",\"_meta\":{{\"{}\":{SERVER_INFO}}}",
                self.settings.list_ttl_ms,
                splice::SERVER_INFO_MEMBER,
            ));
        }
        page.push('}');
        page
    }

    /// The result of `initialize`.
    pub async fn initialize_result(&self, revision: Revision) -> String {
        let listing = self.listing().await;
        let mut result = format!(
            "{{\"protocolVersion\":\"{}\",\"capabilities\":{{\"tools\":{{\"listChanged\":true}}}},\"serverInfo\":{SERVER_INFO}",
            revision.name(),
        );
        if let Some(instructions) = self.instructions(&listing) {
            result.push_str(&format!(",\"instructions\":{}", json!(instructions)));
        }
        result.push('}');
        result
    }

    /// The result of `server/discover`.
    pub async fn discover_result(&self) -> String {
        let listing = self.listing().await;
        let mut result = format!(
            "{{\"resultType\":\"complete\",\"supportedVersions\":{},\"capabilities\":{{\"tools\":{{}},\
             \"extensions\":{{\"{}\":{{}}}}}},\"ttlMs\":{},\"cacheScope\":\"private\",\"_meta\":{{\"{}\":{SERVER_INFO}}}",
            json!(modern_names()),
            super::task::EXTENSION,
            self.settings.list_ttl_ms,
            splice::SERVER_INFO_MEMBER,
        );
        if let Some(instructions) = self.instructions(&listing) {
            result.push_str(&format!(",\"instructions\":{}", json!(instructions)));
        }
        result.push('}');
        result
    }
}

/// True when callers of the namespace may call the tool.
pub fn is_offered(tool: &Tool, namespace: &str) -> bool {
    tool.service.is_offered_in(namespace)
}

fn render(tool: &Tool) -> Option<String> {
    if tool.exposed == tool.name {
        return Some(tool.definition.get().to_owned());
    }
    splice::renamed_tool(&tool.definition, &tool.exposed).map(|renamed| renamed.get().to_owned())
}
