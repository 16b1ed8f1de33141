//! What is shipped for Grafana and Prometheus against what `/metrics` serves: every name in a query is a series that is
//! there, and every family is in docs/metrics.md. Runs neither of the two programs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cases_scene::Caller;
use crate::metrics::{Scrape, scrape};
use crate::support::program::Setup;
use crate::support::repository::{text, yaml};

/// The words of a query that are names of ours.
fn names(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("durable_mcp_")).map(str::to_owned).collect()
}

fn queries(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| queries(item, key, found)),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == key => found.push(text.clone()),
                    member => queries(member, key, found),
                }
            }
        }
        _ => {}
    }
}

/// What is wrong with queries, next to what is served.
fn faults(queries: &[String], served: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for query in queries {
        let named = names(query);
        if named.is_empty() {
            faults.push(format!("asks for nothing of ours: {query}"));
        }
        faults
            .extend(named.into_iter().filter(|name| !served.contains(name)).map(|name| format!("{name} is not there")));
        if query.matches(['(', '{', '[']).count() != query.matches([')', '}', ']']).count() {
            faults.push(format!("brackets do not match: {query}"));
        }
    }
    faults
}

/// What a process serves that has run one call and has one server.
async fn served() -> Scrape {
    let gone = "[servers.gone]\ncommand = \"false\"\nstart_timeout = \"100ms\"\n";
    let program = Setup::new(gone).flag("--demo").serve().await;
    let caller = Caller::modern(program.url());
    // The key stands for another call then, which is refused.
    for message in ["x", "y"] {
        caller.keyed("k", "demo_echo", json!({"message": message})).await;
    }
    scrape(&program).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_that_a_board_or_an_alert_names_is_served_and_described() {
    let served: BTreeSet<String> = served().await.names();
    assert!(served.len() > 25, "{served:?}");

    let board: Value = serde_json::from_str(&text("deploy/grafana/durable-mcp.json")).unwrap();
    let mut asked = Vec::new();
    queries(&board["panels"], "expr", &mut asked);
    assert!(asked.len() > 25, "{asked:?}");
    assert_eq!(faults(&asked, &served), [""; 0]);

    let rules = yaml(&text("deploy/alerts/durable-mcp.yaml"));
    let rules = rules[0]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 10, "{rules:?}");
    for rule in rules {
        let expr = rule["expr"].as_str().unwrap_or_else(|| panic!("{rule}")).to_owned();
        assert_eq!(faults(std::slice::from_ref(&expr), &served), [""; 0], "{rule}");
        for member in ["/alert", "/labels/severity", "/annotations/summary", "/annotations/next"] {
            assert!(rule.pointer(member).is_some_and(Value::is_string), "{member}: {rule}");
        }
        asked.push(expr);
    }

    let page = text("docs/metrics.md");
    let rows: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for name in &served {
        let family = ["_bucket", "_count", "_sum"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
        assert!(rows.contains(family), "{family} is not in docs/metrics.md");
    }
    let shown: BTreeSet<String> = asked.iter().flat_map(|query| names(query)).collect();
    let unseen: Vec<&str> = rows
        .iter()
        .filter(|row| row.starts_with("durable_mcp_"))
        .filter(|row| !shown.iter().any(|name| name.starts_with(**row)))
        .copied()
        .collect();
    assert_eq!(unseen, [""; 0], "no board or alert shows them");
}

#[test]
fn a_query_for_what_is_not_there_is_found() {
    let served = BTreeSet::from(["durable_mcp_calls_total".to_owned()]);
    let of = |query: &str| faults(&[query.to_owned()], &served).len();
    assert_eq!(of("sum(rate(durable_mcp_calls_total{a=\"b\"}[5m]))"), 0);
    assert_eq!(of("sum(rate(durable_mcp_calls{a=\"b\"}[5m]))"), 1);
    assert_eq!(of("sum(up)"), 1);
    assert_eq!(of("sum(rate(durable_mcp_calls_total[5m])"), 1);
}
