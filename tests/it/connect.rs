//! `connect` between real stdio clients and a running `serve`: the answers are those of the server, a server that dies in
//! the middle of a call costs no answer and no second run, and what it says for itself is clear.

use std::time::Duration;

use serde_json::{Value, json};

use crate::skip_loudly;
use crate::support::answers::answers_at;
use crate::support::client::{Call, Client, Kind, Mode, Target};
use crate::support::cluster::free_port;
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup, server_table};
use crate::support::raw_http::{Request, open_session};
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::{self, Server, kit_http, kit_stdio};
use crate::support::{self, DEADLINE, eventually, program_binary};

/// The command line of a client's entry.
fn connect(url: &str, more: &[&str]) -> Target {
    let program = program_binary();
    Target::command([&[program.to_str().unwrap(), "connect", "--url", url], more].concat())
}

/// A server before the fixture over stdio, and the fixture's ledger.
async fn kit_program(more: &str) -> (Program, Ledger) {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--era", "both", "--ledger", ledger.path()]);
    let program = setup.config(&format!("{}\n{more}", server_table("kit", &kit, ""))).serve().await;
    (program, ledger)
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

fn execution(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["durable-mcp/execution"]
}

macro_rules! each_client {
    ($($name:ident: $kind:expr,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            if $kind.needs_set_up() {
                skip_loudly!(support::clients_are_set_up());
            }
            gets_the_same_answers($kind).await;
        }
    )*};
}

each_client! {
    typescript_1_gets_the_answers_of_the_server: Kind::Sdk1,
    typescript_2_auto_gets_the_answers_of_the_server: Kind::Client2(Mode::Auto),
    typescript_2_pinned_gets_the_answers_of_the_server: Kind::Client2(Mode::Modern),
    python_legacy_gets_the_answers_of_the_server: Kind::Python(Mode::Legacy),
    python_auto_gets_the_answers_of_the_server: Kind::Python(Mode::Auto),
    rmcp_initialize_gets_the_answers_of_the_server: Kind::Rmcp(Mode::Legacy),
    rmcp_discover_gets_the_answers_of_the_server: Kind::Rmcp(Mode::Modern),
}

async fn gets_the_same_answers(client: Kind) {
    let at = async |through: bool| {
        let setup = Setup::new("");
        let running = Server::start(servers::Kind::KitStdio, setup.folder()).await;
        let program = setup.config(&server_table("it", &running.target, "")).serve().await;
        let target = if through { connect(program.url(), &[]) } else { program.target() };
        let answers = answers_at(client, &target, servers::Kind::KitStdio).await;
        program.check_store().await;
        answers
    };
    let (served, connected) = tokio::join!(at(false), at(true));
    assert_eq!(connected, served, "{client:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_and_arguments_keep_their_bytes_in_both_eras() {
    let (program, _) = kit_program("").await;
    let url = program.url().to_owned();
    let session = open_session(&url, "2025-11-25").await;
    let meta =
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    let odd = r#"{"n":1.0e400,"big":9007199254740993, "t":"\u00e9é\ud83d\ude00","z":{},"a":[1,2 ,3]}"#;
    // What differs from call to call.
    let cut = |answer: &str| answer.split(r#""_meta":{"durable-mcp/execution""#).next().unwrap().to_owned();
    for (name, arguments) in [
        ("echo", odd),
        ("corpus", r#"{"case":"numbers"}"#),
        ("corpus", r#"{"case":"unicode"}"#),
        ("corpus", r#"{"case":"whitespace"}"#),
        ("rpc_error", r#"{"code":7,"message":"seven","data":{"x":1.0}}"#),
    ] {
        for modern in [false, true] {
            let meta = if modern { meta } else { "" };
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments},"_meta":{{{meta}}}}}}}"#
            );
            let request = match modern {
                true => Request::modern_text(&url, "tools/call", Some(name), &line),
                false => Request::legacy(&url, session.as_deref(), &line),
            };
            let direct = request.exchange(&url).await.messages().pop().expect("an answer");
            let mut client = match modern {
                true => RawStdio::start(&connect(&url, &[])),
                false => RawStdio::open(&connect(&url, &[]), "2025-11-25").await,
            };
            client.send(&line).await;
            let through = client.answer(&json!(5)).await;
            assert_eq!(cut(&through), cut(&direct), "{name} modern={modern}");
        }
    }
}

/// The result is stored and the server dies before it is told: the client gets it from the next server, one run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_before_its_answer_costs_no_answer_and_no_second_run() {
    let mut clients = vec![Kind::Rmcp(Mode::Legacy), Kind::Rmcp(Mode::Modern)];
    match support::clients_are_set_up() {
        Ok(()) => clients.extend([Kind::Sdk1, Kind::Python(Mode::Auto)]),
        Err(reason) => eprintln!("=== only some clients: {reason} ==="),
    }
    let dies = async |kind: Kind| {
        let setup = Setup::new("");
        let ledger = Ledger::in_folder(setup.folder());
        let kit = kit_stdio(&["--era", "both", "--ledger", ledger.path()]);
        let setup = setup.config(&server_table("kit", &kit, ""));
        let mut program = setup.clone().crash_at("completed").serve().await;
        let client = Client::connect(kind, &connect(program.url(), &["--patience", "30s"])).await;
        let pending = client.start(Call::new("append", json!({"text": "once"}))).await;
        program.died().await;
        let program = program.restart_as(&setup).await;
        let answer = pending.answer().await.unwrap_or_else(|failure| panic!("{kind:?}: {failure:?}"));
        assert_eq!(answer["content"][0]["text"], "appended once", "{kind:?}: {answer}");
        assert_eq!(ledger.starts("once").len(), 1, "{kind:?}: {:?}", ledger.lines());
        // The session goes on.
        let again = client.call("append", json!({"text": "after"})).await.unwrap();
        assert_eq!(again["content"][0]["text"], "appended after", "{kind:?}");
        assert_eq!(program.check_store().await.executions.len(), 2);
        client.close().await;
    };
    futures_util::future::join_all(clients.into_iter().map(dies)).await;
}

/// `kill -9` while the tool runs, with an upstream that outlives the server: the answer is that nobody knows, one run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_in_the_middle_of_a_call_is_answered_for_by_the_next_one() {
    for modern in [false, true] {
        let setup = Setup::new("");
        let ledger = Ledger::in_folder(setup.folder());
        let kit = kit_http(&["--era", "both", "--ledger", ledger.path()]).await;
        let mut program = setup.clone().config(&server_table("kit", &kit.target, "")).serve().await;
        let target = connect(program.url(), &["--patience", "30s"]);
        let kind = if modern { Kind::Rmcp(Mode::Modern) } else { Kind::Rmcp(Mode::Legacy) };
        let client = Client::connect(kind, &target).await;
        let pending = client.start(Call::new("slow", json!({"seconds": 20, "text": "lost"}))).await;
        ledger.wait_for_start("lost", DEADLINE).await;
        program.kill_9().await;
        let program = program.restart().await;
        let answer = pending.answer().await.unwrap();
        assert_eq!(answer["isError"], true, "{answer}");
        assert_eq!(answer["_meta"]["durable-mcp/execution"]["state"], "unknown", "{answer}");
        assert_eq!(ledger.starts("lost").len(), 1, "{:?}", ledger.lines());
        program.check_store().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_repeated_after_a_handle_comes_back_to_its_execution() {
    let (program, ledger) = kit_program("[defaults]\nwait = \"100ms\"\n").await;
    let mut client = RawStdio::open(&connect(program.url(), &[]), "2025-11-25").await;
    let call = json!({"seconds": 1, "text": "long"});
    let first = client.call(json!(1), "slow", call.clone()).await;
    assert_eq!(execution(&first)["state"], "leased", "{first}");
    let mut id = 1;
    let last = loop {
        id += 1;
        let again = client.call(json!(id), "slow", call.clone()).await;
        assert_eq!(execution(&again)["id"], execution(&first)["id"], "{again}");
        if execution(&again)["state"] == "completed" {
            break again;
        }
    };
    assert!(last["result"]["isError"] != true, "{last}");
    assert_eq!(ledger.starts("long").len(), 1);
    // Its end was told: the same call once more is meant.
    let meant = client.call(json!("meant"), "slow", call).await;
    assert_ne!(execution(&meant)["id"], execution(&first)["id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_reaches_the_tool_even_right_behind_its_call() {
    let (program, ledger) = kit_program("").await;
    let mut client = RawStdio::open(&connect(program.url(), &[]), "2025-11-25").await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "slow", "arguments": {"seconds": 30, "text": "stop"}}});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    client.send(&format!("{call}\n{cancel}")).await;
    eventually("the tool is cancelled", DEADLINE, || ledger.cancels("stop") == 1).await;
    let ping = client.request(json!(2), "ping", json!({})).await;
    assert_eq!(ping["result"], json!({}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_is_said_to_be_and_found_when_it_comes() {
    let setup = Setup::new("").flag("--demo");
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}");
    let mut client = RawStdio::start(&connect(&url, &["--patience", "100ms"]));
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let refused = client.request(json!(1), "initialize", hello.clone()).await;
    assert_eq!(refused["error"]["code"], -31502, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains(&url), "{refused}");
    assert!(refused["error"]["data"]["next"].as_str().unwrap().contains("durable-mcp serve"), "{refused}");
    let program = setup.serve_on(port).await;
    program.ready().await;
    let opened = client.request(json!(2), "initialize", hello).await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-11-25", "{opened}");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let echoed = client.call(json!(3), "demo_echo", json!({"message": "here"})).await;
    assert_eq!(text(&echoed), "here");
    // A server started anew knows its sessions.
    let program = program.restart().await;
    let echoed = client.call(json!(4), "demo_echo", json!({"message": "there"})).await;
    assert_eq!(text(&echoed), "there", "{echoed}");
    // One whose session was ended does not notice, but hears that the tools may be others.
    let sessions = program.setup.cli(&["sessions", "list", "--json", "--url", program.url()]).await;
    let session: Value = serde_json::from_str(sessions.stdout.trim()).unwrap_or_else(|_| panic!("{}", sessions.stderr));
    let closed =
        program.setup.cli(&["sessions", "close", session["id"].as_str().unwrap(), "--url", program.url()]).await;
    assert!(closed.status.success(), "{}", closed.stderr);
    let echoed = client.call(json!(5), "demo_echo", json!({"message": "again"})).await;
    assert_eq!(text(&echoed), "again", "{echoed}");
    client.process.line_with("notifications/tools/list_changed").await;
    // The end of the input is the end, once what runs has had a moment.
    let mut process = client.close_stdin();
    assert!(process.exit(DEADLINE).await.success());
    drop(program);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_wants_a_token_says_where_it_belongs() {
    let program = Setup::new("[auth]\nmode = \"token\"\n").flag("--demo").serve_on(0).await;
    let mut stranger = RawStdio::start(&connect(program.url(), &[]));
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let refused = stranger.request(json!(1), "initialize", hello).await;
    assert_eq!(refused["error"]["code"], -31401, "{refused}");
    assert!(refused["error"]["data"]["next"].as_str().unwrap().contains("DURABLE_MCP_TOKEN"), "{refused}");
    let token = program.setup.cli(&["token", "create", "--principal", "desk"]).await.stdout;
    let target = connect(program.url(), &[]).env("DURABLE_MCP_TOKEN", token.trim());
    let mut client = RawStdio::open(&target, "2025-06-18").await;
    let echoed = client.call(json!(2), "demo_echo", json!({"message": "in"})).await;
    assert_eq!(text(&echoed), "in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_says_unasked_and_while_it_works_reaches_the_client() {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--era", "both", "--change-tools-after", "1", "--ledger", ledger.path()]);
    let program = setup.config(&server_table("kit", &kit, "")).serve().await;
    let mut client = RawStdio::open(&connect(program.url(), &[]), "2025-11-25").await;
    let call = json!({"name": "slow", "arguments": {"seconds": 0.5}, "_meta": {"progressToken": "p-1"}});
    let answer = client.request(json!(1), "tools/call", call).await;
    assert!(answer["result"]["isError"] != true, "{answer}");
    let told: Vec<f64> = client
        .messages()
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|message| message["params"]["progressToken"] == "p-1")
        .map(|message| message["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(told.len() > 1 && told.is_sorted(), "{told:?}");
    client.process.line_with("notifications/tools/list_changed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keys_of_the_bridge_the_rules_of_the_server_apply() {
    let (program, ledger) = kit_program("[servers.kit.tools.slow]\nidempotency = { unkeyed = \"coalesce\" }\n").await;
    let mut client = RawStdio::open(&connect(program.url(), &["--no-keys"]), "2025-11-25").await;
    for id in [1, 2] {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "slow", "arguments": {"seconds": 0.5, "text": "twice"}}});
        client.send(&call.to_string()).await;
    }
    let answers = [client.answer(&json!(1)).await, client.answer(&json!(2)).await];
    let ids = answers.map(|answer| execution(&serde_json::from_str(&answer).unwrap())["id"].clone());
    assert_eq!(ids[0], ids[1]);
    assert_eq!(ledger.starts("twice").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_call_is_answered_for_a_moment_after_the_end_of_input() {
    let (program, _) = kit_program("").await;
    let mut client = RawStdio::open(&connect(program.url(), &[]), "2025-11-25").await;
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": {"name": "slow", "arguments": {"seconds": 1, "text": "last"}}});
    client.send(&call.to_string()).await;
    let mut process = client.close_stdin();
    assert!(process.exit(Duration::from_secs(10)).await.success());
    assert!(process.stdout().contains(r#""id":9"#), "{}", process.stdout());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_the_arguments_counts_and_not_the_one_of_the_bridge() {
    let (program, ledger) = kit_program("[servers.kit.tools.append]\nkey_argument = \"request\"\n").await;
    let mut client = RawStdio::open(&connect(program.url(), &[]), "2025-11-25").await;
    let call = json!({"text": "keyed", "request": "r-1"});
    let first = client.call(json!(1), "append", call.clone()).await;
    let second = client.call(json!(2), "append", call).await;
    assert_eq!(text(&first), "appended keyed", "{first}");
    assert_eq!(execution(&second)["id"], execution(&first)["id"], "{second}");
    assert_eq!(ledger.starts("keyed").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_message_is_answered_as_the_server_answers_it() {
    let (program, _) = kit_program("").await;
    let mut client = RawStdio::open(&connect(program.url(), &[]), "2025-03-26").await;
    client.send("{\"jsonrpc\":\"2.0\",\"id\":1,").await;
    client.process.line_with("-32700").await;
    client.send(r#"[{"jsonrpc":"2.0","id":21,"method":"ping"},{"jsonrpc":"2.0","id":22,"method":"tools/list"}]"#).await;
    let batch: Value = serde_json::from_str(&client.process.line_with(r#"[{"jsonrpc""#).await).unwrap();
    assert_eq!(batch.as_array().unwrap().len(), 2, "{batch}");
    let unknown = client.request(json!(3), "no/such", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}
