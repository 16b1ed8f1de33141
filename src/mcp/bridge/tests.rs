//! What passes between eras: errors, results, and questions in the place of an error.

use super::*;
use crate::mcp::written::Written;

fn bridge(method: &'static str, upstream: Era, client: Era) -> Bridge<'static> {
    Bridge { method, upstream: Some(upstream), client }
}

const READ: &str = "resources/read";

#[test]
fn a_modern_result_loses_its_own_members_for_a_legacy_client_and_no_byte_else() {
    let told = r#"{"resultType":"complete","contents":[{"uri":"x:1","n":1.0}],"ttlMs":5,"cacheScope":"public","_meta":{"a":1e2}}"#;
    let reply = result(told, bridge(READ, Era::Modern, Era::Legacy));
    assert_eq!(reply, Reply::Result(r#"{"contents":[{"uri":"x:1","n":1.0}],"_meta":{"a":1e2}}"#.to_owned().into()));
}

#[test]
fn a_modern_client_gets_what_its_revision_requires_and_an_upstreams_own_word_stays() {
    let Reply::Result(Written::Whole(plain)) = result(r#"{"contents":[]}"#, bridge(READ, Era::Legacy, Era::Modern))
    else {
        panic!()
    };
    assert!(plain.contains(r#""resultType":"complete""#) && plain.contains(r#""ttlMs":0,"cacheScope":"private""#));
    let own = r#"{"contents":[],"resultType":"complete","ttlMs":7,"cacheScope":"public"}"#;
    let Reply::Result(Written::Whole(kept)) = result(own, bridge(READ, Era::Modern, Era::Modern)) else { panic!() };
    assert!(kept.starts_with(own.trim_end_matches('}')), "{kept}");
    let Reply::Result(Written::Whole(prompt)) =
        result(r#"{"messages":[]}"#, bridge("prompts/get", Era::Legacy, Era::Modern))
    else {
        panic!()
    };
    assert!(!prompt.contains("ttlMs"), "{prompt}");
}

#[test]
fn a_missing_resource_has_the_code_of_the_clients_era() {
    let legacy = r#"{"code":-32002,"message":"Resource not found","data":{"uri":"x:1"}}"#;
    let modern = r#"{"code":-32602,"message":"Resource not found","data":{"uri":"x:1"}}"#;
    let raw = |text: &str| Reply::RawError(text.to_owned());
    assert_eq!(error(legacy, bridge(READ, Era::Legacy, Era::Modern)), raw(modern));
    assert_eq!(error(modern, bridge(READ, Era::Modern, Era::Legacy)), raw(legacy));
    assert_eq!(error(legacy, bridge(READ, Era::Legacy, Era::Legacy)), raw(legacy));
    let other = r#"{"code":-32602,"message":"bad cursor"}"#;
    assert_eq!(error(other, bridge(READ, Era::Modern, Era::Legacy)), raw(other));
    let capability = r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{}}}"#;
    assert_eq!(error(capability, bridge("prompts/get", Era::Modern, Era::Modern)), raw(capability));
}

#[test]
fn urls_to_visit_become_questions() {
    let error = r#"{"code":-32042,"message":"m","data":{"elicitations":[
        {"mode":"url","elicitationId":"e1","url":"https://a.example","message":"sign in"}]}}"#;
    let questions = url_questions(error).unwrap();
    let value: serde_json::Value = serde_json::from_str(&questions).unwrap();
    assert_eq!(value["url0"]["method"], "elicitation/create");
    assert_eq!(value["url0"]["params"]["elicitationId"], "e1");
    assert_eq!(url_questions(r#"{"code":-32042,"message":"m"}"#), None);
    assert_eq!(url_questions(r#"{"code":-1,"message":"m"}"#), None);
}
