//! Totals and series over HTTP: after a run with faults they are what the list, the log in the database and the export say;
//! and with 100,000 executions in the store they, the list and its filters still answer at once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::many::{Many, multiply};
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Request, Response};
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually_async};

async fn get(program: &Program, path: &str) -> Value {
    let response = ask(program, path).await;
    assert_eq!(response.status, 200, "{path}: {response:?}");
    response.answer()
}

async fn ask(program: &Program, path: &str) -> Response {
    let url = program.at(path);
    Request::new("GET", &url).exchange(&url).await
}

/// Calls a tool, perhaps with a key, perhaps with a time that its answer is waited for.
pub async fn call(
    program: &Program,
    tool: &str,
    (arguments, key): (Value, Option<&str>),
    wait_ms: Option<i64>,
) -> Value {
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": {}});
    if let Some(key) = key {
        params["_meta"]["durable-mcp/idempotencyKey"] = json!(key);
    }
    if let Some(wait_ms) = wait_ms {
        params["_meta"]["durable-mcp/wait"] = json!(wait_ms);
    }
    Request::modern(program.url(), json!(1), "tools/call", params).exchange(program.url()).await.answer()
}

async fn until_state(program: &Program, state: &str, number: usize) {
    eventually_async(&format!("{number} are {state}"), DEADLINE, async || {
        get(program, "/api/v1/totals").await["executions"][state] == number
    })
    .await;
}

/// How often each type of event is in the log, and what SQL says of losses.
fn log(setup: &Setup) -> BTreeMap<String, i64> {
    let database = Connection::open(setup.serve_db()).unwrap();
    let mut statement = database.prepare("SELECT type, count(*) FROM execution_events GROUP BY type").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<rusqlite::Result<_>>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_agree_with_the_list_and_the_log_after_a_run_with_faults() {
    let setup = Setup::new("");
    let schema = setup.folder().join("any.json");
    std::fs::write(&schema, "{\"type\":\"object\"}").unwrap();
    let lasting = |name: &str, delivery: &str| {
        format!(
            "[tools.{name}]\ncommand = [\"sleep\", \"600\"]\ndelivery = \"{delivery}\"\ninput_schema = {:?}\n",
            schema.to_str().unwrap()
        )
    };
    let config = lasting("charge", "at_most_once") + &lasting("index", "at_least_once");
    let setup = setup.config(&config).flag("--demo");
    let mut program = setup.serve().await;
    for number in 0..5 {
        let key = format!("k{number}");
        for _ in 0..=number {
            let answer = call(&program, "demo_echo", (json!({"message": "x"}), Some(&key)), None).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
        let other = call(&program, "demo_echo", (json!({"message": "y"}), Some(&key)), None).await;
        assert_eq!(other["error"]["code"], -31409, "{other}");
    }
    call(&program, "charge", (json!({}), None), Some(0)).await;
    call(&program, "index", (json!({}), None), Some(0)).await;
    until_state(&program, "leased", 2).await;
    // What leaves no event is written down within a second or two; the rest is in the log when it is answered.
    eventually_async("the repeats are written down", DEADLINE, async || {
        let database = Connection::open(setup.serve_db()).unwrap();
        let written: i64 = database
            .query_row("SELECT coalesce(sum(json_extract(body, '$.repeats')), 0) FROM series", [], |row| row.get(0))
            .unwrap();
        written == 10
    })
    .await;
    program.kill_9().await;
    let program = program.restart().await;
    until_state(&program, "unknown", 1).await;
    eventually_async("the other one runs again", DEADLINE, async || {
        get(&program, "/api/v1/series").await["sum"]["attempts"] == 8
    })
    .await;

    let totals = get(&program, "/api/v1/totals").await;
    let listed = program.executions().await;
    for state in ["scheduled", "ready", "leased", "waiting", "completed", "failed", "cancelled", "unknown"] {
        let number = listed.iter().filter(|row| row["state"] == state).count();
        assert_eq!(totals["executions"][state], number, "{state}: {totals}");
    }
    assert_eq!(totals["executions"]["all"], listed.len());
    assert_eq!((&totals["queue"]["depth"], &totals["queue"]["oldest_age_ms"]), (&json!(0), &Value::Null));
    assert_eq!((&totals["workers"]["running"], &totals["workers"]["gone"]), (&json!(1), &json!(1)), "{totals}");

    let log = log(&setup);
    for range in ["15m", "1h", "24h"] {
        let series = get(&program, &format!("/api/v1/series?range={range}")).await;
        let sum = &series["sum"];
        assert_eq!(sum["submitted"], log["submitted"], "{series}");
        assert_eq!(sum["completed"], log["completed"]);
        assert_eq!(sum["conflicts"], log["conflicted"]);
        assert_eq!(sum["retried"], log["retried"]);
        assert_eq!(sum["unknown"], log["lost"]);
        assert_eq!(sum["lost"], log["lost"] + log["retried"]);
        assert_eq!(sum["attempts"], log["leased"]);
        let crash_rate = sum["crash_rate"].as_f64().unwrap();
        assert!((crash_rate - 2.0 / 8.0).abs() < 1e-9, "{crash_rate}");
        // 0 + 1 + 2 + 3 + 4 calls under a key that was there.
        assert_eq!(sum["repeats"], 10, "{sum}");
        let steps = series["steps"].as_array().unwrap();
        let added: i64 = steps.iter().map(|step| step["numbers"]["submitted"].as_i64().unwrap()).sum();
        assert_eq!(added, log["submitted"]);
        let latency = &sum["latency"];
        assert!(latency["p50_ms"].as_u64() <= latency["p95_ms"].as_u64(), "{latency}");
    }
    for (path, status) in [
        ("/api/v1/series?range=2h", 400),
        ("/api/v1/series?range=1h&range=1h", 400),
        ("/api/v1/series?rang=1h", 400),
        ("/api/v1/totals?x=1", 400),
    ] {
        let response = ask(&program, path).await;
        assert_eq!((response.status, &response.answer()["code"]), (status, &json!("invalid_parameter")), "{path}");
    }
}

const STORED: i64 = 100_000;

/// The time that 95 of 100 requests do not exceed, each answered with what `holds` of it.
async fn p95(program: &Program, path: &str, holds: impl Fn(&Value) -> bool) -> Duration {
    let mut times = Vec::new();
    for _ in 0..40 {
        let begun = Instant::now();
        let response = ask(program, path).await;
        times.push(begun.elapsed());
        let answer = response.answer();
        assert!(response.status == 200 && holds(&answer), "{path}: {}", answer.to_string().get(..400).unwrap_or(""));
    }
    times.sort_unstable();
    times[times.len() * 95 / 100 - 1]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_stored_calls_are_listed_filtered_and_counted_at_once() {
    let setup = Setup::new("").flag("--demo");
    let mut program = setup.serve().await;
    call(&program, "demo_echo", (json!({"message": "x"}), None), None).await;
    program.kill_9().await;
    multiply(On::Sqlite, &setup.store_url(), Many { number: STORED, hours: 20, mixed: false }).await;
    let program = program.restart().await;
    // Without authentication one sees what nobody in particular called, and that is nearly all of it.
    let all = STORED + 1 - STORED / 1_000;
    eventually_async("the minutes are counted", Duration::from_secs(120), async || {
        let database = Connection::open(setup.serve_db()).unwrap();
        let until_ms: i64 = database.query_row("SELECT until_ms FROM series_closed", [], |row| row.get(0)).unwrap();
        let newest_ms: i64 =
            database.query_row("SELECT max(created_at_ms) FROM executions", [], |row| row.get(0)).unwrap();
        until_ms > newest_ms - 15 * 60_000
    })
    .await;
    let series = get(&program, "/api/v1/series?range=24h").await;
    assert_eq!((&series["sum"]["completed"], &series["sum"]["attempts"]), (&json!(all), &json!(all)), "{series}");
    let rows = |answer: &Value, number: usize| answer["executions"].as_array().is_some_and(|rows| rows.len() == number);
    type Holds<'a> = Box<dyn Fn(&Value) -> bool + 'a>;
    let (now_ms, namespace, upstream): (i64, String, String) = Connection::open(setup.serve_db())
        .unwrap()
        .query_row("SELECT max(created_at_ms), namespace, upstream FROM executions", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    let at = |hours_ago: i64| jiff::Timestamp::from_millisecond(now_ms - hours_ago * 3_600_000).unwrap().to_string();
    let (since, until) = (at(3), at(2));
    let spans = [format!("since={since}&until={until}"), format!("since={since}"), format!("until={until}")];
    let mut cases: Vec<(String, u64, Holds<'_>)> = Vec::new();
    for filter in spans {
        let path = format!("/api/v1/executions?{filter}");
        cases.push((path, 300, Box::new(|answer| rows(answer, 50))));
    }
    for (filter, found) in [
        ("state=completed", 50),
        ("state=leased,ready,scheduled,waiting", 0),
        ("state=cancelled", 0),
        ("tool=tool-3&state=completed", 50),
        ("tool=nothing", 0),
        (&format!("upstream={upstream}"), 50),
        ("upstream=nothing", 0),
        (&format!("namespace={namespace}"), 50),
        ("key=nothing", 0),
        ("id_prefix=0", 50),
        ("id_prefix=ffff", 0),
        ("attempts_over=1", 0),
    ] {
        let path = format!("/api/v1/executions?{filter}");
        cases.push((path, 300, Box::new(move |answer| rows(answer, found))));
    }
    let more: [(&str, u64, Holds<'_>); 9] = [
        ("/api/v1/executions", 200, Box::new(|answer| rows(answer, 50))),
        ("/api/v1/executions?limit=100&state=completed", 200, Box::new(|answer| rows(answer, 100))),
        ("/api/v1/executions?tool=tool-3", 300, Box::new(|answer| rows(answer, 50))),
        ("/api/v1/executions?state=failed,unknown", 300, Box::new(|answer| rows(answer, 0))),
        ("/api/v1/executions?error_code=nothing", 300, Box::new(|answer| rows(answer, 0))),
        ("/api/v1/executions?recovered=true", 300, Box::new(|answer| rows(answer, 0))),
        ("/api/v1/totals", 300, Box::new(|answer| answer["executions"]["all"] == all)),
        (
            "/api/v1/series?range=15m",
            300,
            Box::new(|answer| answer["steps"].as_array().is_some_and(|all| all.len() == 15)),
        ),
        ("/api/v1/series?range=24h", 300, Box::new(|answer| answer["sum"]["completed"] == all)),
    ];
    cases.extend(more.into_iter().map(|(path, most_ms, holds)| (path.to_owned(), most_ms, holds)));
    let mut slow = Vec::new();
    for (path, most_ms, holds) in &cases {
        let took = p95(&program, path, holds).await;
        eprintln!("{path}: p95 {took:?}");
        if took > Duration::from_millis(*most_ms) {
            slow.push(format!("{path} took {took:?}, not {most_ms} ms"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}
