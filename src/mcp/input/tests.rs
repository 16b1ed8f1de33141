//! The ids of questions, and what counts as an answer.

use serde_json::value::RawValue;

use super::*;

fn id(text: &str) -> Id<'static> {
    let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
    Id::parse(&raw).unwrap().into_owned()
}

#[test]
fn an_id_of_ours_is_read_back_and_no_other_is() {
    let execution = ExecutionId::new(1_800_000_000_000, &[7; 10]);
    let ours = request_id(execution, 12);
    assert_eq!(read_request_id(&id(&format!("\"{ours}\""))), Some((execution, 12)));
    let upper = ours.to_uppercase();
    for other in
        [format!("\"{ours}0x\""), format!("\"{execution}.012\""), format!("\"{execution}\""), format!("\"{upper}\"")]
    {
        assert_eq!(read_request_id(&id(&other)), None, "{other}");
    }
    assert_eq!(read_request_id(&id("12")), None);
    assert_eq!(read_request_id(&id("\"x.1\"")), None);
}

#[test]
fn a_question_is_a_request_with_its_parameters_byte_for_byte() {
    let execution = ExecutionId::new(1_800_000_000_000, &[7; 10]);
    let question = OpenQuestion {
        number: 3,
        round: 1,
        key: "k".into(),
        method: "elicitation/create".into(),
        params: "{\"message\": \"M\\u00e9\", \"x\": 1.0}".into(),
        asked_at_ms: 0,
    };
    let expected = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"{execution}.3\",\"method\":\"elicitation/create\",\"params\":{{\"message\": \"M\\u00e9\", \"x\": 1.0}}}}"
    );
    assert_eq!(request(execution, &question), expected);
    assert!(withdrawal(execution, 3).contains(&format!("\"requestId\":\"{execution}.3\"")));
}

#[test]
fn an_answer_has_the_form_of_its_question() {
    let right = [
        ("elicitation/create", r#"{"action":"accept","content":{"a":1}}"#),
        ("elicitation/create", r#"{"action":"accept"}"#),
        ("elicitation/create", r#"{"action":"decline"}"#),
        ("elicitation/create", r#"{"action":"cancel","_meta":{}}"#),
        ("sampling/createMessage", r#"{"role":"assistant","model":"m","content":{"type":"text","text":"t"}}"#),
        ("roots/list", r#"{"roots":[]}"#),
    ];
    for (method, response) in right {
        assert!(fits(method, response), "{method} {response}");
    }
    let wrong = [
        ("elicitation/create", r#"{}"#),
        ("elicitation/create", r#"{"action":"yes"}"#),
        ("elicitation/create", r#"{"action":"accept","content":"text"}"#),
        ("elicitation/create", r#"[]"#),
        ("elicitation/create", r#"null"#),
        ("sampling/createMessage", r#"{"role":"assistant","content":{}}"#),
        ("roots/list", r#"{"roots":{}}"#),
    ];
    for (method, response) in wrong {
        assert!(!fits(method, response), "{method} {response}");
    }
}
