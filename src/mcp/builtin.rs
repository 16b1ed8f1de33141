//! The built-in tools: their definitions and arguments. They are no executions; `call.rs` runs them.

use std::str::FromStr;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::face::Builtins;
use super::reject::{RpcError, code};
use crate::model::id::ExecutionId;

/// A built-in tool, called.
#[derive(Debug, Clone, PartialEq)]
pub enum Builtin {
    /// The result of an execution, or what of the caller's has not ended.
    Result {
        /// Which; absent: list.
        execution: Option<ExecutionId>,
        /// How long to wait, in milliseconds.
        wait_ms: Option<i64>,
    },
    /// A part of a stored result.
    Part {
        /// Of which execution.
        execution: ExecutionId,
        /// Where the part before ended.
        from: String,
    },
    /// Stops an execution.
    Cancel(ExecutionId),
    /// The caller's own unfinished calls.
    List,
    /// One more attempt of an `unknown`.
    Retry {
        /// Which.
        execution: ExecutionId,
        /// Why.
        reason: String,
    },
}

/// The name of the one that is always there.
pub const RESULT: &str = "durable_result";
const CANCEL: &str = "durable_cancel";
const LIST: &str = "durable_list";
const RETRY: &str = "durable_retry";

/// Every name, whether it is offered or not: no tool may take one.
pub const NAMES: [&str; 4] = [CANCEL, LIST, RETRY, RESULT];

const RESULT_DEFINITION: &str = r#"{"name":"durable_result","description":"Returns the result of an earlier tool call by its execution_id, waiting if it still runs. Without execution_id: lists your unfinished calls.","inputSchema":{"type":"object","properties":{"execution_id":{"type":"string"},"wait_ms":{"type":"integer","minimum":0},"from":{"type":"string"}}},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;
const CANCEL_DEFINITION: &str = r#"{"name":"durable_cancel","description":"Stops a tool call that still runs. It may have taken effect already.","inputSchema":{"type":"object","properties":{"execution_id":{"type":"string"}},"required":["execution_id"]},"annotations":{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}"#;
const LIST_DEFINITION: &str = r#"{"name":"durable_list","description":"Lists your tool calls that have not ended or whose outcome is unknown.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;
const RETRY_DEFINITION: &str = r#"{"name":"durable_retry","description":"Runs a tool call with unknown outcome once more. Only after checking that it did not take effect; ask the user first.","inputSchema":{"type":"object","properties":{"execution_id":{"type":"string"},"reason":{"type":"string"}},"required":["execution_id","reason"]},"annotations":{"destructiveHint":true,"openWorldHint":true}}"#;

/// The definitions that are offered, as JSON; `durable_result` is the last.
pub fn definitions(builtins: Builtins) -> Vec<String> {
    let offered = [
        (builtins.cancel, CANCEL_DEFINITION),
        (builtins.list, LIST_DEFINITION),
        (builtins.retry, RETRY_DEFINITION),
        (true, RESULT_DEFINITION),
    ];
    offered.into_iter().filter(|(on, _)| *on).map(|(_, definition)| definition.to_owned()).collect()
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Arguments {
    execution_id: Option<String>,
    wait_ms: Option<i64>,
    from: Option<String>,
    reason: Option<String>,
}

/// The built-in tool that `name` calls; `None` when it is no built-in tool that is offered.
pub fn called(name: &str, arguments: Option<&RawValue>, builtins: Builtins) -> Option<Result<Builtin, RpcError>> {
    let offered = match name {
        RESULT => true,
        CANCEL => builtins.cancel,
        LIST => builtins.list,
        RETRY => builtins.retry,
        _ => false,
    };
    offered.then(|| read(name, arguments))
}

fn read(name: &str, arguments: Option<&RawValue>) -> Result<Builtin, RpcError> {
    let invalid = |words: String| RpcError::new(code::INVALID_PARAMS, words);
    let arguments = match arguments {
        Some(raw) => {
            serde_json::from_str::<Arguments>(raw.get()).map_err(|error| invalid(format!("{name}: {error}")))?
        }
        None => Arguments::default(),
    };
    let execution =
        match &arguments.execution_id {
            Some(text) => Some(ExecutionId::from_str(text).map_err(|_| {
                invalid(format!("{name}: execution_id is not an execution id; it looks like 01938c5e-…"))
            })?),
            None => None,
        };
    let required = || execution.ok_or_else(|| invalid(format!("{name}: execution_id is required")));
    match name {
        CANCEL => Ok(Builtin::Cancel(required()?)),
        LIST => Ok(Builtin::List),
        RETRY => {
            let reason = arguments.reason.filter(|reason| !reason.trim().is_empty());
            let reason = reason.ok_or_else(|| invalid(format!("{name}: reason is required")))?;
            Ok(Builtin::Retry { execution: required()?, reason })
        }
        _ if arguments.from.is_some() => {
            Ok(Builtin::Part { execution: required()?, from: arguments.from.unwrap_or_default() })
        }
        _ => match arguments.wait_ms {
            Some(wait_ms) if wait_ms < 0 => Err(invalid(format!("{name}: wait_ms must not be negative"))),
            wait_ms => Ok(Builtin::Result { execution, wait_ms }),
        },
    }
}
