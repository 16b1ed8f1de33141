//! What is no tool keeps its bytes, too: lists of resources, templates and prompts, what is read and got and completed,
//! its errors, and the parameters on their way, in both eras, over HTTP and stdio, before upstreams over either.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exact_bytes::{ARGUMENTS, Door, ERRORS, corpus, cut, error, result, without_additions};
use crate::support::client::Target;
use crate::support::program::{Setup, server_table};
use crate::support::servers::{kit_http, kit_stdio};

/// A list, its member, and what names one of its entries.
const LISTS: [(&str, &str, &str); 3] = [
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompts/list", "prompts", "name"),
];

/// The params of each request that is passed on, by the case that it asks for.
fn requests(case: &str) -> [(&'static str, String); 3] {
    [
        ("resources/read", format!(r#""uri":"corpus://{case}""#)),
        ("prompts/get", format!(r#""name":"{case}""#)),
        ("completion/complete", format!(r#""ref":{{"type":"ref/prompt","name":"{case}"}},"argument":{{"name":"n"}}"#)),
    ]
}

/// The result without what the program, and a modern server, add to it.
fn plain(message: &str) -> String {
    let mut text = result(message).to_owned();
    cut(&mut text, "\"ttlMs\":0", "");
    cut(&mut text, "\"cacheScope\":\"private\"", "");
    without_additions(&text)
}

fn entries<'m>(message: &'m str, member: &str) -> Vec<&'m str> {
    let members: std::collections::HashMap<String, &RawValue> = serde_json::from_str(result(message)).unwrap();
    let entries = members.get(member).unwrap_or_else(|| panic!("no {member}: {message}"));
    serde_json::from_str::<Vec<&RawValue>>(entries.get()).unwrap().into_iter().map(RawValue::get).collect()
}

/// The `params` that the server has seen, which it answers in the text of a resource or a prompt.
fn seen(message: &str) -> String {
    #[derive(Deserialize)]
    struct Seen {
        #[serde(default)]
        contents: Vec<Value>,
        #[serde(default)]
        messages: Vec<Value>,
    }
    let seen: Seen = serde_json::from_str(result(message)).unwrap();
    let contents = seen.contents.iter().map(|part| &part["text"]);
    let text = contents.chain(seen.messages.iter().map(|message| &message["content"]["text"])).next();
    text.and_then(Value::as_str).unwrap_or_else(|| panic!("no text: {message}")).to_owned()
}

async fn passes(target: &Target, place: &str) {
    let mut direct = Door::both(&kit_stdio(&["--offers"])).await.swap_remove(0);
    for mut door in Door::both(target).await {
        let place = format!("{place}, {}", if door.is_modern() { "2026-07-28" } else { "2025-11-25" });
        for (method, member, name) in LISTS {
            let (expected, answer) = (direct.ask(method, "", "").await, door.ask(method, "", "").await);
            let (expected, found) = (entries(&expected, member), entries(&answer, member));
            assert_eq!(found, expected, "{method} through {place}");
            for (_, text) in corpus() {
                let whole = |entry: &&str| entry.contains(&format!("\"x-case\":{text},\"x-number\":1.50"));
                assert_eq!(found.iter().filter(|entry| whole(entry)).count(), 1, "{text} by {name} through {place}");
            }
        }
        for (case, text) in corpus() {
            for (method, params) in requests(&case) {
                let expected = direct.ask(method, &params, "").await;
                let answer = door.ask(method, &params, "").await;
                assert_eq!(plain(&answer), result(&expected), "{method} of {case} through {place}");
                assert!(result(&expected).contains(&format!("\"x-case\":{text}")), "{expected}");
            }
        }
        for arguments in ARGUMENTS {
            let meta = r#""kit.example/n":1.0,"kit.example/s":"\u00e9""#;
            for (method, params) in &requests("no_case")[..2] {
                let answer = door.ask(method, &format!(r#"{params},"x-more":{arguments}"#), meta).await;
                let seen = seen(&answer);
                assert!(seen.contains(&format!(r#""x-more":{arguments}"#)), "{seen} through {place}");
                assert!(seen.contains(meta), "{seen} through {place}");
            }
        }
        let failing = [
            ("resources/read", r#""uri":"error://x""#),
            ("prompts/get", r#""name":"error""#),
            ("completion/complete", r#""ref":{"type":"ref/prompt","name":"error"},"argument":{"name":"n"}"#),
        ];
        for (method, params) in failing {
            for wanted in ERRORS {
                let answer = door.ask(method, &format!(r#"{params},"error":{wanted}"#), "").await;
                assert_eq!(error(&answer), wanted, "{method} through {place}");
            }
            // The code that 2026-07-28 has not, and nothing else of it, becomes the one it has.
            let missing = r#"{"message":"gone","x":1.0,"code":-32002,"data":{"n":9007199254740993}}"#;
            let answer = door.ask(method, &format!(r#"{params},"error":{missing}"#), "").await;
            let wanted = if door.is_modern() { missing.replace("-32002", "-32602") } else { missing.to_owned() };
            assert_eq!(error(&answer), wanted, "{method} through {place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_of_what_is_no_tool_pass_serve_before_a_stdio_server() {
    let kit = kit_stdio(&["--offers", "--era", "both"]);
    let program = Setup::new(&server_table("kit", &kit, "")).serve().await;
    passes(&program.target(), "serve before stdio").await;
    // The lists as they were stored, before the server is up again.
    let slow = kit_stdio(&["--offers", "--era", "both", "--delay-start", "2000"]);
    let setup = program.setup.clone().config(&server_table("kit", &slow, ""));
    let program = program.restart_as(&setup).await;
    passes(&program.target(), "serve before stdio, restarted").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_of_what_is_no_tool_pass_serve_as_a_stream_before_http_servers_of_either_era() {
    for era in ["both", "legacy"] {
        let kit = kit_http(&["--offers", "--era", era]).await;
        let config = format!("[server]\nresponse = \"sse\"\n{}", server_table("kit", &kit.target, ""));
        let program = Setup::new(&config).serve().await;
        passes(&program.target(), &format!("serve (SSE) before HTTP, {era}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_of_what_is_no_tool_pass_wrap_before_a_command_and_before_a_url() {
    let kit = kit_http(&["--offers", "--era", "both"]).await;
    for (upstream, place) in [(kit_stdio(&["--offers"]), "wrap -- CMD"), (kit.target.clone(), "wrap --url")] {
        passes(&Setup::new("").wrap(&upstream), place).await;
    }
}
