//! What a client learns before it calls: pages, order, the list that is there before a slow server is, instructions,
//! changes; and what it hears while it waits: progress, `ping`.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::skip_loudly;
use crate::support::client::{Call, Client, Kind, Mode, Pending};
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::raw_http::{Connection, Request, open_session};
use crate::support::raw_stdio::RawStdio;
use crate::support::servers::{kit_http, kit_stdio};
use crate::support::{self, DEADLINE, scratch};

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn call(id: u32, name: &str, arguments: &Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// The exact pages of a list, each page in one era.
async fn pages(url: &str, modern: bool) -> Vec<String> {
    let session = if modern { None } else { open_session(url, "2025-11-25").await };
    let (mut pages, mut params) = (Vec::new(), json!({}));
    loop {
        let request = match &session {
            None => Request::modern(url, json!(1), "tools/list", params),
            session => {
                let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).to_string();
                Request::legacy(url, session.as_deref(), &text)
            }
        };
        let response = request.exchange(url).await;
        let cursor = response.answer()["result"]["nextCursor"].clone();
        pages.push(response.text().replace(cursor.as_str().unwrap_or("no cursor"), "CURSOR"));
        if cursor.is_null() {
            return pages;
        }
        params = json!({"cursor": cursor});
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_comes_in_pages_alike_in_each_life_with_the_built_ins_last() {
    let kit = kit_stdio(&["--extra-tools", "450", "--list-page", "60"]);
    let config = format!("[limits]\ntools_per_page = 200\n{}", server_table("kit", &kit, ""));
    let mut program = Setup::new(&config).serve().await;
    let mut lives = Vec::new();
    for _ in 0..2 {
        lives.push((pages(program.url(), false).await, pages(program.url(), true).await));
        program = program.restart().await;
    }
    assert_eq!(lives[0], lives[1]);
    for list in [&lives[0].0, &lives[0].1] {
        let sizes = list.iter().map(|page| page.matches("\"inputSchema\"").count()).collect::<Vec<_>>();
        assert_eq!(sizes, [200, 200, 70]);
    }
    let refused = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "made up"}});
    let session = open_session(program.url(), "2025-11-25").await;
    let refused = Request::legacy(program.url(), session.as_deref(), &refused.to_string());
    assert_eq!(refused.exchange(program.url()).await.answer()["error"]["code"], -32602);

    skip_loudly!(support::clients_are_set_up());
    let kinds = [Kind::Sdk1, Kind::Client2(Mode::Auto), Kind::Python(Mode::Auto), Kind::Rmcp(Mode::Legacy)];
    join_all(kinds.map(|kind| {
        let target = program.target();
        async move {
            let client = Client::connect(kind, &target).await;
            let tools = client.list().await;
            let names = names(&tools);
            assert_eq!(names.len(), 470, "{kind:?}");
            assert_eq!((names[0], names[19], names[468]), ("append", "extra_0001", "extra_0450"), "{kind:?}");
            assert_eq!(names.last(), Some(&"durable_result"), "{kind:?}");
            client.close().await;
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_start_of_wrap_lists_at_once_although_its_server_is_slow() {
    let folder = scratch();
    let ledger = Ledger::in_folder(folder.path());
    let flags = ["--ledger", ledger.path(), "--instructions", "be kind"];
    let setup = Setup::new("");
    let mut first = RawStdio::open(&setup.wrap(&kit_stdio(&flags)), "2025-11-25").await;
    let listed = first.request(json!(1), "tools/list", json!({})).await;
    let told = first.process.stdout();
    assert!(!told.contains("list_changed"), "what a client learns when it opens is no change: {told}");
    first.close_stdin().exit(DEADLINE).await;

    let slow = kit_stdio(&[&flags[..], &["--delay-start", "5000"]].concat());
    let started = Instant::now();
    let mut second = RawStdio::start(&setup.wrap(&slow));
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    let opened = second.request(json!(0), "initialize", hello).await;
    second.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let listed_again = second.request(json!(1), "tools/list", json!({})).await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "the server cannot have answered before, but the lists took {took:?}");
    assert_eq!(opened["result"]["instructions"], "be kind");
    assert_eq!(listed_again, listed);
    // A call waits for the server, which is there in the end.
    let answer = second.call(json!(2), "append", json!({"text": "late"})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "appended late");
    assert_eq!(ledger.starts("late").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instructions_are_passed_on_and_those_of_several_servers_are_joined() {
    let kind = kit_stdio(&["--instructions", "be kind"]);
    let quick = kit_stdio(&["--instructions", "be \"quick\""]);
    let one = server_table("one", &kind, "");
    let two = format!("{one}\n{}", server_table("two", &quick, "").replace("prefix = \"\"\n", ""));
    for (config, expected) in [(one, "be kind"), (two, "## one\n\nbe kind\n\n## two\n\nbe \"quick\"")] {
        let program = Setup::new(&config).serve().await;
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).to_string();
        let opened = Request::legacy(program.url(), None, &hello).exchange(program.url()).await.answer();
        assert_eq!(opened["result"]["instructions"], expected);
        let discovered = Request::modern(program.url(), json!(1), "server/discover", json!({}));
        assert_eq!(discovered.exchange(program.url()).await.answer()["result"]["instructions"], expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_list_is_told_over_stdio_and_on_the_stream_of_a_session() {
    let flags = ["--change-tools-after", "1"];
    let mut wrapped = RawStdio::open(&Setup::new("").wrap(&kit_stdio(&flags)), "2025-11-25").await;
    wrapped.request(json!(1), "tools/list", json!({})).await;
    wrapped.call(json!(2), "echo", json!({})).await;
    let (mut listed, mut asked) = (Value::Null, 2);
    support::eventually_async("the list with the late tool", DEADLINE, async || {
        asked += 1;
        listed = wrapped.request(json!(asked), "tools/list", json!({})).await;
        names(listed["result"]["tools"].as_array().unwrap()).contains(&"late")
    })
    .await;
    let told = || wrapped.messages().iter().any(|line| line.contains("notifications/tools/list_changed"));
    support::eventually("the news over stdio", DEADLINE, told).await;
    let names_now = names(listed["result"]["tools"].as_array().unwrap());
    assert_eq!(names_now[19..], ["late", "durable_retry", "durable_result"]);
    let late = wrapped.call(json!("late"), "late", json!({})).await;
    assert_eq!(late["result"]["content"][0]["text"], "late");

    let kit = kit_http(&[&flags[..], &["--era", "both"]].concat()).await;
    let program = Setup::new(&server_table("kit", &kit.target, "")).serve().await;
    let url = program.url();
    let session = open_session(url, "2025-11-25").await;
    let mut stream = Connection::open(url).await;
    let get = Request::new("GET", url).header("Accept", "text/event-stream");
    let get = get.header("Mcp-Session-Id", session.as_deref().unwrap()).header("MCP-Protocol-Version", "2025-11-25");
    stream.send(&get.bytes()).await;
    assert_eq!(stream.response_head().await.status, 200);
    assert!(stream.block().await.unwrap().starts_with(':'), "the stream says at once that it is open");
    let echo = call(1, "echo", &json!({}));
    assert_eq!(Request::legacy(url, session.as_deref(), &echo).exchange(url).await.status, 200);
    let news: Value = serde_json::from_str(&stream.message().await.unwrap().data).unwrap();
    assert_eq!(news["method"], "notifications/tools/list_changed");
    assert!(pages(url, true).await[0].contains("\"name\":\"late\""));
    let late = Request::modern(url, json!(1), "tools/call", json!({"name": "late", "arguments": {}}));
    assert_eq!(late.exchange(url).await.answer()["result"]["content"][0]["text"], "late");
}

/// Progress of one call as it came: values of the kit, strictly rising, and signs of life between them, then the answer.
/// A busy program may tell of the newest value only.
fn check_progress(messages: &[Value], token: &Value, carries_message: bool) {
    let (answer, progress) = messages.split_last().unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "slept p", "{messages:?}");
    let values: Vec<f64> = progress.iter().map(|one| one["params"]["progress"].as_f64().unwrap()).collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
    let own = values.iter().filter(|value| value.fract() == 0.0 && (1.0..=8.0).contains(*value)).count();
    assert!(own >= 2, "{values:?}");
    assert!(values.len() > 5, "the program says that it is there between the ticks: {values:?}");
    for one in progress {
        assert_eq!((&one["method"], &one["params"]["progressToken"]), (&json!("notifications/progress"), token));
        assert!(carries_message || one["params"].get("message").is_none(), "{one}");
    }
    let says = |one: &Value| one["params"]["message"].as_str().is_some_and(|message| message.starts_with("tick "));
    assert_eq!(progress.iter().any(says), carries_message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_rises_strictly_in_every_revision_over_http_and_stdio() {
    let folder = scratch();
    let ledger = Ledger::in_folder(folder.path());
    let flags = ["--era", "both", "--ledger", ledger.path()];
    let kit = kit_http(&flags).await;
    let keep_alive = "[server]\nkeep_alive = \"30ms\"";
    let upstreams = [kit_stdio(&flags), kit.target.clone()];
    let arguments = json!({"seconds": 0.8, "text": "p"});
    for upstream in &upstreams {
        let program = Setup::new(&format!("{keep_alive}\n{}", server_table("kit", upstream, ""))).serve().await;
        let url = program.url();
        for (revision, token) in [("2026-07-28", json!("p-1")), ("2025-11-25", json!(7)), ("2024-11-05", json!("p"))] {
            let params = json!({"name": "slow", "arguments": arguments, "_meta": {"progressToken": token}});
            let request = if revision == "2026-07-28" {
                Request::modern(url, json!(1), "tools/call", params)
            } else {
                let session = open_session(url, revision).await;
                let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
                Request::legacy(url, session.as_deref(), &text).with("MCP-Protocol-Version", revision)
            };
            let messages = request.exchange(url).await.messages();
            let messages: Vec<Value> = messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            check_progress(&messages, &token, revision != "2024-11-05");
        }
    }
    for upstream in &upstreams {
        let setup = Setup::new(keep_alive);
        let mut wrapped = RawStdio::open(&setup.wrap(upstream), "2025-11-25").await;
        let before = wrapped.messages().len();
        let params = json!({"name": "slow", "arguments": arguments, "_meta": {"progressToken": "s"}});
        wrapped.request(json!(1), "tools/call", params).await;
        let messages = wrapped.messages().split_off(before);
        let messages: Vec<Value> = messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let messages: Vec<Value> =
            messages.into_iter().filter(|one| one["method"] != "notifications/tools/list_changed").collect();
        check_progress(&messages, &json!("s"), true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sdk_hears_of_the_progress_of_its_own_call() {
    skip_loudly!(support::clients_are_set_up());
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--ledger", ledger.path()]);
    let program = setup.config(&server_table("kit", &kit, "")).serve().await;
    join_all(Kind::ALL.map(|kind| {
        let target = program.target();
        async move {
            let client = Client::connect(kind, &target).await;
            let arguments = json!({"seconds": 1.5, "text": format!("{kind:?}")});
            let mut pending = client.start(Call::new("slow", arguments).progress()).await;
            let progress = async |pending: &mut Pending| pending.next_progress().await["progress"].as_f64().unwrap();
            let (first, second) = (progress(&mut pending).await, progress(&mut pending).await);
            // This SDK runs the handler of each notification on a task of its own, in whatever order.
            let (first, second) = match kind {
                Kind::Rmcp(_) => (first.min(second), first.max(second)),
                _ => (first, second),
            };
            assert!(1.0 <= first && first < second && second <= 15.0, "{kind:?}: {first}, {second}");
            pending.answer().await.unwrap();
            client.close().await;
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ping_and_unknown_names_are_answered_as_each_era_says() {
    let kit = kit_stdio(&["--era", "both"]);
    let program = Setup::new(&server_table("kit", &kit, "")).serve().await;
    let url = program.url();
    let session = open_session(url, "2025-11-25").await;
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let pong = Request::legacy(url, session.as_deref(), ping).exchange(url).await;
    assert_eq!(pong.text(), r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
    let pong = Request::modern(url, json!(1), "ping", json!({})).exchange(url).await;
    assert_eq!((pong.status, &pong.answer()["error"]["code"]), (404, &json!(-32601)));

    let nobody = Request::legacy(url, session.as_deref(), &call(1, "nobody", &json!({}))).exchange(url).await;
    assert_eq!((nobody.status, &nobody.answer()["error"]["code"]), (200, &json!(-32602)));
    let nobody = Request::modern(url, json!(1), "tools/call", json!({"name": "nobody", "arguments": {}}));
    let nobody = nobody.exchange(url).await;
    assert_eq!((nobody.status, &nobody.answer()["error"]["code"]), (200, &json!(-32602)));

    let mut wrapped = RawStdio::open(&Setup::new("").wrap(&kit), "2025-06-18").await;
    wrapped.send(ping).await;
    assert_eq!(wrapped.answer(&json!("p")).await, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
    let nobody = wrapped.call(json!(1), "nobody", json!({})).await;
    assert_eq!(nobody["error"]["code"], -32602, "{nobody}");
    assert_eq!(program.executions().await.len(), 0, "nothing is stored for a tool that is not there");
}
