//! What rules ask and how they judge, as tables; and the loop against a store, with a scripted server.

mod asking;

use super::*;
use crate::worker::template::TemplateError;

const ARGUMENTS: &str = r#"{"title":"a \"b\"","n":9007199254740993,"tags":["x",{"y":1.50}],"none":null,"a.b":1}"#;

fn key() -> ExecutionId {
    ExecutionId::new(1, &[2; 10])
}

fn rule(arguments: &str, matches: &str) -> std::result::Result<Rule, RuleError> {
    let configured =
        crate::worker::rules::Reconcile { tool: "find".into(), arguments: arguments.into(), matches: matches.into() };
    Rule::parse(&configured)
}

fn question(arguments: &str, matches: &str) -> Question {
    rule(arguments, matches).unwrap().question(LostCall { arguments: ARGUMENTS, effect_key: key() }).unwrap()
}

fn structured(json: &str) -> String {
    format!(r#"{{"content":[],"structuredContent":{json}}}"#)
}

#[test]
fn placeholders_take_raw_values_alone_and_texts_within_a_text() {
    let key = key();
    for (template, filled) in [
        (r#"{"q":"{{arguments.title}}"}"#, r#"{"q":"a \"b\""}"#.to_owned()),
        (r#"{"q":"title:{{ arguments.title }}!"}"#, r#"{"q":"title:a \"b\"!"}"#.into()),
        (r#"{"n":"{{arguments.n}}"}"#, r#"{"n":9007199254740993}"#.into()),
        (r#"{"n":"n={{arguments.n}}"}"#, r#"{"n":"n=9007199254740993"}"#.into()),
        (r#"{"n":"{{arguments.tags.1.y}}"}"#, r#"{"n":1.50}"#.into()),
        (r#"{"t":["{{arguments.tags}}"]}"#, r#"{"t":[["x",{"y":1.50}]]}"#.into()),
        (r#"{"n":"{{arguments.none}}"}"#, r#"{"n":null}"#.into()),
        (r#"{"all":"{{arguments}}"}"#, format!(r#"{{"all":{ARGUMENTS}}}"#)),
        (r#"{"k":"{{effect_key}}"}"#, format!(r#"{{"k":"{key}"}}"#)),
        (r#"{"k":"{{idempotency_key}}-{{effect_key}}"}"#, format!(r#"{{"k":"{key}-{key}"}}"#)),
        (r#"{"plain":1.0,"s":"{ {{","u":"é"}"#, r#"{"plain":1.0,"s":"{ {{","u":"é"}"#.into()),
    ] {
        assert_eq!(question(template, " == 1").arguments, filled, "{template}");
    }
}

#[test]
fn a_rule_that_cannot_be_read_says_why() {
    for (arguments, matches, code) in [
        ("{}", "/a = 1", "reconcile_match"),
        ("{}", "a == 1", "reconcile_match"),
        ("{}", "/a == title", "reconcile_match"),
        ("{}", "/a ==", "reconcile_match"),
        ("[]", "/a == 1", "reconcile_arguments"),
        (r#"{"q":"{{title}}"}"#, "/a == 1", "reconcile_placeholder"),
        (r#"{"q":[{"r":"x {{ }}"}]}"#, "/a == 1", "reconcile_placeholder"),
    ] {
        assert_eq!(rule(arguments, matches).unwrap_err().code(), code, "{arguments} {matches}");
    }
}

#[test]
fn a_call_without_the_argument_has_no_question() {
    let call = LostCall { arguments: "{}", effect_key: key() };
    for rule in [rule(r#"{"q":"{{arguments.title}}"}"#, "/a == 1"), rule("{}", "/a == arguments.title")] {
        assert_eq!(rule.unwrap().question(call), Err(TemplateError::Missing("title".into()).into()));
    }
}

#[test]
fn answers_are_judged_by_exact_value() {
    use Verdict::{NoEffect, TookEffect, Unclear};
    let unclear = Unclear("its result has nothing where the rule looks");
    for (matches, answer, verdict) in [
        ("/items/0/title == arguments.title", r#"{"items":[{"title":"a \u0022b\""}]}"#, TookEffect),
        ("/items/0/title == arguments.title", r#"{"items":[{"title":"other"}]}"#, NoEffect),
        // A list that is too short says so plainly; a thing of another shape does not.
        ("/items/0/title == arguments.title", r#"{"items":[]}"#, NoEffect),
        ("/items/0/title == arguments.title", r#"{"items":[{}]}"#, unclear.clone()),
        ("/items/0/title == arguments.title", r#"{"items":null}"#, unclear.clone()),
        ("/items/0/title == arguments.title", r#"{}"#, unclear.clone()),
        ("/items/00 == 1", r#"{"items":[1]}"#, unclear.clone()),
        ("/items/- == 1", r#"{"items":[1]}"#, unclear.clone()),
        ("/n == arguments.n", r#"{"n":9007199254740993.0}"#, TookEffect),
        ("/n == arguments.n", r#"{"n":9007199254740992}"#, NoEffect),
        ("/n == 1.50", r#"{"n":15e-1}"#, TookEffect),
        ("/n == 1", r#"{"n":"1"}"#, NoEffect),
        ("/t == arguments.tags", r#"{"t":["x",{"y":1.5}]}"#, TookEffect),
        ("/t/1 == {\"y\": 1.5}", r#"{"t":["x",{"y":1.5}]}"#, TookEffect),
        ("/found == true", r#"{"found":true}"#, TookEffect),
        ("/found == true", r#"{"found":null}"#, NoEffect),
        ("/a~1b/c~0d == 1", r#"{"a/b":{"c~d":1}}"#, TookEffect),
        ("/ == 1", r#"{"":1}"#, TookEffect),
        (" == \"done\"", r#""done""#, TookEffect),
        ("/eq == \"a==b\"", r#"{"eq":"a==b"}"#, TookEffect),
    ] {
        assert_eq!(question("{}", matches).judge(&structured(answer)), verdict, "{matches} on {answer}");
    }
    let answer = structured(&format!(r#"{{"key":"{}"}}"#, key()));
    for matches in ["/key == effect_key", "/key == idempotency_key"] {
        assert_eq!(question("{}", matches).judge(&answer), Verdict::TookEffect);
    }
}

#[test]
fn without_structured_content_the_first_text_is_the_answer() {
    let question = question("{}", "/found == true");
    for (result, took_effect) in [
        (r#"{"content":[{"type":"image"},{"type":"text","text":" {\"found\":true} "}]}"#, Some(true)),
        (
            r#"{"content":[{"type":"text","text":"{\"found\":false}"},{"type":"text","text":"{\"found\":true}"}]}"#,
            Some(false),
        ),
        (r#"{"content":[{"type":"text","text":"{\"found\":true}"}],"structuredContent":{"found":false}}"#, Some(false)),
        (r#"{"content":[{"type":"text","text":"found it"}]}"#, None),
        (r#"{"content":[]}"#, None),
        (r#"{"content":[{"type":"text","text":"{\"found\":true}"}],"isError":true}"#, None),
        (r#"{"content":7}"#, None),
        ("[]", None),
    ] {
        let verdict = match question.judge(result) {
            Verdict::TookEffect => Some(true),
            Verdict::NoEffect => Some(false),
            Verdict::Unclear(_) => None,
        };
        assert_eq!(verdict, took_effect, "{result}");
    }
}

#[test]
fn a_recorded_result_says_where_it_comes_from_and_keeps_the_answers_bytes() {
    let rule = rule("{}", "/a == 1").unwrap();
    let answer = r#"{"content":[{"type":"text","text":"1.0","x":1.0}],"structuredContent":{"a":1}}"#;
    let recorded = confirmed(&rule, answer, 10_000);
    assert!(recorded.starts_with(r#"{"content":[{"type":"text","text":"Reconciled: "#), "{recorded}");
    assert!(recorded.ends_with(r#",{"type":"text","text":"1.0","x":1.0}]}"#), "{recorded}");
    let recorded = confirmed(&rule, r#"{"content":[],"structuredContent":{"a":1.0}}"#, 10_000);
    assert!(recorded.ends_with(r#",{"type":"text","text":"{\"a\":1.0}"}]}"#), "{recorded}");
    let recorded = confirmed(&rule, answer, 10);
    assert!(recorded.ends_with(r#"follows."}]}"#), "{recorded}");
}
