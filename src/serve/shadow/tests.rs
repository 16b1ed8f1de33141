//! What a shadow makes of conversations, with times as parameters; and that bytes pass as they come. Real processes are
//! in `tests/it/shadow.rs`.

use std::io::Read;

use serde_json::{Value, json};

use super::lines::{Line, Lines};
use super::report::{Tally, Wire};
use super::*;
use crate::config::Config;
use crate::config::tools::{Delivery, OnDisconnect, Server, ServerTool, Unkeyed};
use crate::config::units::{Bytes, Millis};

struct Scene {
    watch: Watch,
    at_ms: i64,
}

impl Scene {
    fn new() -> Scene {
        Scene::with(|_, _| {})
    }

    /// `change` may say something about the server.
    fn with(change: impl FnOnce(&mut Config, &mut Server)) -> Scene {
        let mut config = Config::default();
        let mut server = Server::stdio("server", Vec::new());
        change(&mut config, &mut server);
        config.servers.insert("s".into(), server);
        let at_ms = 1_700_000_000_000;
        Scene { watch: Watch::new("s", Arc::new(config), at_ms), at_ms }
    }

    fn bytes(&mut self, direction: Direction, bytes: &[u8]) -> &mut Scene {
        self.watch.take(&Piece::Bytes { direction, at_ms: self.at_ms, bytes: bytes.to_vec(), after_gap: false });
        self
    }

    fn client(&mut self, message: Value) -> &mut Scene {
        self.bytes(Direction::ToServer, format!("{message}\n").as_bytes())
    }

    fn server(&mut self, message: Value) -> &mut Scene {
        self.bytes(Direction::ToClient, format!("{message}\n").as_bytes())
    }

    fn hello(&mut self) -> &mut Scene {
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        self.client(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        self.client(json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}));
        let tools = json!([
            {"name": "write", "inputSchema": {}},
            {"name": "read", "inputSchema": {}, "annotations": {"readOnlyHint": true}},
            {"name": "put", "inputSchema": {}, "annotations": {"idempotentHint": true}},
        ]);
        self.server(json!({"jsonrpc": "2.0", "id": "list", "result": {"tools": tools}}))
    }

    fn call(&mut self, id: Value, tool: &str, arguments: Value) -> &mut Scene {
        let params = json!({"name": tool, "arguments": arguments});
        self.client(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    fn keyed(&mut self, id: Value, key: &str, arguments: Value) -> &mut Scene {
        let params = json!({"name": "write", "arguments": arguments, "_meta": {"durable-mcp/idempotencyKey": key}});
        self.client(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    fn answer(&mut self, id: Value) -> &mut Scene {
        self.server(json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}))
    }

    fn cancel(&mut self, id: Value, reason: &str) -> &mut Scene {
        let params = json!({"requestId": id, "reason": reason});
        self.client(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
    }

    fn after(&mut self, ms: i64) -> &mut Scene {
        self.at_ms += ms;
        self
    }

    fn end(&mut self, end: End) -> Report {
        self.watch.end(end, self.at_ms);
        self.watch.report(end, self.at_ms, 0)
    }

    fn total(&mut self, end: End) -> Tally {
        self.end(end).total
    }
}

fn tally(change: impl FnOnce(&mut Tally)) -> Tally {
    let mut tally = Tally::default();
    change(&mut tally);
    tally
}

const TIMED_OUT: &str = "Request timed out";

#[test]
fn a_quiet_conversation_is_told_as_one() {
    let mut scene = Scene::new();
    scene.hello().call(json!(1), "write", json!({"n": 1})).after(20).answer(json!(1));
    scene.call(json!(2), "write", json!({"n": 1})).after(5).answer(json!(2));
    let report = scene.end(End::ClientLeft);
    assert_eq!(report.total, tally(|t| (t.calls, t.answered, t.longest_ms) = (2, 2, 20)));
    assert_eq!((report.client.as_deref(), report.revision.as_deref()), (Some("c"), Some("2025-06-18")));
    assert!(report.text().contains("would have changed nothing"), "{}", report.text());
    assert!(report.text().contains("write: 2 calls, at_most_once (default), longest 20 ms"), "{}", report.text());
    assert_eq!(report.tools["write"].delivery_source, "default");
}

#[test]
fn a_repeated_key_would_not_run_and_another_call_under_it_would_be_refused() {
    let mut scene = Scene::new();
    scene.hello().keyed(json!(1), "k", json!({"n": 1.0})).keyed(json!(2), "k", json!({"n": 1}));
    scene.answer(json!(1)).answer(json!(2)).after(1_000).keyed(json!(3), "k", json!({"n": 1}));
    scene.answer(json!(3)).keyed(json!(4), "k", json!({"n": 2})).answer(json!(4));
    scene.keyed(json!(5), "", json!({})).answer(json!(5));
    // A key lives as long after the end as the policy says.
    scene.after(2 * 86_400_000).keyed(json!(6), "k", json!({"n": 2})).answer(json!(6));
    let report = scene.end(End::ClientLeft);
    let expected = tally(|t| {
        (t.calls, t.answered) = (6, 6);
        (t.deduplicated_by_key, t.conflicts, t.refused) = (2, 1, 1);
    });
    assert_eq!(report.total, expected);
    let kinds: Vec<_> = report.findings.iter().map(|finding| (finding.kind, finding.after_ms)).collect();
    let expected = [("deduplicated_by_key", 0), ("deduplicated_by_key", 1_000), ("conflicts", 1_000), ("refused", 0)];
    assert_eq!(kinds, expected);
}

#[test]
fn a_re_issue_after_a_time_out_would_not_run_and_gets_the_late_result() {
    let mut scene = Scene::new();
    scene.hello().call(json!(1), "write", json!({})).after(1_000).cancel(json!(1), TIMED_OUT);
    // While it runs, and after its result came too late.
    scene.call(json!(2), "write", json!({})).after(1_000).cancel(json!(2), TIMED_OUT).after(1_000).answer(json!(1));
    scene.call(json!(3), "write", json!({}));
    // That one would have had the answer at once: what follows is a new call.
    scene.answer(json!(2)).answer(json!(3)).call(json!(4), "write", json!({})).answer(json!(4));
    let expected = tally(|t| {
        (t.calls, t.answered, t.longest_ms) = (4, 4, 3_000);
        (t.deduplicated_unkeyed, t.late_results) = (2, 2);
    });
    assert_eq!(scene.total(End::ClientLeft), expected);
}

#[test]
fn calls_whose_callers_are_both_there_stay_two_unless_the_first_is_just_leaving() {
    let both = |first_leaves_after_ms: Option<i64>, unkeyed: Option<Unkeyed>| {
        let mut scene = Scene::with(|_, server| server.policy.idempotency.unkeyed = unkeyed);
        scene.hello().call(json!(1), "write", json!({})).after(5).call(json!(2), "write", json!({}));
        if let Some(ms) = first_leaves_after_ms {
            scene.after(ms).cancel(json!(1), TIMED_OUT);
        }
        scene.answer(json!(1)).answer(json!(2));
        let total = scene.total(End::ClientLeft);
        (total.kept_apart, total.deduplicated_unkeyed)
    };
    assert_eq!(both(None, None), (1, 0));
    assert_eq!(both(Some(10), None), (0, 1));
    assert_eq!(both(Some(100), None), (1, 0));
    assert_eq!(both(None, Some(Unkeyed::Coalesce)), (0, 1));
    assert_eq!(both(Some(10), Some(Unkeyed::None)), (0, 0));
}

#[test]
fn what_a_dead_server_leaves_is_settled_by_each_tools_policy() {
    let mut scene = Scene::with(|_, server| {
        let sure = ServerTool { policy: Default::default(), ..ServerTool::default() };
        server.tools.insert("sure".into(), sure);
        server.tools["sure"].policy.delivery = Some(Delivery::AtLeastOnce);
        server.tools.insert("once".into(), ServerTool::default());
        server.tools["once"].policy.delivery = Some(Delivery::AtLeastOnce);
        server.tools["once"].policy.retry.max_attempts = Some(1);
    });
    scene.hello();
    for (id, tool) in ["write", "read", "put", "sure", "once"].into_iter().enumerate() {
        scene.call(json!(id + 1), tool, json!({}));
    }
    let report = scene.after(7).end(End::ServerEnded);
    let expected = tally(|t| {
        (t.calls, t.unanswered) = (5, 5);
        (t.retried, t.unknown, t.failed) = (3, 1, 1);
    });
    assert_eq!(report.total, expected);
    assert_eq!((report.tools["write"].tally.unknown, report.tools["read"].tally.retried), (1, 1));
    assert_eq!(report.tools["sure"].delivery_source, "config");
    assert!(report.text().contains("the server ended by itself"), "{}", report.text());
}

#[test]
fn a_tool_that_is_listed_late_is_judged_by_what_was_learnt() {
    let mut scene = Scene::new();
    scene.call(json!(1), "read", json!({})).hello();
    assert_eq!(scene.total(End::ServerEnded).retried, 1);
}

#[test]
fn a_client_that_leaves_loses_nothing_and_a_signal_settles() {
    for (end, finished_later, unknown) in [(End::ClientLeft, 1, 0), (End::Signal, 0, 1)] {
        let mut scene = Scene::new();
        scene.hello().call(json!(1), "write", json!({}));
        let total = scene.total(end);
        assert_eq!((total.finished_later, total.unknown, total.unanswered), (finished_later, unknown, 1));
    }
}

#[test]
fn a_call_beyond_the_wait_budget_would_have_got_a_handle() {
    let mut scene = Scene::with(|_, server| server.policy.wait = Some(Millis(1_000)));
    let with_wait = |id: i64, wait: i64| {
        let params = json!({"name": "write", "arguments": {"id": id}, "_meta": {"durable-mcp/wait": wait}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    scene.hello().call(json!(1), "write", json!({})).call(json!(2), "write", json!({"x": 1}));
    scene.client(with_wait(3, 5_000)).client(with_wait(4, 0));
    scene.after(900).answer(json!(1)).after(900);
    for id in 2..5 {
        scene.answer(json!(id));
    }
    let total = scene.total(End::ClientLeft);
    assert_eq!((total.handles, total.accepted), (1, 1));
    // A client that gave up before the budget got none.
    let mut scene = Scene::with(|_, server| server.policy.wait = Some(Millis(1_000)));
    scene.hello().call(json!(1), "write", json!({})).after(500).cancel(json!(1), TIMED_OUT).after(5_000);
    assert_eq!(scene.answer(json!(1)).total(End::ClientLeft).handles, 0);
}

#[test]
fn a_client_that_cancels_would_have_cancelled_and_one_that_only_waits_no_more_would_not() {
    let cancelled = |reason: &str, follows: bool| {
        let mut scene = Scene::with(|_, server| {
            server.policy.on_disconnect = follows.then_some(OnDisconnect::Cancel);
        });
        scene.hello().call(json!("a"), "write", json!({})).after(3).cancel(json!("a"), reason).after(4);
        scene.answer(json!("a")).total(End::ClientLeft)
    };
    let total = |cancelled| {
        tally(|t| (t.calls, t.answered, t.longest_ms, t.late_results, t.cancelled) = (1, 1, 7, 1, cancelled))
    };
    assert_eq!(cancelled("the user pressed Escape", false), total(1));
    assert_eq!(cancelled(TIMED_OUT, false), total(0));
    assert_eq!(cancelled(TIMED_OUT, true), total(1));
    // The same call after the user's own word is a new one.
    let mut scene = Scene::new();
    scene.hello().call(json!(1), "write", json!({})).cancel(json!(1), "the user pressed Escape");
    scene.call(json!(2), "write", json!({})).answer(json!(2));
    assert_eq!(scene.total(End::ClientLeft).deduplicated_unkeyed, 0);
}

#[test]
fn what_is_wrong_with_the_wire_is_counted() {
    let mut scene = Scene::with(|config, _| config.limits.result_bytes = Bytes(1024));
    scene.hello().bytes(Direction::ToServer, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}\n\n{half\n");
    scene.bytes(
        Direction::ToClient,
        b"Server starting\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\xff\n\n",
    );
    scene.call(json!(7), "write", json!({})).server(json!({"result": {"big": "x".repeat(80_000)}, "id": 7}));
    scene.bytes(Direction::ToClient, b"no line break");
    scene.watch.take(&Piece::Closed(Direction::ToClient, scene.at_ms));
    let report = scene.end(End::ServerEnded);
    assert_eq!(report.wire, Wire { stdout_pollution: 3, refused_messages: 2, oversized_results: 1 });
    assert_eq!((report.total.answered, report.total.unanswered), (1, 0));
}

#[test]
fn batches_and_errors_count_too() {
    let mut scene = Scene::new();
    let params = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c"}});
    scene.client(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    let call = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "write"}});
    scene.client(json!([call(1), call(2)])).server(json!([
        {"jsonrpc": "2.0", "id": "1", "result": {"isError": true, "content": []}},
        {"jsonrpc": "2.0", "id": 2, "error": {"code": -32603, "message": "no"}},
    ]));
    let total = scene.total(End::ClientLeft);
    assert_eq!((total.calls, total.answered, total.tool_errors, total.rpc_errors), (2, 2, 1, 1));
}

#[test]
fn what_is_remembered_is_bounded_and_said() {
    let mut scene = Scene::with(|config, _| config.wrap.shadow_calls = 10);
    scene.hello();
    for id in 0..50 {
        scene.keyed(json!(id), &format!("k{id}"), json!({})).answer(json!(id));
    }
    scene.keyed(json!(100), "k0", json!({})).keyed(json!(101), "k49", json!({}));
    let report = scene.end(End::ClientLeft);
    assert_eq!(report.total.deduplicated_by_key, 1, "only what is remembered is recognised");
    assert_eq!(report.missed.forgotten_calls, 41);
    // A server that answers nothing does not make it grow.
    let mut scene = Scene::with(|config, _| config.wrap.shadow_calls = 10);
    for id in 0..50 {
        scene.call(json!(id), "write", json!({"id": id}));
    }
    let report = scene.end(End::ServerEnded);
    assert_eq!((report.total.calls, report.missed.forgotten_calls), (10, 40));
}

#[test]
fn lines_come_out_of_pieces_of_any_size_and_a_gap_costs_one_line() {
    let text = b"{\"a\":1}\n\n{\"id\":7,\"result\":\"0123456789\"}\nlast";
    for size in 1..text.len() {
        let (mut lines, mut found) = (Lines::new(16), Vec::new());
        text.chunks(size).for_each(|piece| lines.feed(piece, false, |line| found.push(line)));
        found.extend(lines.rest());
        let whole = |text: &[u8]| Line::Whole(text.to_vec());
        assert_eq!(found, [whole(b"{\"a\":1}"), whole(b""), Line::TooLong(Some(7)), whole(b"last")], "{size}");
    }
    let (mut lines, mut found) = (Lines::new(16), Vec::new());
    lines.feed(b"half", false, |line| found.push(line));
    lines.feed(b"other half\nwhole\n", true, |line| found.push(line));
    assert_eq!(found, [Line::Whole(b"whole".to_vec())]);
}

#[test]
fn a_slow_watcher_loses_copies_and_the_other_side_no_byte() {
    let (from, mut feed) = std::io::pipe().unwrap();
    let (mut read, to) = std::io::pipe().unwrap();
    let (sender, pieces) = channel();
    let tap = Tap { sender, queued: Arc::default(), queued_max: 100_000, unwatched: Arc::default() };
    let file = |fd: OwnedFd| File::from(fd);
    let mut pump = Pump { direction: Direction::ToServer, from: file(from.into()), to: file(to.into()) };
    let running = std::thread::spawn({
        let tap = tap.clone();
        move || pump.run(&tap)
    });
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    let feeding = std::thread::spawn({
        let sent = sent.clone();
        move || {
            // Nobody takes the copies, so that most are lost.
            sent.chunks(10_000).for_each(|piece| feed.write_all(piece).unwrap());
        }
    });
    let mut got = Vec::new();
    read.read_to_end(&mut got).unwrap();
    feeding.join().unwrap();
    assert!(running.join().unwrap(), "the source ended, not the target");
    assert!(got == sent);
    drop(tap.sender);
    let copied = |piece| match piece {
        Piece::Bytes { bytes, .. } => bytes.len(),
        Piece::Closed(..) | Piece::Finish => 0,
    };
    let watched: usize = pieces.iter().map(copied).sum();
    assert!(watched <= 100_000, "{watched}");
    assert_eq!(tap.unwatched.load(Ordering::Relaxed), (sent.len() - watched) as u64);
}
