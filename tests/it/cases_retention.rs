//! Field case A47: a store that only grows. Retention goes through many executions while 32 clients call: every one that is
//! too old goes, each rule counts its own, none that is young enough is touched, no call fails, and calls are as quick as
//! they are without it. Among very many executions a person finds what there is within 300 ms. `DURABLE_MCP_TEST_STORED`
//! (CONTRIBUTING.md) sets how many executions there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::on_every_store;
use crate::support::asked_for;
use crate::support::many::{Many, multiply};
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Connection, Request};
use crate::support::stores::{On, count};

const CLIENTS: usize = 32;
const DAYS: i64 = 30;
/// So many executions there are, where no other number is asked for.
const MANY: i64 = 100_000;
/// How long clients call alone before each turn of retention beside them.
const QUIET: Duration = Duration::from_secs(4);
/// A turn of retention by its usual pace takes no longer, even among a million.
const AT_MOST: Duration = Duration::from_secs(3_600);
/// How much slower one call of a hundred may be while retention works.
const SLOWER: f64 = 1.2;
/// Within which 95 of a hundred questions are answered, however many executions there are.
const ANSWERED: Duration = Duration::from_millis(300);
/// A busy machine may spoil a measurement, not three of them.
const MEASUREMENTS: usize = 3;

/// So many executions, or as many as are asked for.
fn stored(without_asking: i64) -> i64 {
    asked_for("DURABLE_MCP_TEST_STORED").map_or(without_asking, |number| number as i64)
}

/// `serve` on a store of so many executions, of which one of four belongs to `acme`, and one of ten has failed.
async fn with_many(on: On, config: &str, number: i64) -> Program {
    let setup = Setup::new(config).on(on).await.flag("--demo");
    let mut program = setup.serve().await;
    let mut connection = Connection::open(program.url()).await;
    assert_eq!(echo(&mut connection, program.url(), "the first").await, None);
    program.sigterm().await;
    let since = Instant::now();
    multiply(on, &setup.store_url(), Many { number, hours: DAYS * 24, mixed: true }).await;
    eprintln!("{number} executions were made in {:?}", since.elapsed());
    program.restart().await
}

/// One call; what was wrong with its answer.
async fn echo(connection: &mut Connection, url: &str, message: &str) -> Option<String> {
    let params = json!({"name": "demo_echo", "arguments": {"message": message}});
    connection.send(&Request::modern(url, json!(1), "tools/call", params).bytes()).await;
    let answer = connection.response().await;
    (answer.status != 200 || answer.answer()["result"]["isError"] == true).then(|| answer.text())
}

/// The times of calls by so many clients until `ended`.
async fn calls_until(url: &str, ended: impl Future<Output = ()>) -> Vec<Duration> {
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (url, stop) = (url.to_owned(), stop.clone());
            tokio::spawn(async move {
                let mut connection = Connection::open(&url).await;
                let mut times = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let since = Instant::now();
                    if let Some(wrong) = echo(&mut connection, &url, &format!("{client} {}", times.len())).await {
                        panic!("a call failed: {wrong}");
                    }
                    times.push(since.elapsed());
                }
                times
            })
        })
        .collect();
    ended.await;
    stop.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.unwrap());
    }
    times
}

/// The half, and the 99th of a hundred.
fn quantiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// In seconds.
fn p99_of(times: &[Duration]) -> f64 {
    quantiles(times.to_vec()).1.as_secs_f64()
}

async fn prune(setup: &Setup, flags: &[&str]) -> Value {
    let url = setup.store_url();
    let ran = setup.cli(&[&["db", "prune", "--json", "--store", &url], flags].concat()).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

on_every_store! {
    retention_goes_to_a_tenth_while_32_clients_call;
    what_is_asked_of_very_many_executions_is_answered_within_300_ms;
    each_rule_of_retention_counts_and_deletes_its_own;
}

async fn retention_goes_to_a_tenth_while_32_clients_call(on: On) {
    let number = stored(MANY);
    let mut scene = Scene { on, number, gone: 0, called: 1, program: with_many(on, "", number).await };
    let (mut without, mut with, mut turns) = (Vec::new(), Vec::new(), Vec::new());
    // By the usual pace, in turns with calls alone: all the way where that is asked for, else through some thousands.
    let is_whole = asked_for("DURABLE_MCP_TEST_STORED").is_some();
    let paced = if is_whole { [23 * 24, 16 * 24, 7 * 24, 3 * 24] } else { [708, 696, 684, 672] };
    for hours in paced {
        let calm = scene.calls_alone().await;
        let busy = scene.retention_beside_calls(hours).await;
        turns.push((p99_of(&calm), p99_of(&busy)));
        without.extend(calm);
        with.extend(busy);
    }
    // And as fast as it can, by hand, to 7 days, as the case asks for, and to a tenth at last: no call fails.
    for hours in [7 * 24, 3 * 24] {
        scene.prune_beside_calls(hours).await;
    }
    let url = scene.program.setup.store_url();
    for table in ["execution_events", "payloads"] {
        let orphans = format!("{table} t WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = t.execution_id)");
        assert_eq!(count(&url, &orphans).await, 0, "{table}");
    }
    let (calls, whole) = (without.len() + with.len(), p99_of(&with) / p99_of(&without));
    let ((p50, p99), (with_p50, with_p99)) = (quantiles(without), quantiles(with));
    eprintln!(
        "{on:?}, {number} executions, {calls} calls of {CLIENTS} clients: p50 {p50:?} p99 {p99:?} without, \
         p50 {with_p50:?} p99 {with_p99:?} while retention works ({whole:.2} x; seconds in each turn, without and with: {turns:.3?})"
    );
    if is_whole {
        assert!(whole <= SLOWER, "{whole:.2} x");
    }
    // In a turn of some seconds anything else may happen on the machine. A stall of ours would be in every turn, and more
    // than what the machine does by itself in the worst of them.
    let (best, worst) =
        turns.iter().fold((f64::INFINITY, 0_f64), |(best, worst), (calm, busy)| (best.min(*busy), worst.max(*calm)));
    assert!(best <= SLOWER * worst, "{turns:?}");
}

/// A server that is called, and what retention deletes meanwhile.
struct Scene {
    on: On,
    number: i64,
    /// Executions that it deleted.
    gone: i64,
    /// Executions that are here by calls.
    called: i64,
    program: Program,
}

impl Scene {
    /// The server, started again with this retention.
    async fn restart(&mut self, retention: &str) {
        self.program.sigterm().await;
        let setup = self.program.setup.clone().config(retention);
        self.program = setup.serve_on(self.program.port()).await;
        self.program.ready().await;
    }

    /// How long calls take without retention.
    async fn calls_alone(&mut self) -> Vec<Duration> {
        self.restart("").await;
        let times = calls_until(self.program.url(), tokio::time::sleep(QUIET)).await;
        self.called += times.len() as i64;
        times
    }

    /// How long they take while the server deletes what is older than so many hours.
    async fn retention_beside_calls(&mut self, hours: i64) -> Vec<Duration> {
        let span = format!("\"{hours}h\"");
        self.restart(&format!("[retention]\nexecutions = {span}\npayloads = {span}\ninterval = \"10ms\"\n")).await;
        let since = Instant::now();
        let mut line = String::new();
        let done = async { line = self.program.process.line_within("retention deleted", AT_MOST).await };
        let times = calls_until(self.program.url(), done).await;
        let gone = self.check(hours, since.elapsed(), &times).await;
        // What became too old since it looked goes in the turns after that.
        let told = line.split("executions=").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        assert!(told.is_some_and(|told| (told..=told + self.number / 1_000).contains(&gone)), "{gone}: {line}");
        times
    }

    /// The same without rests, by hand.
    async fn prune_beside_calls(&mut self, hours: i64) {
        self.restart("[retention]\nshare = 100\nbatch = 500\n").await;
        let since = Instant::now();
        let span = format!("{hours}h");
        let mut told = Value::Null;
        let done = async { told = prune(&self.program.setup, &["--older-than", &span]).await };
        let times = calls_until(self.program.url(), done).await;
        let gone = self.check(hours, since.elapsed(), &times).await;
        assert_eq!(told["executions"], gone, "{told}");
    }

    /// What is left is what has to be; how many are gone that were there before.
    async fn check(&mut self, hours: i64, took: Duration, times: &[Duration]) -> i64 {
        self.called += times.len() as i64;
        // The one that all were copied from is the youngest; the clock goes on while this runs.
        let left = self.number * hours / (DAYS * 24);
        let told = count(&self.program.setup.store_url(), "executions").await - self.called;
        let gone = self.number - told - self.gone;
        eprintln!("{:?}: {gone} deleted within {took:?}, beside {} calls", self.on, times.len());
        assert!(
            (left - self.number / 1_000 - 2..=left).contains(&told),
            "{told} are left, not {left}, at {hours} hours"
        );
        self.gone += gone;
        gone
    }
}

async fn each_rule_of_retention_counts_and_deletes_its_own(on: On) {
    let number = 400;
    let config = "[retention]\nexecutions = \"20d\"\npayloads = \"10d\"\nbatch = 50\nshare = 100\n\
        [retention.failed]\nexecutions = \"25d\"\n\
        [namespaces.acme.retention]\nexecutions = \"5d\"\npayloads = \"5d\"\n";
    let program = with_many(on, config, number).await;
    let setup = program.setup.clone();
    let counted = prune(&setup, &["--dry-run"]).await;
    let rule = |namespace: Value, state: Value| {
        let rules = counted["rules"].as_array().unwrap();
        let found = rules.iter().find(|rule| rule["namespace"] == namespace && rule["state"] == state);
        let found = found.unwrap_or_else(|| panic!("no rule for {namespace} {state}: {counted}"));
        [found["executions"].as_i64().unwrap(), found["payloads"].as_i64().unwrap()]
    };
    // By arithmetic: the copy i was called 30 days * (1 - i / number) ago.
    let expected =
        |days: i64, of: &dyn Fn(i64) -> bool| (0..number * (DAYS - days) / DAYS).filter(|i| of(*i)).count() as i64;
    let (acme, failed) = (|i: i64| i % 4 == 0, |i: i64| i % 10 == 0);
    let acme_gone = expected(5, &acme);
    let others = |i: i64| !acme(i) && !failed(i);
    let others_failed = |i: i64| !acme(i) && failed(i);
    let near = |found: i64, wanted: i64| assert!((found - wanted).abs() <= 1, "{found}, not {wanted}: {counted}");
    assert_eq!(rule(json!("acme"), Value::Null)[1], 0);
    near(rule(json!("acme"), Value::Null)[0], acme_gone);
    near(rule(Value::Null, json!("completed"))[0], expected(20, &others));
    near(rule(Value::Null, json!("completed"))[1], expected(10, &others) - expected(20, &others));
    near(rule(Value::Null, json!("failed"))[0], expected(25, &others_failed));
    near(rule(Value::Null, json!("failed"))[1], expected(10, &others_failed) - expected(25, &others_failed));
    assert_eq!(rule(Value::Null, json!("cancelled")), [0, 0]);
    assert_eq!(count(&setup.store_url(), "executions").await, number + 1, "a dry run deletes nothing");
    let done = prune(&setup, &[]).await;
    near(done["executions"].as_i64().unwrap(), counted["executions"].as_i64().unwrap());
    near(done["payloads"].as_i64().unwrap(), counted["payloads"].as_i64().unwrap());
    let left = prune(&setup, &["--dry-run"]).await;
    assert!(left["executions"].as_i64().unwrap() <= 1, "{left}");
    let young = "executions WHERE namespace = 'acme'";
    near(count(&setup.store_url(), young).await, number / 4 - acme_gone);
}

/// The list, each of its filters and the totals: what is found at once, and what is not there at all.
async fn what_is_asked_of_very_many_executions_is_answered_within_300_ms(on: On) {
    let number = stored(MANY);
    let program = with_many(on, "", number).await;
    let mut slow = Vec::new();
    for path in [
        "/api/v1/executions",
        "/api/v1/executions?state=completed",
        "/api/v1/executions?state=failed,unknown",
        "/api/v1/executions?tool=tool-3",
        "/api/v1/executions?upstream=demo",
        "/api/v1/executions?principal=rare",
        "/api/v1/executions?error_code=nothing",
        "/api/v1/executions?attempts_over=1",
        "/api/v1/executions?recovered=true",
        "/api/v1/executions?key=nothing",
        "/api/v1/totals",
    ] {
        let mut best = Duration::MAX;
        for _ in 0..MEASUREMENTS {
            best = best.min(p95_of(&program.at(path)).await);
            if best <= ANSWERED {
                break;
            }
        }
        eprintln!("{on:?}, {number} executions, {path}: p95 {best:?}");
        if best > ANSWERED {
            slow.push(format!("{path}: {best:?}"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
    pages_are_whole(&program, number).await;
}

/// Pages of the calls of one tool, from the newest on and from the middle on, leave none out and none twice.
async fn pages_are_whole(program: &Program, number: i64) {
    // What whoever asks may see of that tool, newest first.
    let expected: Vec<i64> = (0..number).rev().filter(|i| i % 7 == 3 && i % 4 != 0).collect();
    let mut found = Vec::new();
    let mut before = String::new();
    for _ in 0..3 {
        let page = page_of(program, &format!("tool=tool-3&limit=100{before}")).await;
        found.extend(numbers(&page));
        before = format!("&before={}", page["next_before"].as_str().unwrap());
    }
    assert_eq!(found, expected[..300]);
    // Too far back for whoever looks at the newest ones alone.
    let until = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(DAYS * 12);
    let found = numbers(&page_of(program, &format!("tool=tool-3&limit=100&until={until}")).await);
    assert!((found[0] - number / 2).abs() <= number / 1_000, "{found:?}");
    let place = expected.iter().position(|i| *i == found[0]).unwrap();
    assert_eq!(found, expected[place..place + 100]);
    // Fewer than a page has.
    let since = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
    let found = numbers(&page_of(program, &format!("tool=tool-3&limit=200&since={since}")).await);
    assert_eq!(found, expected[..found.len()]);
    assert!(found.len() < 200, "{found:?}");
}

async fn page_of(program: &Program, query: &str) -> Value {
    let url = program.at(&format!("/api/v1/executions?{query}"));
    Request::new("GET", &url).exchange(&url).await.answer()
}

/// Which copies the executions of a page are, by their ids.
fn numbers(page: &Value) -> Vec<i64> {
    let number = |execution: &Value| {
        let groups: Vec<&str> = execution["id"].as_str().unwrap().split('-').collect();
        let bits = |group: usize| i64::from_str_radix(&groups[group][1..], 16).unwrap();
        bits(3) << 12 | bits(2)
    };
    page["executions"].as_array().unwrap().iter().map(number).collect()
}

async fn p95_of(url: &str) -> Duration {
    let mut times = Vec::new();
    for _ in 0..20 {
        let since = Instant::now();
        let response = Request::new("GET", url).exchange(url).await;
        times.push(since.elapsed());
        assert_eq!(response.status, 200, "{url}: {}", response.text());
    }
    times.sort_unstable();
    times[times.len() * 95 / 100 - 1]
}
