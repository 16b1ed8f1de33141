//! The rows of `tests/hostile.toml` that the pure parts decide. The integration tests send every row to the program.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use super::admit::{self, Body, Entered, Refusal};
use super::envelope::Limits;
use super::headers::{self, Field};
use super::{era, keys};
use crate::model::revision::Revision;

const LIMITS: Limits = Limits { bytes_max: 4 * 1024 * 1024, depth_max: 64, batch_max: 100 };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    row: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    transport: String,
    era: String,
    revision: Option<String>,
    decided_by: String,
    #[serde(default = "post")]
    verb: String,
    path: Option<String>,
    #[serde(default)]
    headers: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    body: String,
    expect: Expect,
    #[serde(default)]
    stored: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    status: Option<u16>,
    #[serde(default = "error")]
    answer: String,
    code: Option<i64>,
    #[serde(default = "one")]
    id: String,
}

fn post() -> String {
    "POST".into()
}

fn error() -> String {
    "error".into()
}

fn one() -> String {
    "1".into()
}

fn rows() -> Vec<Row> {
    let table: Table = toml::from_str(include_str!("../../tests/hostile.toml")).unwrap();
    table.row
}

#[test]
fn every_row_that_the_wire_decides_is_answered_as_the_table_says() {
    for row in rows().iter().filter(|row| row.decided_by == "wire") {
        let refusal = entered(row).expect_err(&row.name);
        let Expect { status, answer, code, id } = &row.expect;
        if let Some(status) = status {
            assert_eq!(refusal.rejection.status, *status, "{}: {:?}", row.name, refusal.rejection.error);
        }
        if answer == "error" {
            assert_eq!(Some(refusal.rejection.error.code), *code, "{}: {:?}", row.name, refusal.rejection.error);
            let written = refusal.id.as_ref().map_or("none", |id| id.raw());
            assert_eq!(written, id, "{}", row.name);
        }
        assert!(!row.stored, "{}", row.name);
    }
}

#[test]
fn every_row_that_the_server_decides_passes_the_wire() {
    for row in rows().iter().filter(|row| row.decided_by == "server" && row.verb == "POST" && !row.body.is_empty()) {
        if let Err(refusal) = entered(row) {
            panic!("{}: {:?}", row.name, refusal.rejection);
        }
    }
}

#[test]
fn the_table_is_well_formed() {
    let rows = rows();
    assert!(rows.len() >= 80);
    let mut names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows.len(), "names are unique");
    for row in &rows {
        let name = &row.name;
        assert!(["http", "stdio"].contains(&&*row.transport), "{name}");
        assert!(["modern", "legacy", "none"].contains(&&*row.era), "{name}");
        assert!(["wire", "server"].contains(&&*row.decided_by), "{name}");
        assert!(["error", "result", "tool_error", "handle", "any", "silence"].contains(&&*row.expect.answer), "{name}");
        assert_eq!(row.transport == "http", row.expect.status.is_some(), "{name}: only HTTP has a status");
        assert_eq!(row.expect.answer == "error", row.expect.code.is_some(), "{name}: an error has a code");
        assert!(row.path.as_ref().is_none_or(|path| path.starts_with('/')), "{name}");
        assert!(row.revision.as_deref().is_none_or(|revision| Revision::find(revision).is_some()), "{name}");
    }
}

/// What the server's transports do with the pure parts, without the server.
fn entered(row: &Row) -> Result<(), Refusal> {
    let body = filled(&row.body);
    let session = (row.era == "legacy").then(|| Revision::find(revision(row)).unwrap());
    if row.transport == "stdio" {
        let entered = admit::stdio(&body, &LIMITS, session)?;
        return served(entered, &HeaderMap::new(), session);
    }
    let headers = header_map(row);
    if row.verb != "POST" {
        let version = Field::of(&headers, headers::PROTOCOL_VERSION);
        let decided = era::decide_stream(version, headers.contains_key(headers::SESSION_ID));
        return decided.map(drop).map_err(|rejection| Refusal { id: None, rejection });
    }
    let entered = admit::http(&body, &LIMITS, &headers)?;
    served(entered, &headers, session)
}

fn served(entered: Entered<'_>, headers: &HeaderMap, session: Option<Revision>) -> Result<(), Refusal> {
    let admitted = match entered {
        Entered::One(admitted) => admitted,
        Entered::Batch(items) => {
            // Elements are refused one by one, each in its own answer.
            assert!(!items.is_empty());
            return era::decide_batch(session).map_err(|rejection| Refusal { id: None, rejection });
        }
    };
    if let Body::Call(call) = &admitted.body {
        let values = headers.get_all(headers::IDEMPOTENCY_KEY).iter().map(HeaderValue::as_bytes);
        keys::resolve(call, values, None).map_err(|error| Refusal {
            id: admitted.message.id().cloned().map(|id| id.into_owned()),
            rejection: era::Rejection { status: 200, error: error.rpc_error() },
        })?;
    }
    Ok(())
}

fn revision(row: &Row) -> &str {
    row.revision.as_deref().unwrap_or("2025-11-25")
}

fn header_map(row: &Row) -> HeaderMap {
    let mut defaults: Vec<String> = vec![
        "Content-Type: application/json".into(),
        "Accept: application/json, text/event-stream".into(),
        "Host: 127.0.0.1:{{port}}".into(),
    ];
    match &*row.era {
        "modern" => defaults.extend(
            ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: demo_echo"].map(str::to_owned),
        ),
        "legacy" => {
            defaults.push(format!("MCP-Protocol-Version: {}", revision(row)));
            defaults.push("Mcp-Session-Id: {{session}}".into());
        }
        _ => {}
    }
    let split = |line: &str| -> (String, String) {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_ascii_lowercase(), value.to_owned())
    };
    let own: Vec<(String, String)> = row.headers.iter().map(|line| split(line)).collect();
    let left_out = |name: &str| {
        row.without.iter().any(|without| without.eq_ignore_ascii_case(name)) || own.iter().any(|(own, _)| own == name)
    };
    let kept = defaults.iter().map(|line| split(line)).filter(|(name, _)| !left_out(name));
    let mut map = HeaderMap::new();
    for (name, value) in kept.chain(own.clone()) {
        let value = value.replace("{{session}}", "session-1").replace("{{port}}", "7400");
        let name = HeaderName::try_from(name).unwrap();
        map.append(name, HeaderValue::from_bytes(&filled(&value)).unwrap());
    }
    map
}

/// Replaces the placeholders of a body.
fn filled(body: &str) -> Vec<u8> {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = body.replace("{{meta}}", meta);
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = &*body;
    loop {
        let times = rest.find("{{times ");
        let byte = rest.find("{{byte ");
        let Some(at) = times.into_iter().chain(byte).min() else {
            bytes.extend_from_slice(rest.as_bytes());
            return bytes;
        };
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let (_, after) = rest[at..].split_once(' ').unwrap();
        if byte == Some(at) {
            bytes.push(u8::from_str_radix(&after[..2], 16).unwrap());
            rest = &after[4..];
            continue;
        }
        let (count, text) = after.split_once(' ').unwrap();
        // The text has at least one character, which may be a brace.
        let end = 1 + text[1..].find("}}").unwrap();
        bytes.extend_from_slice(text[..end].repeat(count.parse().unwrap()).as_bytes());
        rest = &text[end + 2..];
    }
}
