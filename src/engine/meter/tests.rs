//! The counters against events, and docs/metrics.md against the families.
//! `BLESS=1 cargo nextest run -E 'test(page_of_metrics)'` writes the table anew.

use std::fmt::Write;

use super::*;
use crate::model::event::Digest;
use crate::model::execution::ResultSource;
use crate::model::id::{OperationId, ProcessId};

const START: &str = "<!-- families: made from the program -->\n";
const END: &str = "<!-- end of families -->\n";
const AT_MS: i64 = 1_800_000_000_000;

fn figures() -> Figures {
    let executions = State::ALL.into_iter().map(|state| (state, 1)).collect();
    Figures { executions, upstreams: vec![("crm".into(), true)], ..Figures::default() }
}

/// The value of a series, by its text before the value.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn committed(number: u64, at_ms: i64, events: Vec<Event>) -> Committed {
    let mut bits = [0; 10];
    bits[2..].copy_from_slice(&number.to_be_bytes());
    Committed {
        id: ExecutionId::new(AT_MS, &bits),
        upstream: "crm".into(),
        tool: "add_note".into(),
        was: None,
        created_at_ms: AT_MS,
        run_at_ms: AT_MS,
        continues: false,
        operation: OperationId::new(AT_MS, &bits),
        at_ms,
        events,
    }
}

fn submitted() -> Event {
    Event::Submitted { run_at_ms: None, by: None }
}

fn leased() -> Event {
    let process = ProcessId::new(AT_MS, &Default::default());
    Event::Leased { worker: "one".into(), process, fencing_token: 1, attempt: 1 }
}

fn completed() -> Event {
    let source = ResultSource::Result;
    Event::Completed { fencing_token: Some(1), source, is_error: false, result: Digest::of("{}"), by: None }
}

fn error(code: &str) -> ErrorInfo {
    ErrorInfo { code: code.into(), message: "words".into() }
}

#[test]
fn the_parts_of_a_calls_life_are_told_from_its_events() {
    let meter = Meter::new(10);
    meter.committed(&[committed(1, AT_MS, vec![submitted()])]);
    meter.committed(&[committed(1, AT_MS + 500, vec![leased()])]);
    meter.committed(&[committed(1, AT_MS + 2_500, vec![completed()])]);
    let text = meter.encode(&figures());
    let of = |phase: &str, part: &str| {
        let labels = format!("{{upstream=\"crm\",tool=\"add_note\",phase=\"{phase}\"}}");
        value(&text, &format!("durable_mcp_phase_seconds_{part}{labels}")).unwrap_or_else(|| panic!("{phase}: {text}"))
    };
    assert_eq!((of("queued", "sum"), of("queued", "count")), (0.5, 1.0));
    assert_eq!((of("run", "sum"), of("run", "count")), (2.0, 1.0));
    assert_eq!((of("total", "sum"), of("total", "count")), (2.5, 1.0));
    let ended = "durable_mcp_calls_total{upstream=\"crm\",tool=\"add_note\",outcome=";
    assert_eq!(value(&text, &format!("{ended}\"completed\"}}")), Some(1.0));
    assert_eq!(value(&text, &format!("{ended}\"failed\"}}")), Some(0.0), "what never happened is zero");
}

#[test]
fn a_lease_that_ends_without_a_word_is_lost_whatever_comes_of_it() {
    let meter = Meter::new(10);
    let failed = |code: &str| Event::Failed { attempt: 3, ran: true, error: error(code), by: None };
    meter.committed(&[
        committed(1, AT_MS, vec![Event::Lost { attempt: 1, error: error("process_died") }]),
        committed(2, AT_MS, vec![failed("lease_expired")]),
        committed(3, AT_MS, vec![failed("rpc_error")]),
    ]);
    let text = meter.encode(&figures());
    assert_eq!(value(&text, "durable_mcp_leases_lost_total{cause=\"process_died\"}"), Some(1.0));
    assert_eq!(value(&text, "durable_mcp_leases_lost_total{cause=\"lease_expired\"}"), Some(1.0));
    assert_eq!(value(&text, "durable_mcp_attempts_lost_total{cause=\"process_died\"}"), Some(1.0));
    assert_eq!(value(&text, "durable_mcp_unknown_total"), Some(1.0));
    assert_eq!(value(&text, "durable_mcp_events_total{type=\"failed\"}"), Some(2.0));
}

#[test]
fn tools_beyond_the_limit_share_a_name() {
    let meter = Meter::new(2);
    for number in 0..50_u64 {
        let tool = format!("tool_{number}");
        meter.committed(&[Committed { tool, ..committed(number, AT_MS, vec![submitted()]) }]);
    }
    let text = meter.encode(&figures());
    let series: Vec<&str> = text.lines().filter(|line| line.starts_with("durable_mcp_submitted_total{")).collect();
    assert_eq!(series.len(), 3, "{series:?}");
    assert_eq!(value(&text, "durable_mcp_submitted_total{upstream=\"other\",tool=\"other\"}"), Some(48.0));
}

#[test]
fn what_other_processes_ended_does_not_fill_the_memory() {
    let meter = Meter::new(10);
    let begin = |number: usize, at_ms: i64| meter.begin(committed(number as u64, at_ms, Vec::new()).id, at_ms);
    (0..BEGUN_MAX).for_each(|number| begin(number, AT_MS));
    begin(BEGUN_MAX, AT_MS + BEGUN_MS - 1);
    assert_eq!(meter.begun_ms().len(), BEGUN_MAX, "it has room for no more");
    begin(BEGUN_MAX, AT_MS + BEGUN_MS);
    assert_eq!(meter.begun_ms().len(), 1, "what is old has left");
}

#[test]
fn the_page_of_metrics_names_every_family() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = written.split_once(START).expect("the start mark");
    let (_, after) = rest.split_once(END).expect("the end mark");
    let wanted = format!("{before}{START}{}{END}{after}", table());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(written == wanted, "docs/metrics.md is behind the program; the head of this file says how to renew it");
    }
}

/// A row for each family: its name as it is asked for, its labels, its help.
fn table() -> String {
    let meter = Meter::new(10);
    meter.committed(&[committed(1, AT_MS, vec![submitted()])]);
    meter.refused("overloaded");
    meter.restarts("crm");
    let text = meter.encode(&figures());
    let mut rows = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (family, kind) = line.split_once(' ').unwrap();
        let help = format!("# HELP {family} ");
        let help = text.lines().find_map(|line| line.strip_prefix(&help)).unwrap().trim_end_matches('.');
        let end = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let sample = |line: &&str| !line.starts_with('#') && line.starts_with(family);
        let labels = text.lines().find(sample).unwrap_or_else(|| panic!("{family} has no sample: {text}"));
        let labels = labels.split_once('{').map_or("", |(_, rest)| rest.split_once('}').unwrap().0);
        let names = labels.split(',').filter_map(|label| Some(format!("`{}`", label.split_once('=')?.0)));
        let names: Vec<String> = names.filter(|name| name != "`le`").collect();
        let names = if names.is_empty() { "–".to_owned() } else { names.join(" ") };
        rows.push(format!("| `{family}{end}` | {kind} | {names} | {help} |"));
    }
    rows.sort();
    assert!(rows.len() > 20, "{rows:?}");
    let mut table = "| name | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
    rows.iter().for_each(|row| writeln!(table, "{row}").unwrap());
    table
}
