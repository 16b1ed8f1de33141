//! The lists, `initialize` and `server/discover`: what a client learns about us. Deterministic, from the catalog's
//! picture; built-in tools come last. Asks no upstream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::builtin;
use super::capabilities::capabilities;
use super::cursor::{self, BadCursor, Position};
use super::earlier;
use super::face::{Face, SERVER_INFO};
use super::going::Finished;
use super::meta::Params;
use super::method::cursor_of;
use super::offering::{Kind, Offering};
use super::reject::Source;
use super::splice::{self, CacheHints, CacheScope};
use super::task::experimental;
use crate::engine::catalog::{CacheHint, Listing, Tool};
use crate::model::principal::Principal;
use crate::model::revision::{Era, Revision, modern_names};

/// Rendered pages, for the newest picture only.
#[derive(Debug, Default)]
pub struct Pages {
    rendered: Mutex<(u64, HashMap<PageKey, Arc<str>>)>,
}

/// The era, whether tools say that their calls may be tasks, the namespace, the first entry.
type PageKey = ((Era, bool), String, u64);

/// Pages kept; more namespaces or tools than that are rendered anew.
const PAGES_MAX: usize = 256;

impl Face {
    /// The result of `tools/list` for a namespace.
    pub async fn tools_list(
        &self,
        revision: Revision,
        namespace: &str,
        cursor: Option<&str>,
    ) -> Result<Arc<str>, BadCursor> {
        let era = revision.era();
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
        let form = (era, revision == Revision::V2025_11_25);
        let key = (form, namespace.to_owned(), offset);
        let mut rendered = self.pages.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if rendered.0 != listing.version || rendered.1.len() >= PAGES_MAX {
            *rendered = (listing.version, HashMap::new());
        }
        let page = rendered.1.entry(key).or_insert_with(|| self.page(&listing, form, namespace, offset).into()).clone();
        drop(rendered);
        match era {
            Era::Legacy => Ok(page),
            Era::Modern => {
                let tools = listing.upstreams.iter().filter(|(_, offer)| !offer.tools.is_empty());
                let tail = self.modern_tail(self.cache(tools.map(|(_, offer)| offer.tools_cache)));
                Ok(format!("{page}{tail}").into())
            }
        }
    }

    fn page(&self, listing: &Listing, (era, says_tasks): (Era, bool), namespace: &str, offset: u64) -> String {
        let visible: Vec<&Arc<Tool>> = listing.tools.iter().filter(|tool| is_offered(tool, namespace)).collect();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(visible.len());
        let end = start.saturating_add(self.settings.page_size).min(visible.len());
        let shown = visible[start..end].iter().filter_map(|tool| render(tool, (era, says_tasks)));
        let mut tools: Vec<String> = shown.collect();
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
        // How long a page holds changes with each moment, so that it is written last.
        if era == Era::Legacy {
            page.push('}');
        }
        page
    }

    /// A list of resources, templates or prompts.
    pub(super) async fn list(&self, kind: Kind, era: Era, (params, namespace): (&Params<'_>, &str)) -> Finished {
        let offering = self.offering(namespace).await;
        let scope = format!("{}\n{namespace}", kind.method());
        let position = match cursor_of(params) {
            Ok(None) => None,
            Ok(Some(cursor)) => match cursor::decode(&self.cursor_key, &scope, &cursor) {
                Ok(position) if position.snapshot == offering.mark(kind) => Some(position),
                _ => return Finished::error(BadCursor.rpc_error()),
            },
            Err((source, error)) => return Finished { source, ..Finished::error(error) },
        };
        let page = self.entries_page(&offering, kind, (&scope, position.map_or(0, |position| position.offset)));
        let tail = match era {
            Era::Legacy => "}".to_owned(),
            Era::Modern => self.modern_tail(self.cache(offering.hints(kind).iter().copied())),
        };
        Finished { source: Source::Handler, ..Finished::result(page + &tail) }
    }

    fn entries_page(&self, offering: &Offering, kind: Kind, (scope, offset): (&str, u64)) -> String {
        let entries = offering.entries(kind);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(entries.len());
        let end = start.saturating_add(self.settings.page_size).min(entries.len());
        let objects: Vec<&str> = entries[start..end].iter().map(|entry| entry.object.as_str()).collect();
        let mut page = format!("{{\"{}\":[{}]", kind.member(), objects.join(","));
        if end < entries.len() {
            let position = Position { snapshot: offering.mark(kind), offset: end as u64 };
            let cursor = cursor::encode(&self.cursor_key, scope, position);
            page.push_str(&format!(",\"nextCursor\":\"{cursor}\""));
        }
        page
    }

    /// How long what was merged from several upstreams may be kept and by whom: the least that is left of any, and for
    /// everybody only if all of them say so and all callers see the same.
    fn cache(&self, hints: impl Iterator<Item = Option<CacheHint>>) -> CacheHints {
        let now_ms = self.engine.clock().now_ms();
        let mut merged: Option<(u64, bool)> = None;
        for hint in hints {
            // Who says nothing can be kept as long as we keep it, for whoever asked.
            let (ttl_ms, is_private) = match hint {
                Some(hint) => (u64::try_from(hint.left_ms(now_ms)).unwrap_or(0), hint.is_private),
                None => (self.settings.list_ttl_ms, true),
            };
            let (least_ms, any_private) = merged.unwrap_or((ttl_ms, is_private));
            merged = Some((least_ms.min(ttl_ms), any_private || is_private));
        }
        let (ttl_ms, is_private) = merged.unwrap_or((self.settings.list_ttl_ms, true));
        let is_private = is_private || !self.settings.exposure.patterns.is_empty();
        CacheHints { ttl_ms, scope: if is_private { CacheScope::Private } else { CacheScope::Public } }
    }

    /// The end of a modern list: the members of its revision, and the brace.
    fn modern_tail(&self, cache: CacheHints) -> String {
        format!(
            ",\"resultType\":\"complete\",\"ttlMs\":{},\"cacheScope\":\"{}\",\"_meta\":{{\"{}\":{SERVER_INFO}}}}}",
            cache.ttl_ms,
            cache.scope.as_str(),
            splice::SERVER_INFO_MEMBER,
        )
    }

    /// The result of `initialize`.
    pub async fn initialize_result(&self, revision: Revision, principal: &Principal) -> String {
        let listing = self.listing().await;
        let declared = self.offering_now(&principal.namespace).declared;
        let tasks =
            (revision == Revision::V2025_11_25).then(|| ("tasks", experimental::capability(principal.is_anonymous())));
        let mut result = format!(
            "{{\"protocolVersion\":\"{}\",\"capabilities\":{},\"serverInfo\":{SERVER_INFO}",
            revision.name(),
            capabilities(declared, Era::Legacy, tasks.as_slice()),
        );
        if let Some(instructions) = self.instructions(&listing) {
            result.push_str(&format!(",\"instructions\":{}", json!(instructions)));
        }
        result.push('}');
        result
    }

    /// The result of `server/discover`.
    pub async fn discover_result(&self, namespace: &str) -> String {
        let listing = self.listing().await;
        let offering = self.offering_now(namespace);
        let mut result = format!(
            "{{\"supportedVersions\":{},\"capabilities\":{}",
            json!(modern_names()),
            capabilities(offering.declared, Era::Modern, &self.extensions()),
        );
        if let Some(instructions) = self.instructions(&listing) {
            result.push_str(&format!(",\"instructions\":{}", json!(instructions)));
        }
        let tools = listing.upstreams.iter().filter(|(_, offer)| !offer.tools.is_empty());
        let lists = [Kind::Resources, Kind::Templates, Kind::Prompts].into_iter().flat_map(|kind| offering.hints(kind));
        let hints = tools.map(|(_, offer)| offer.tools_cache).chain(lists.copied());
        result.push_str(&self.modern_tail(self.cache(hints)));
        result
    }
}

/// True when callers of the namespace may call the tool.
pub fn is_offered(tool: &Tool, namespace: &str) -> bool {
    tool.service.is_offered_in(namespace)
}

fn render(tool: &Tool, (era, says_tasks): (Era, bool)) -> Option<String> {
    let mut shown = match tool.exposed == tool.name {
        true => tool.definition.get().to_owned(),
        false => splice::renamed_tool(&tool.definition, &tool.exposed)?.get().to_owned(),
    };
    if tool.has_output_schema && era == Era::Legacy {
        shown = earlier::tool(&shown).unwrap_or(shown);
    }
    Some(if says_tasks { experimental::listed(&shown, tool).into_owned() } else { shown })
}
