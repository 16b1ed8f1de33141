//! What passes through keeps its bytes: results, arguments, tool definitions and errors, in both eras, over HTTP and
//! stdio, before upstreams over either. Only the members that the program adds are cut out before comparing.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

use crate::support::client::{Place, Target};
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup, server_table};
use crate::support::raw_http::{Request, open_session};
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::{Server, kit_http, kit_stdio};

/// The envelope of 2026-07-28, without its braces.
const ENVELOPE: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}"#;

/// A way to send the exact text of a request and get the exact text of its answer.
pub enum Door {
    Http { url: String, session: Option<String> },
    Stdio { server: Box<RawStdio>, modern: bool, count: u32 },
}

impl Door {
    /// One door of each era.
    pub async fn both(target: &Target) -> Vec<Door> {
        match &target.place {
            Place::Url(url) => vec![
                Door::Http { url: url.clone(), session: open_session(url, "2025-11-25").await },
                Door::Http { url: url.clone(), session: None },
            ],
            Place::Command(_) => vec![
                Door::Stdio { server: Box::new(RawStdio::open(target, "2025-11-25").await), modern: false, count: 0 },
                Door::Stdio { server: Box::new(RawStdio::start(target)), modern: true, count: 0 },
            ],
        }
    }

    pub fn is_modern(&self) -> bool {
        match self {
            Door::Http { session, .. } => session.is_none(),
            Door::Stdio { modern, .. } => *modern,
        }
    }

    /// The part of a result that a client of the revision can read: up to 2025-11-25 no structured content but objects.
    fn reads(&self, text: &str) -> String {
        match self.is_modern() {
            true => text.to_owned(),
            false => text.replace(r#","structuredContent":[1,2.0,null]"#, ""),
        }
    }

    /// Sends a request; `params` are the members of its params, `meta` those of its `_meta`, both without braces.
    pub async fn ask(&mut self, method: &str, params: &str, meta: &str) -> String {
        let envelope = if self.is_modern() { ENVELOPE } else { "" };
        let meta = [meta, envelope].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(",");
        let comma = if params.is_empty() { "" } else { "," };
        let params = format!("{{{params}{comma}\"_meta\":{{{meta}}}}}");
        let text = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        match self {
            Door::Http { url, session } => {
                let Called { name, uri } = serde_json::from_str(&params).unwrap();
                let name = if name.is_null() { uri } else { name };
                let request = match session {
                    Some(session) => Request::legacy(url, Some(session), &text(1)),
                    None => Request::modern_text(url, method, name.as_str(), &text(1)),
                };
                request.exchange(url).await.messages().pop().expect("an answer")
            }
            Door::Stdio { server, count, .. } => {
                *count += 1;
                server.send(&text(*count)).await;
                server.answer(&json!(count)).await
            }
        }
    }

    pub async fn call(&mut self, name: &str, arguments: &str) -> String {
        self.ask("tools/call", &format!(r#""name":"{name}","arguments":{arguments}"#), "").await
    }
}

#[derive(Deserialize)]
struct Called {
    #[serde(default)]
    name: Value,
    #[serde(default)]
    uri: Value,
}

/// The parts of an answer as they were written.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

pub fn result(message: &str) -> &str {
    let answer: Answer = serde_json::from_str(message).unwrap();
    answer.result.unwrap_or_else(|| panic!("no result: {message}")).get()
}

pub fn error(message: &str) -> &str {
    let answer: Answer = serde_json::from_str(message).unwrap();
    answer.error.unwrap_or_else(|| panic!("no error: {message}")).get()
}

/// The result without the members that the program, and a modern server, add to it.
pub fn without_additions(result: &str) -> String {
    let mut text = result.to_owned();
    cut(&mut text, "\"resultType\":\"complete\"", "");
    let added = [
        cut(&mut text, "\"durable-mcp/execution\":{", "}"),
        cut(&mut text, "\"io.modelcontextprotocol/serverInfo\":{", "}"),
    ];
    if added.contains(&true) {
        cut(&mut text, "\"_meta\":{}", "");
    }
    text
}

/// Cuts one member out, from `start` to the next `end`, with the comma before it, else the one after it.
pub fn cut(text: &mut String, start: &str, end: &str) -> bool {
    let Some(from) = text.rfind(start) else { return false };
    let after = from + start.len();
    let to = after + text[after..].find(end).unwrap() + end.len();
    let (from, to) = match (text[..from].ends_with(','), text[to..].starts_with(',')) {
        (true, _) => (from - 1, to),
        (false, true) => (from, to + 1),
        (false, false) => (from, to),
    };
    text.replace_range(from..to, "");
    true
}

/// Name and exact text of every corpus case.
pub fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let cases = std::fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), text.trim_end().to_owned())
    });
    cases.collect()
}

pub const ARGUMENTS: [&str; 6] = [
    r#"{}"#,
    r#"{"float":1.0,"trailing":1.50,"exponent":1E+2,"negative_zero":-0.0,"long":123456789012345678901234567890}"#,
    r#"{"fraction":0.1000000000000000055511151231257827021181583404541015625,"beyond_double":9007199254740993}"#,
    r#"{ "white" :	[ 1 ,2 ] , "z":1,"a":2 }"#,
    r#"{"escapes":"\u0041\/\u00e9\ud83d\ude00\b\t\u0000é😀","\u006bey":"\\"}"#,
    r#"{"null":null,"list":[null,{"deep":[[],{},null,true]}],"x-unknown":{"any":1e0}}"#,
];

pub const ERRORS: [&str; 3] = [
    r#"{"code":7,"message":"seven","data":{"why":[1.0,null,123456789012345678901234567890],"x":"\u00e9\/"}}"#,
    r#"{"code":-32050,"message":"\"quoted\" 😀"}"#,
    r#"{"code":-32602,"message":"of the upstream","data":null}"#,
];

/// Everything that has to pass, through each door of `target`.
async fn passes(target: &Target, place: &str) {
    let mut direct = Door::both(&kit_stdio(&[])).await.swap_remove(0);
    let direct_list = direct.ask("tools/list", "", "").await;
    for mut door in Door::both(target).await {
        let place = format!("{place}, {}", if door.is_modern() { "2026-07-28" } else { "2025-11-25" });
        for (case, text) in corpus() {
            let answer = door.call("corpus", &format!(r#"{{"case":"{case}"}}"#)).await;
            assert_eq!(without_additions(result(&answer)), door.reads(&text), "{case} through {place}");
        }
        for arguments in ARGUMENTS {
            let answer = door.call("echo", arguments).await;
            assert_eq!(texts(&answer)[0], arguments, "through {place}");
            let params = format!(r#""name":"received","arguments":{arguments}"#);
            let answer = door.ask("tools/call", &params, r#""kit.example/n":1.0,"kit.example/s":"\u00e9""#).await;
            let received = &texts(&answer)[0];
            assert!(received.contains(&format!(r#""arguments":{arguments}"#)), "{received} through {place}");
            assert!(received.contains(r#""kit.example/n":1.0,"kit.example/s":"\u00e9""#), "{received} through {place}");
        }
        // So long that it is never put into one text with its message.
        let long = format!(r#"{{"long":"{}" ,"n":1.0}}"#, r"é\n\u00e9".repeat(20_000));
        let (expected, answer) = (direct.call("echo", &long).await, door.call("echo", &long).await);
        let same = without_additions(result(&answer)) == without_additions(result(&expected));
        assert!(same && texts(&answer)[0] == long, "{} bytes through {place}", answer.len());
        // No text, so no arguments; but who sent it is told, and does not wait in vain.
        let refused = door.call("echo", r#"{"half a pair":"\ud83d"}"#).await;
        assert!(error(&refused).contains("-32700") && refused.contains("\"id\":"), "{refused} through {place}");
        let big = format!(r#"{{"code":8,"message":"big","data":"{}"}}"#, "0123456789".repeat(50_000));
        for arguments in ERRORS.into_iter().chain([big.as_str()]) {
            let (expected, answer) =
                (direct.call("rpc_error", arguments).await, door.call("rpc_error", arguments).await);
            assert_eq!(error(&answer), error(&expected), "through {place}");
        }
        let list = door.ask("tools/list", "", "").await;
        let (tools, expected) = (tools(&list), tools(&direct_list));
        for (tool, expected) in tools.iter().zip(&expected) {
            // The one member that we add, at the end: a call may be a task of 2025-11-25.
            let task = match door.is_modern() || expected.contains("\"execution\":") {
                true => "}",
                false => r#","execution":{"taskSupport":"optional"}}"#,
            };
            let expected = format!("{}{task}", expected.strip_suffix('}').unwrap());
            assert_eq!(*tool, expected, "through {place}");
        }
        assert!(tools.len() >= expected.len(), "through {place}");
    }
}

fn texts(message: &str) -> Vec<String> {
    let result: Value = serde_json::from_str(result(message)).unwrap_or_else(|error| panic!("{error}: {message}"));
    let content = result["content"].as_array().unwrap_or_else(|| panic!("no content: {message}"));
    content.iter().map(|part| part["text"].as_str().unwrap().to_owned()).collect()
}

fn tools(message: &str) -> Vec<&str> {
    #[derive(Deserialize)]
    struct Listed<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
    }
    serde_json::from_str::<Listed>(result(message)).unwrap().tools.into_iter().map(RawValue::get).collect()
}

async fn served(upstream: &Target, more: &str) -> Program {
    Setup::new(&format!("{more}\n{}", server_table("kit", upstream, ""))).serve().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_pass_serve_before_a_stdio_server() {
    let program = served(&kit_stdio(&["--era", "both"]), "").await;
    passes(&program.target(), "serve before stdio").await;
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_pass_serve_as_a_stream_before_http_servers_of_either_era() {
    for flags in [["--era", "both", "--response", "auto"], ["--era", "legacy", "--response", "sse"]] {
        let kit = kit_http(&flags).await;
        let program = served(&kit.target, "[server]\nresponse = \"sse\"").await;
        passes(&program.target(), &format!("serve (SSE) before HTTP {flags:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_pass_wrap_before_a_command_and_before_a_url() {
    let kit: Server = kit_http(&["--era", "both"]).await;
    for (upstream, place) in [(kit_stdio(&[]), "wrap -- CMD"), (kit.target.clone(), "wrap --url")] {
        let setup = Setup::new("");
        passes(&setup.wrap(&upstream), place).await;
        setup.check_store().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_pass_under_a_prefix_with_a_key_and_again_from_the_store() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--ledger", ledger.path()]);
    let config = server_table("kit", &kit, "").replace("prefix = \"\"", "prefix = \"far__\"");
    let mut program = setup.config(&config).serve().await;
    for round in ["fresh", "stored", "stored, after a kill"] {
        if round == "stored, after a kill" {
            program = program.restart().await;
        }
        for mut door in Door::both(&program.target()).await {
            for (case, text) in corpus() {
                let params = format!(r#""name":"far__corpus","arguments":{{"case":"{case}"}}"#);
                let key = format!(r#""durable-mcp/idempotencyKey":"{case}""#);
                let answer = door.ask("tools/call", &params, &key).await;
                assert_eq!(without_additions(result(&answer)), door.reads(&text), "{case}, {round}");
            }
            let list = door.ask("tools/list", "", "").await;
            let echo = tools(&list).into_iter().find(|tool| tool.contains("\"far__echo\"")).unwrap();
            assert!(echo.contains(r#""x-kit":{"list":[null,1e2,{"deep":"\u00e9"}]}"#), "{echo}");
        }
    }
    let checked = program.check_store().await;
    assert_eq!(checked.executions.len(), corpus().len(), "one execution for a key, in either era");
}
