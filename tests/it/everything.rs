//! The official `server-everything` through the program: resources, templates, prompts, completion, logging and
//! subscriptions are what they are without it; two servers are merged. Tools are in `through`.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::skip_loudly;
use crate::support;
use crate::support::answers::comparable;
use crate::support::client::{Client, Kind, Mode, Target};
use crate::support::program::{Setup, server_table};
use crate::support::raw_http::{Connection, Request};
use crate::support::servers::{self, Server, everything_stdio};

macro_rules! each_client {
    ($($name:ident: $kind:expr,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            skip_loudly!(support::clients_are_set_up());
            for server in [servers::Kind::EverythingStdio, servers::Kind::EverythingHttp] {
                gets_the_same($kind, server).await;
            }
        }
    )*};
}

each_client! {
    typescript_1_gets_the_same_besides_tools_through_the_program: Kind::Sdk1,
    typescript_2_auto_gets_the_same_besides_tools_through_the_program: Kind::Client2(Mode::Auto),
    python_legacy_gets_the_same_besides_tools_through_the_program: Kind::Python(Mode::Legacy),
    python_auto_gets_the_same_besides_tools_through_the_program: Kind::Python(Mode::Auto),
}

async fn gets_the_same(client: Kind, server: servers::Kind) {
    let folder = support::scratch();
    let direct = {
        let running = Server::start(server, folder.path()).await;
        answers_at(client, &running.target).await
    };
    let served = {
        let setup = Setup::new("");
        let running = Server::start(server, setup.folder()).await;
        let program = setup.config(&server_table("it", &running.target, "")).serve().await;
        answers_at(client, &program.target()).await
    };
    let wrapped = {
        let setup = Setup::new("");
        let running = Server::start(server, setup.folder()).await;
        answers_at(client, &setup.wrap(&running.target)).await
    };
    assert!(direct["read listed"]["result"]["contents"][0]["text"].is_string(), "{direct:?}");
    assert!(direct["prompt"]["result"]["messages"].is_array(), "{direct:?}");
    for (place, answers) in [("serve", &served), ("wrap", &wrapped)] {
        for (label, answer) in &direct {
            assert_eq!(&answers[label], answer, "{label} of {server:?} for {client:?} through {place}");
        }
    }
}

/// What a client gets of everything but tools, comparable.
async fn answers_at(kind: Kind, target: &Target) -> BTreeMap<&'static str, Value> {
    let client = Client::connect(kind, target).await;
    let mut answers = BTreeMap::new();
    let capabilities = client.request("capabilities", json!({})).await.unwrap();
    for name in ["resources", "prompts", "completions", "logging"] {
        answers.insert(name, capabilities[name].clone());
    }
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    let team = json!({"department": "Sales", "name": "Eve"});
    let template = json!({"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"});
    for (label, method, params) in [
        ("resources listed", "resources/list", json!({})),
        ("templates listed", "resources/templates/list", json!({})),
        ("prompts listed", "prompts/list", json!({})),
        ("read listed", "resources/read", json!({"uri": "demo://resource/static/document/features.md"})),
        ("read text", "resources/read", json!({"uri": "demo://resource/dynamic/text/7"})),
        ("prompt", "prompts/get", json!({"name": "simple-prompt"})),
        ("prompt with arguments", "prompts/get", json!({"name": "completable-prompt", "arguments": team})),
        (
            "prompt completed",
            "completion/complete",
            json!({"ref": prompt("completable-prompt"), "argument": {"name": "department", "value": "S"}}),
        ),
        (
            "prompt completed in context",
            "completion/complete",
            json!({"ref": prompt("completable-prompt"), "argument": {"name": "name", "value": "E"},
                   "context": {"arguments": {"department": "Sales"}}}),
        ),
        (
            "template completed",
            "completion/complete",
            json!({"ref": template, "argument": {"name": "resourceId", "value": "7"}}),
        ),
    ] {
        let answer = client.request(method, params).await;
        answers.insert(label, without_time(comparable(answer)));
    }
    for (label, method, params) in [
        ("resource unknown", "resources/read", json!({"uri": "demo://nothing"})),
        ("prompt unknown", "prompts/get", json!({"name": "no-such-prompt"})),
    ] {
        let failure = client.request(method, params).await.unwrap_err();
        answers.insert(label, failure.code);
    }
    client.close().await;
    answers
}

/// Dynamic resources tell when they were made.
fn without_time(mut answer: Value) -> Value {
    if let Some(text) = answer.pointer_mut("/result/contents/0/text")
        && let Some(at) = text.as_str().and_then(|text| text.find(" created at "))
    {
        *text = json!(text.as_str().unwrap()[..at]);
    }
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn legacy_clients_hear_of_resources_they_subscribed_to_and_log_notices() {
    skip_loudly!(support::clients_are_set_up());
    for server in [servers::Kind::EverythingStdio, servers::Kind::EverythingHttp] {
        let setup = Setup::new("");
        let running = Server::start(server, setup.folder()).await;
        let table = |more: &str| server_table("it", &running.target, more);
        let own = Setup::new(&table("isolation = \"session\"")).serve().await;
        hears_what_it_asked_for(Kind::Sdk1, &own.target(), true).await;
        // What a server logs on a leg that others use too may be about them.
        let shared = setup.config(&table("")).serve().await;
        hears_what_it_asked_for(Kind::Python(Mode::Legacy), &shared.target(), false).await;
        hears_what_it_asked_for(Kind::Sdk1, &Setup::new("").wrap(&running.target), true).await;
    }
}

async fn hears_what_it_asked_for(kind: Kind, target: &Target, logs: bool) {
    let client = Client::connect(kind, target).await;
    client.request("logging/setLevel", json!({"level": "debug"})).await.unwrap();
    let uri = "demo://resource/static/document/features.md";
    client.request("resources/subscribe", json!({ "uri": uri })).await.unwrap();
    client.call("toggle-subscriber-updates", json!({})).await.unwrap();
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], uri, "{kind:?}");
    if logs {
        let message = client.notification("notifications/message").await;
        assert!(message["params"]["level"].is_string(), "{kind:?}: {message}");
    }
    client.request("resources/unsubscribe", json!({ "uri": uri })).await.unwrap();
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_modern_client_listens_to_resources_of_a_legacy_server() {
    skip_loudly!(support::clients_are_set_up());
    let setup = Setup::new("");
    let program = setup.config(&server_table("it", &everything_stdio(), "")).serve().await;
    let client = Client::connect(Kind::Client2(Mode::Modern), &program.target()).await;
    let uri = "demo://resource/static/document/features.md";
    let filter = json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": [uri]});
    let listening = client.request("subscriptions/listen", json!({ "notifications": filter })).await.unwrap();
    assert_eq!(listening["honoured"], filter);
    client.call("toggle-subscriber-updates", json!({})).await.unwrap();
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], uri);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_are_merged_in_the_order_of_configuration() {
    skip_loudly!(support::clients_are_set_up());
    let table = |name: &str| server_table(name, &everything_stdio(), "").replace("prefix = \"\"\n", "");
    let program = Setup::new(&format!("{}{}", table("left"), table("right"))).serve().await;
    let client = Client::connect(Kind::Sdk1, &program.target()).await;
    let prompts = client.request("prompts/list", json!({})).await.unwrap();
    let names: Vec<&str> =
        prompts["prompts"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"left__simple-prompt") && names.contains(&"right__simple-prompt"), "{names:?}");
    assert!(names.is_sorted_by_key(|name| name.starts_with("right__")), "{names:?}");
    let prompt = client.request("prompts/get", json!({"name": "right__simple-prompt"})).await.unwrap();
    assert!(prompt["messages"].is_array());
    let resources = client.request("resources/list", json!({})).await.unwrap();
    let mut uris: Vec<&str> =
        resources["resources"].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap()).collect();
    let listed = uris.len();
    uris.sort_unstable();
    uris.dedup();
    assert_eq!(uris.len(), listed, "each URI once");
    client.close().await;
    let log = program.process.stderr();
    let reported = log.matches("features.md was left out: left has one of that name").count();
    assert_eq!(reported, 1, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_modern_stream_ends_with_a_result_when_the_program_stops() {
    let program = Setup::new("").flag("--demo").serve().await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = Request::modern(program.url(), json!("sub"), "subscriptions/listen", params);
    let mut stream = Connection::open(program.url()).await;
    stream.send(&listen.bytes()).await;
    assert_eq!(stream.response_head().await.status, 200);
    let first: Value = serde_json::from_str(&stream.event().await.unwrap().data).unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    program.process.signal(Signal::TERM);
    let last: Value = serde_json::from_str(&stream.event().await.unwrap().data).unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!("sub"), &json!("complete")));
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
}
