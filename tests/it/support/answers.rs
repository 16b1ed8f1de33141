//! The same list of calls against the same server, directly and through the program, made comparable. Strips what the
//! program may add or change, and nothing else.

use serde_json::{Map, Value, json};

use super::client::{self, Answer, Client, Target};
use super::servers::{self, Server};

/// What a client gets when it stands directly in front of the server, comparable. A client pinned to 2026-07-28 stands
/// in its legacy mode before a server that does not know that revision.
pub async fn direct_answers(client: client::Kind, server: servers::Kind) -> Value {
    let folder = super::scratch();
    let running = Server::start(server, folder.path()).await;
    let client = if server.is_modern() { client } else { client.for_legacy_server() };
    answers_at(client, &running.target, server).await
}

/// What a client gets at any place that shows the tools of such a server under their own names, comparable.
pub async fn answers_at(client: client::Kind, target: &Target, server: servers::Kind) -> Value {
    let client = Client::connect(client, target).await;
    let answers = answers(&client, server).await;
    client.close().await;
    answers
}

/// Lists and makes every call of the server's script, one after the other: `{"tools": […], "calls": {label: answer}}`
/// with `{"result": …}` or `{"error": {code, message, data}}` as answers.
pub async fn answers(client: &Client, server: servers::Kind) -> Value {
    let tools = comparable_tools(client.list().await);
    let mut calls = Map::new();
    for (label, name, arguments) in script(server) {
        let answer = client.call(name, arguments).await;
        assert!(calls.insert(label.to_owned(), comparable(answer)).is_none(), "{label} twice");
    }
    json!({"tools": tools, "calls": calls})
}

/// The answer without what the program may add: `_meta["durable-mcp/…"]`, `resultType`, cache hints, server info.
pub fn comparable(answer: Answer) -> Value {
    match answer {
        Ok(mut result) => {
            strip(&mut result);
            json!({"result": result})
        }
        Err(failure) => json!({"error": {"code": failure.code, "message": failure.message, "data": failure.data}}),
    }
}

/// The tools without the built-in ones.
pub fn comparable_tools(tools: Vec<Value>) -> Vec<Value> {
    let is_builtin = |tool: &Value| tool["name"].as_str().is_some_and(|name| name.starts_with("durable_"));
    tools.into_iter().filter(|tool| !is_builtin(tool)).collect()
}

fn strip(result: &mut Value) {
    let Some(members) = result.as_object_mut() else { return };
    for hint in ["resultType", "ttlMs", "cacheScope"] {
        members.remove(hint);
    }
    let Some(meta) = members.get_mut("_meta").and_then(Value::as_object_mut) else { return };
    meta.retain(|name, _| !name.starts_with("durable-mcp/") && name != "io.modelcontextprotocol/serverInfo");
    if meta.is_empty() {
        members.remove("_meta");
    }
}

/// Label, tool and arguments of each call; answers depend on nothing but these.
fn script(server: servers::Kind) -> Vec<(&'static str, &'static str, Value)> {
    match server {
        servers::Kind::EverythingStdio | servers::Kind::EverythingHttp => vec![
            ("echo", "echo", json!({"message": "héllo \u{1f600} \" \\ \n"})),
            ("sum", "get-sum", json!({"a": 2.5, "b": -4})),
            ("structured", "get-structured-content", json!({"location": "Chicago"})),
            ("image", "get-tiny-image", json!({})),
            ("annotated", "get-annotated-message", json!({"messageType": "error", "includeImage": true})),
            ("links", "get-resource-links", json!({"count": 2})),
            ("long", "trigger-long-running-operation", json!({"duration": 0.2, "steps": 2})),
            ("bad arguments", "get-sum", json!({"a": "two"})),
            ("unknown tool", "no-such-tool", json!({})),
        ],
        servers::Kind::KitStdio | servers::Kind::KitHttp => {
            let mut calls = vec![
                ("append", "append", json!({"text": "once"})),
                ("echo", "echo", json!({"nested": {"list": [1, 2.5, null, "x"]}, "é": ""})),
                ("given back", "structured", json!({"n": 42})),
                ("lookup", "lookup", json!({"text": "once"})),
                ("big", "big", json!({"size": 200_000})),
                ("tool error", "flaky", json!({"name": "f", "failures": 1})),
                ("after the error", "flaky", json!({"name": "f", "failures": 1})),
                ("slow", "slow", json!({"seconds": 0.2})),
                ("rpc error", "rpc_error", json!({"code": 7, "message": "seven", "data": {"why": [1.5, null]}})),
                ("bad arguments", "append", json!({"texts": 1})),
                ("unknown tool", "no_such_tool", json!({})),
            ];
            calls.extend(CORPUS.map(|case| (case, "corpus", json!({"case": case}))));
            calls
        }
        servers::Kind::RmcpStdio | servers::Kind::RmcpHttp => vec![
            ("calculate", "calculate", json!({"a": 6, "b": -7})),
            ("greet", "greet", json!({"name": "Ada"})),
            ("nap", "nap", json!({"milliseconds": 20})),
            ("tool error", "refuse", json!({})),
            ("bad arguments", "calculate", json!({"a": "six"})),
            ("unknown tool", "no_such_tool", json!({})),
        ],
    }
}

/// The corpus cases that clients can read as JSON; the raw tests send all of them.
const CORPUS: [&str; 13] = [
    "duplicate_members",
    "empty",
    "escapes",
    "media",
    "member_order",
    "nested",
    "nulls",
    "resources",
    "structured",
    "tool_error",
    "unicode",
    "unknown_members",
    "whitespace",
];
