//! An execution whole, as one line of JSON: the row, its log, its payloads byte for byte. Reads one execution at a time.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::changes;
use super::view::{EventView, ExecutionView};
use crate::model::execution::Head;
use crate::model::json::one_line;
use crate::store::{Error, PayloadKind, Result, Store};

/// A line of an export.
#[derive(Serialize, ToSchema, JsonSchema)]
#[schemars(rename = "Export")]
pub struct ExportLine<'a> {
    /// The execution's own members.
    #[serde(flatten)]
    execution: ExecutionView<'a>,
    /// What happened, in order.
    events: Vec<EventView>,
    /// The call's arguments; null when retention took them.
    #[schema(value_type = Option<Object>)]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    arguments: Option<&'a RawValue>,
    /// What else of the call went to the server of the tool.
    #[schema(value_type = Option<Object>)]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    meta: Option<&'a RawValue>,
    /// The tool's whole result.
    #[schema(value_type = Option<Object>)]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    result: Option<&'a RawValue>,
    /// The upstream's whole JSON-RPC error.
    #[schema(value_type = Option<Object>)]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    rpc_error: Option<&'a RawValue>,
}

/// The line of an execution, without its line break. Errors: the store can not read it, or holds no JSON.
pub async fn line(store: &dyn Store, head: &Head) -> Result<String> {
    let id = head.id();
    let log = changes::events(store, id, 0).await?;
    let read = async |kind| {
        let payload = store.payload(id, kind).await?;
        let raw = payload.map(|text| RawValue::from_string(one_line(&text).into_owned())).transpose();
        raw.map_err(|_| Error::Damaged(format!("a payload of execution {id} is no JSON")))
    };
    let arguments = read(PayloadKind::Arguments).await?;
    let meta = read(PayloadKind::Meta).await?;
    let result = read(PayloadKind::Result).await?;
    let rpc_error = read(PayloadKind::Error).await?;
    let line = ExportLine {
        execution: ExecutionView::of(head),
        events: log.iter().map(EventView::of).collect(),
        arguments: arguments.as_deref(),
        meta: meta.as_deref(),
        result: result.as_deref(),
        rpc_error: rpc_error.as_deref(),
    };
    serde_json::to_string(&line).map_err(|error| Error::Internal(format!("execution {id} has no JSON: {error}")))
}
