//! One run with kills and losses, and four who tell of it: the page, `/metrics`, the list of the command line, and SQL over
//! the log. Each number is the same wherever it is told.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::dashboard::{browser_is_set_up, nothing, page, play};
use crate::metrics::{Run, events_by_type, run_with_faults, scrape};
use crate::skip_loudly;
use crate::support::program::Setup;
use crate::support::{DEADLINE, eventually_async};

fn sql(setup: &Setup, question: &str) -> f64 {
    let database = Connection::open(setup.serve_db()).unwrap();
    database.query_row(question, [], |row| row.get::<_, i64>(0)).unwrap() as f64
}

const RECOVERED: &str = "SELECT count(*) FROM executions e WHERE e.state = 'completed' AND EXISTS ( \
    SELECT 1 FROM execution_events v WHERE v.execution_id = e.id AND (v.type = 'lost' OR v.type = 'retried' \
    AND json_extract(v.body, '$.error.code') IN ('process_died', 'lease_expired', 'child_died', 'connection_lost')))";

const LOST: &str = "SELECT count(*) FROM execution_events WHERE type = 'lost' OR type = 'retried' \
    AND json_extract(body, '$.error.code') IN ('process_died', 'lease_expired', 'child_died', 'connection_lost')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_metrics_list_and_log_say_the_same_after_kills_and_losses() {
    skip_loudly!(browser_is_set_up());
    let Run { fleet, a, c, killed, duplicates } = run_with_faults().await;
    let setup = &fleet.setup;
    let list = async |more: &[&str]| -> Vec<Value> {
        let ran = setup.cli(&[&["executions", "list", "--json", "--url", &a.at("")], more].concat()).await;
        assert!(ran.status.success(), "{}", ran.stderr);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    eventually_async("nothing runs any more", DEADLINE, async || {
        list(&["--state", "leased,ready,scheduled,waiting"]).await.is_empty()
    })
    .await;
    let scrapes = [scrape(&a).await, killed, scrape(&c).await];
    let metric = |name: &str, label: &str| {
        let name = format!("durable_mcp_{name}");
        scrapes.iter().map(|scrape| scrape.sum(&name, label)).sum::<f64>()
    };
    // A gauge tells of the store, and each process the same.
    let standing = |label: &str| scrapes[0].sum("durable_mcp_executions", label);
    let logged = events_by_type(&fleet);
    let of = |kind: &str| logged.get(kind).copied().unwrap_or_default();
    let ended = |outcome: &str| metric("calls_total", &format!("outcome=\"{outcome}\""));
    let listed = list(&[]).await;
    let in_state = |state: &str| listed.iter().filter(|row| row["state"] == state).count() as f64;
    let recovered = list(&["--recovered"]).await.len() as f64;

    // What the page is to show, by SQL; beside it what each of the others says.
    let numbers: [(&str, f64, Vec<f64>); 9] = [
        (
            "Stored calls",
            sql(setup, "SELECT count(*) FROM executions"),
            vec![of("submitted"), listed.len() as f64, standing(""), metric("submitted_total", "")],
        ),
        (
            "Outcome unknown",
            sql(setup, "SELECT count(*) FROM executions WHERE state = 'unknown'"),
            vec![in_state("unknown"), standing("state=\"unknown\"")],
        ),
        (
            "Calls that ended",
            sql(setup, "SELECT count(*) FROM execution_events WHERE type IN ('completed', 'failed', 'cancelled')"),
            vec![
                in_state("completed") + in_state("failed") + in_state("cancelled"),
                ended("completed") + ended("tool_error") + ended("failed") + ended("cancelled"),
            ],
        ),
        ("Failed", of("failed"), vec![in_state("failed"), ended("failed")]),
        ("Attempts lost", sql(setup, LOST), vec![metric("attempts_lost_total", "")]),
        ("Recovered", sql(setup, RECOVERED), vec![recovered]),
        ("Became unknown", of("lost"), vec![metric("unknown_total", ""), in_state("unknown")]),
        ("Stale writes rejected", of("rejected"), vec![metric("stale_writes_rejected_total", "")]),
        ("Duplicates answered", duplicates as f64, vec![metric("duplicates_answered_total", "")]),
    ];
    let mut cards = json!({"Running": 0, "In the queue": 0});
    for (name, by_sql, others) in &numbers {
        assert!(others.iter().all(|other| other == by_sql), "{name}: {by_sql} in the log, else {others:?}; {logged:?}");
        cards[*name] = json!(*by_sql as i64);
    }
    for happened in ["Attempts lost", "Recovered", "Became unknown", "Stale writes rejected", "Duplicates answered"] {
        assert!(cards[happened].as_i64() > Some(0), "{happened}: {cards}");
    }
    let mut given = page(&a);
    given["cards"] = cards;
    play("numbers", given, nothing).await;
    // What leaves no event is in the store by now, too.
    let repeats = "SELECT coalesce(sum(json_extract(body, '$.repeats')), 0) FROM series";
    assert_eq!(sql(setup, repeats), duplicates as f64);
    fleet.setup.check_store().await;
}
