//! What is called and expected, what counts, and what is printed.

use std::time::{Duration, Instant};

use super::plan::{Fault, Plan};
use super::report::grouped;
use super::tally::{Tally, Window};
use crate::cli::args::{Cli, Command};
use crate::cli::stage::caller::{Error, Execution, Told, told};
use crate::model::revision::Era;
use clap::Parser;

fn plan(line: &[&str]) -> Result<Plan, super::Failure> {
    let words = ["durable-mcp", "bench"].iter().chain(line);
    match Cli::try_parse_from(words).unwrap().command {
        Command::Bench(args) => Plan::of(&args, "demo_echo", Era::Modern),
        _ => unreachable!("the line says bench"),
    }
}

fn answer(text: &str, id: &str, attached: bool) -> Told {
    let execution = Execution { id: id.to_owned(), state: "completed".to_owned(), attempt: 1, attached };
    Told { text: text.to_owned(), is_error: false, execution: Some(execution) }
}

#[test]
fn each_call_carries_its_key_and_expects_it_back() {
    let plan = plan(&[]).unwrap();
    let key = plan.key(3, 17);
    assert!(plan.arguments_of(&key).contains(&key));
    let right = answer(&format!("{key} {}", "0123456789".repeat(10)), "1", false);
    assert_eq!(plan.fault(&key, &right, None), None);
    let other = plan.key(3, 18);
    assert!(matches!(plan.fault(&other, &right, None), Some(Fault::Wrong(_))), "another call's answer");
    assert_eq!(plan.fault(&key, &Told { execution: None, ..right.clone() }, None), None, "a server of another kind");
    let error = Told { is_error: true, ..right.clone() };
    assert_eq!(plan.fault(&key, &error, None), Some(Fault::Error("tool_error".to_owned())));
}

#[test]
fn a_repeat_has_to_be_the_first_calls_answer() {
    let plan = plan(&["--args", r#"{"a":"{{key}}"}"#, "--duplicates", "2"]).unwrap();
    assert_eq!((plan.arguments_of("k"), plan.duplicates), (r#"{"a":"k"}"#.to_owned(), 2));
    let first = answer("x", "1", false);
    assert_eq!(plan.fault("k", &first, None), None);
    assert_eq!(plan.fault("k", &answer("x", "1", true), Some(&first)), None);
    for wrong in [answer("x", "2", true), answer("y", "1", true)] {
        assert!(matches!(plan.fault("k", &wrong, Some(&first)), Some(Fault::Wrong(_))), "{wrong:?}");
    }
    assert!(matches!(plan.fault("k", &answer("x", "1", true), None), Some(Fault::Wrong(_))), "a new key that is old");
    let mut unknown = first.clone();
    unknown.execution.as_mut().unwrap().state = "unknown".to_owned();
    assert_eq!(plan.fault("k", &unknown, None), Some(Fault::Error("unknown".to_owned())));
}

#[test]
fn arguments_that_are_no_object_are_refused() {
    for arguments in ["[1]", "{", r#"{"a":{{key}}}"#] {
        assert!(plan(&["--args", arguments]).is_err(), "{arguments}");
    }
}

#[test]
fn latencies_are_exact_to_three_digits_and_errors_are_told_apart() {
    let mut tally = Tally::default();
    for ms in 1..=1_000 {
        tally.answered(Duration::from_millis(ms));
    }
    tally.repeated(Duration::from_micros(250), true);
    tally.failed("cut", || "first".to_owned());
    tally.failed("cut", || "second".to_owned());
    let measured = tally.measured(Duration::from_secs(10));
    let near = |measured: f64, expected: f64| (measured - expected).abs() <= expected / 500.0;
    let latency = measured.latency_ms;
    assert!(near(latency.p50, 500.0) && near(latency.p99, 990.0) && near(latency.max, 1_000.0), "{latency:?}");
    assert_eq!((measured.calls, measured.calls_per_s.round()), (1_000, 100.0));
    let repeats = measured.repeats.unwrap();
    assert_eq!((repeats.answered, repeats.attached), (1, 1));
    assert_eq!((measured.errors["cut"].count, measured.errors["cut"].first.as_str()), (2, "first"));
}

#[test]
fn kinds_of_errors_are_bounded() {
    let mut tally = Tally::default();
    (0..100).for_each(|n| tally.failed(&format!("kind {n}"), String::new));
    let errors = tally.measured(Duration::from_secs(1)).errors;
    assert!(errors.len() <= 33, "{}", errors.len());
    assert_eq!(errors.values().map(|errors| errors.count).sum::<u64>(), 100);
}

#[test]
fn only_what_ends_inside_the_window_counts() {
    let from = Instant::now();
    let window = Window { from, until: from + Duration::from_secs(1) };
    assert!(window.holds(from) && !window.holds(window.until));
    assert!(!window.holds(from - Duration::from_nanos(1)));
}

#[test]
fn an_answer_to_another_question_is_told_from_an_error_and_from_a_notification() {
    let right = told(
        br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
        7,
    );
    assert_eq!(right.unwrap().unwrap().text, "a\nb");
    assert!(told(br#"{"jsonrpc":"2.0","method":"notifications/progress"}"#, 7).unwrap().is_none());
    assert!(matches!(told(br#"{"id":8,"result":{}}"#, 7), Err(Error::Foreign(_))));
    assert!(matches!(
        told(br#"{"id":7,"error":{"code":-31409,"message":"no"}}"#, 7),
        Err(Error::Rpc { code: -31409, .. })
    ));
    assert!(matches!(told(b"<html>", 7), Err(Error::Foreign(_))));
}

#[test]
fn numbers_are_grouped() {
    assert_eq!([0.0, 999.4, 1_000.0, 1_234_567.0].map(grouped), ["0", "999", "1,000", "1,234,567"]);
}
