//! Real clients before real servers, directly and through the program: the answers are the same. Exact bytes are in
//! `exact_bytes`, what the program adds of its own in `handles` and `lists`.

use serde_json::{Value, json};

use crate::skip_loudly;
use crate::support::answers::{answers_at, direct_answers};
use crate::support::client::{Kind, Mode};
use crate::support::program::{Setup, server_table};
use crate::support::servers::{self, Server};
use crate::support::{self};

macro_rules! each_client {
    ($($name:ident: $kind:expr,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            for server in servers::Kind::ALL {
                if server.needs_set_up() || $kind.needs_set_up() {
                    skip_loudly!(support::clients_are_set_up());
                }
                gets_the_same_answers($kind, server).await;
            }
        }
    )*};
}

each_client! {
    typescript_1_gets_the_same_answers_through_the_program: Kind::Sdk1,
    typescript_2_legacy_gets_the_same_answers_through_the_program: Kind::Client2(Mode::Legacy),
    typescript_2_auto_gets_the_same_answers_through_the_program: Kind::Client2(Mode::Auto),
    typescript_2_pinned_gets_the_same_answers_through_the_program: Kind::Client2(Mode::Modern),
    python_legacy_gets_the_same_answers_through_the_program: Kind::Python(Mode::Legacy),
    python_auto_gets_the_same_answers_through_the_program: Kind::Python(Mode::Auto),
    python_pinned_gets_the_same_answers_through_the_program: Kind::Python(Mode::Modern),
    rmcp_initialize_gets_the_same_answers_through_the_program: Kind::Rmcp(Mode::Legacy),
    rmcp_auto_gets_the_same_answers_through_the_program: Kind::Rmcp(Mode::Auto),
    rmcp_discover_gets_the_same_answers_through_the_program: Kind::Rmcp(Mode::Modern),
}

/// `serve` before the server as an upstream, and `wrap` before its command or its URL.
async fn gets_the_same_answers(client: Kind, server: servers::Kind) {
    let (mut direct, mut served, mut wrapped) =
        tokio::join!(direct_answers(client, server), served_answers(client, server), wrapped_answers(client, server));
    // The one call that reaches no server: who answers it differs, and so may the words.
    for (place, answers) in [("direct", &mut direct), ("serve", &mut served), ("wrap", &mut wrapped)] {
        let unknown = answers["calls"].as_object_mut().unwrap().remove("unknown tool").unwrap();
        if place != "direct" {
            assert_eq!(unknown["error"]["code"], -32602, "{client:?} {server:?} {place}: {unknown}");
        }
    }
    check(server, &direct);
    if matches!(client, Kind::Client2(Mode::Auto | Mode::Modern)) && !server.is_modern() {
        // Directly it speaks 2025-11-25 here; in 2026-07-28 it hides this member from its user. `exact_bytes` sees it pass.
        for tool in direct["tools"].as_array_mut().unwrap() {
            tool.as_object_mut().unwrap().remove("execution");
        }
    }
    if matches!(client, Kind::Sdk1 | Kind::Client2(Mode::Legacy) | Kind::Python(Mode::Legacy)) {
        // A tool may be called as a task of 2025-11-25 whatever its server knows of tasks, and says so unless the server has.
        for tool in direct["tools"].as_array_mut().unwrap() {
            tool.as_object_mut().unwrap().entry("execution").or_insert(json!({"taskSupport": "optional"}));
        }
    }
    for (place, answers) in [("serve", &served), ("wrap", &wrapped)] {
        assert_eq!(answers["tools"], direct["tools"], "the tools of {server:?} for {client:?} through {place}");
        for (label, answer) in direct["calls"].as_object().unwrap() {
            assert_eq!(&answers["calls"][label], answer, "{label} of {server:?} for {client:?} through {place}");
        }
        assert_eq!(answers, &direct);
    }
}

async fn served_answers(client: Kind, server: servers::Kind) -> Value {
    let setup = Setup::new("");
    let running = Server::start(server, setup.folder()).await;
    let program = setup.config(&server_table("it", &running.target, "")).serve().await;
    let answers = answers_at(client, &program.target(), server).await;
    program.check_store().await;
    answers
}

async fn wrapped_answers(client: Kind, server: servers::Kind) -> Value {
    let setup = Setup::new("");
    let running = Server::start(server, setup.folder()).await;
    let answers = answers_at(client, &setup.wrap(&running.target), server).await;
    setup.check_store().await;
    answers
}

/// What every client has to understand alike; the rest of an answer is as each client shows it.
fn check(server: servers::Kind, answers: &Value) {
    let tools: Vec<&str> =
        answers["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    let calls = &answers["calls"];
    let text = |label: &str| calls[label]["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    match server {
        servers::Kind::EverythingStdio | servers::Kind::EverythingHttp => {
            assert!(tools.contains(&"get-structured-content"), "{tools:?}");
            assert_eq!(text("echo"), "Echo: héllo \u{1f600} \" \\ \n");
            assert_eq!(text("sum"), "The sum of 2.5 and -4 is -1.5.");
            assert_eq!(calls["structured"]["result"]["structuredContent"]["temperature"], 36);
            assert_eq!(calls["image"]["result"]["content"][1]["mimeType"], "image/png");
        }
        servers::Kind::KitStdio | servers::Kind::KitHttp => {
            assert_eq!(tools.len(), 19, "{tools:?}");
            assert_eq!(text("append"), "appended once");
            assert_eq!(calls["lookup"]["result"]["structuredContent"], json!({"found": true, "count": 1, "done": 1}));
            assert_eq!(text("big").len(), 200_000);
            assert_eq!(calls["tool error"]["result"]["isError"], true);
            assert_eq!(text("after the error"), "f succeeded at run 2");
            assert_eq!(calls["rpc error"]["error"]["code"], 7, "{calls}");
            assert_eq!(text("empty"), "");
        }
        servers::Kind::RmcpStdio | servers::Kind::RmcpHttp => {
            assert_eq!(tools.len(), 4, "{tools:?}");
            assert_eq!(calls["calculate"]["result"]["structuredContent"], json!({"sum": -1, "product": -42}));
            assert_eq!(text("greet"), "Hello, Ada!");
            assert_eq!(calls["tool error"]["result"]["isError"], true);
        }
    }
}
