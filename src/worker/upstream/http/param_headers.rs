//! The `Mcp-Param-…` headers of a call (2026-07-28): which tools have any, and their values. Which annotations are valid
//! is a rule of the model.

use std::collections::HashMap;

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::value::RawValue;

use super::super::snapshot::Tool;
use super::headers::encoded;
use crate::model::header_arguments::{self, HeaderArgument};

/// Which argument goes into which header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParamHeader {
    name: HeaderName,
    argument: HeaderArgument,
}

/// The headers of each tool that has any.
pub(super) type ToolHeaders = HashMap<String, Vec<ParamHeader>>;

/// Takes the tools with invalid annotations out of the list, as the specification asks of a client; returns the headers
/// of the others and the names of those taken out.
pub(super) fn learn(tools: &mut Vec<Tool>) -> (ToolHeaders, Vec<String>) {
    let mut headers = ToolHeaders::new();
    let mut invalid = Vec::new();
    tools.retain(|tool| match read(&tool.raw) {
        Some(found) => {
            if !found.is_empty() {
                headers.insert(tool.name.clone(), found);
            }
            true
        }
        None => {
            invalid.push(tool.name.clone());
            false
        }
    });
    (headers, invalid)
}

fn read(tool: &RawValue) -> Option<Vec<ParamHeader>> {
    let named = |argument: HeaderArgument| {
        let name = HeaderName::from_bytes(format!("Mcp-Param-{}", argument.label).as_bytes()).ok()?;
        Some(ParamHeader { name, argument })
    };
    header_arguments::read(tool)?.into_iter().map(named).collect()
}

/// Builds the headers for the given arguments; an absent or null argument has none.
pub(super) fn build(headers: &[ParamHeader], arguments: Option<&RawValue>) -> Vec<(HeaderName, HeaderValue)> {
    let Some(arguments) = arguments else { return Vec::new() };
    let header = |header: &ParamHeader| Some((header.name.clone(), encoded(header.argument.of(arguments)?.as_str())));
    headers.iter().filter_map(header).collect()
}
