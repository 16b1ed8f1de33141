//! An event in the stream of many executions: with whose it is, and where the stream goes on after it.

use schemars::JsonSchema;
use serde::Serialize;
use utoipa::ToSchema;

use super::EventView;
use crate::engine::changes::Change;

/// An event with its execution.
#[derive(Clone, Debug, Serialize, ToSchema, JsonSchema)]
#[schema(as = StreamEvent)]
#[schemars(rename = "StreamEvent")]
pub struct ChangeView<'a> {
    /// Goes on after this event.
    pub cursor: String,
    /// The execution's id.
    pub execution: String,
    /// The tool's own name at its upstream.
    pub tool: &'a str,
    /// Whose tool.
    pub upstream: &'a str,
    /// The tenant border.
    pub namespace: &'a str,
    /// Who called.
    pub principal: &'a str,
    /// The event.
    #[serde(flatten)]
    pub event: EventView,
}

impl<'a> ChangeView<'a> {
    /// The view of a change.
    pub fn of(change: &'a Change) -> Self {
        let ident = &change.head.ident;
        Self {
            cursor: change.cursor.to_string(),
            execution: ident.id.to_string(),
            tool: &ident.tool,
            upstream: &ident.upstream,
            namespace: &ident.namespace,
            principal: &ident.principal,
            event: EventView::of(&change.record),
        }
    }
}
