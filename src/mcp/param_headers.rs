//! The `Mcp-Param-…` headers of a modern `tools/call`, compared with the arguments (specification 2026-07-28, Streamable
//! HTTP, "Server Behavior for Custom Headers"). Headers that no argument asks for are nobody's business here.

#[cfg(test)]
mod tests;

use axum::http::HeaderMap;
use serde_json::value::RawValue;

use super::headers::{Field, decode};
use super::reject::{RpcError, code};
use crate::model::header_arguments::{self, HeaderArgument, Repeated};

/// Why a header and its argument do not fit; always -32020.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("header mismatch: Mcp-Param-{label} is missing")]
    Missing { label: String },
    #[error("header mismatch: Mcp-Param-{label} is given twice, has invalid characters or bad base64")]
    Invalid { label: String },
    #[error("header mismatch: Mcp-Param-{label} differs from the argument")]
    Differs { label: String },
    #[error("header mismatch: Mcp-Param-{label} is given, its argument is not")]
    Unasked { label: String },
}

impl Mismatch {
    pub fn rpc_error(&self) -> RpcError {
        RpcError::new(code::HEADER_MISMATCH, self.to_string())
    }
}

/// Compares the headers of a call with its arguments, as the definition of its tool asks for. A definition with invalid
/// annotations asks for nothing.
///
/// # Errors
/// The first header that does not fit.
pub fn check(headers: &HeaderMap, definition: &RawValue, arguments: Option<&RawValue>) -> Result<(), Mismatch> {
    let asked = header_arguments::read(definition).unwrap_or_default();
    asked.iter().try_for_each(|argument| compare(headers, argument, arguments.and_then(|given| argument.of(given))))
}

fn compare(headers: &HeaderMap, argument: &HeaderArgument, given: Option<Repeated<'_>>) -> Result<(), Mismatch> {
    let label = || argument.label.clone();
    let name = format!("mcp-param-{}", argument.label.to_ascii_lowercase());
    match (Field::of(headers, &name), given) {
        (Field::Absent, None) => Ok(()),
        (Field::Absent, Some(_)) => Err(Mismatch::Missing { label: label() }),
        (Field::Invalid, _) => Err(Mismatch::Invalid { label: label() }),
        (Field::Value(_), None) => Err(Mismatch::Unasked { label: label() }),
        (Field::Value(value), Some(given)) => match decode(value) {
            None => Err(Mismatch::Invalid { label: label() }),
            Some(said) if given.is_said_by(&said) => Ok(()),
            Some(_) => Err(Mismatch::Differs { label: label() }),
        },
    }
}
