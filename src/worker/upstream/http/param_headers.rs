//! Arguments that a tool wants repeated as `Mcp-Param-…` headers (2026-07-28, `x-mcp-header` in its input schema).
//! Follows `properties` only, as the specification allows the annotation nowhere else; validates no argument.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use reqwest::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::snapshot::Tool;
use super::headers::encoded;

const ANNOTATION: &str = "x-mcp-header";
/// Schemas nested deeper are foreign trouble, not ours.
const MAX_DEPTH: usize = 32;

/// Which argument goes into which header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParamHeader {
    name: HeaderName,
    path: Vec<String>,
}

/// The headers of each tool that has any.
pub(super) type ToolHeaders = HashMap<String, Vec<ParamHeader>>;

/// Takes the tools with invalid annotations out of the list, as the specification asks of a client; returns the headers
/// of the others and the names of those taken out.
pub(super) fn learn(tools: &mut Vec<Tool>) -> (ToolHeaders, Vec<String>) {
    let mut headers = ToolHeaders::new();
    let mut invalid = Vec::new();
    tools.retain(|tool| {
        // Nearly all tools have none; their schemas are not looked into.
        if !tool.raw.get().contains(ANNOTATION) {
            return true;
        }
        match read(&tool.raw) {
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
        }
    });
    (headers, invalid)
}

/// Reads the annotations of one tool; `None` if one of them is invalid.
fn read(tool: &RawValue) -> Option<Vec<ParamHeader>> {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(rename = "inputSchema", default)]
        schema: Value,
    }
    let wire: Wire = serde_json::from_str(tool.get()).ok()?;
    if wire.schema.get(ANNOTATION).is_some() {
        return None;
    }
    let mut found = Vec::new();
    walk(&wire.schema, &mut Vec::new(), &mut found)?;
    let distinct: HashSet<_> = found.iter().map(|header| &header.name).collect();
    (distinct.len() == found.len()).then_some(found)
}

fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) -> Option<()> {
    if path.len() > MAX_DEPTH {
        return None;
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Some(()) };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(annotation) = property.get(ANNOTATION) {
            let label = annotation.as_str().filter(|label| !label.is_empty())?;
            let primitive = matches!(property.get("type")?.as_str()?, "string" | "integer" | "boolean");
            let name = HeaderName::from_bytes(format!("Mcp-Param-{label}").as_bytes()).ok()?;
            primitive.then(|| found.push(ParamHeader { name, path: path.clone() }))?;
        }
        walk(property, path, found)?;
        path.pop();
    }
    Some(())
}

/// Builds the headers for the given arguments; an absent or null argument has none.
pub(super) fn build(headers: &[ParamHeader], arguments: Option<&RawValue>) -> Vec<(HeaderName, HeaderValue)> {
    let Some(arguments) = arguments else { return Vec::new() };
    headers.iter().filter_map(|header| Some((header.name.clone(), value_at(arguments, &header.path)?))).collect()
}

fn value_at(arguments: &RawValue, path: &[String]) -> Option<HeaderValue> {
    let mut at = arguments;
    for member in path {
        let object: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(at.get()).ok()?;
        at = object.get(member.as_str())?;
    }
    match at.get().as_bytes().first()? {
        b'"' => Some(encoded(&serde_json::from_str::<String>(at.get()).ok()?)),
        // The number as it is spelled in the body, so that both are the same number.
        b'-' | b'0'..=b'9' | b't' | b'f' => Some(encoded(at.get())),
        _ => None,
    }
}
