//! Definitions from argument types, and handlers with their types forgotten.

use super::*;
use crate::failure::Kind;

#[derive(Deserialize, JsonSchema)]
struct Charge {
    /// Who pays.
    customer: String,
    amount: Option<i64>,
}

#[test]
fn the_schema_is_that_of_the_arguments() {
    let tool = Tool::new("charge").delivery(Delivery::AtLeastOnce).timeout(Duration::from_secs(60)).max_attempts(3);
    let expected = json!({
        "name": "charge",
        "inputSchema": {
            "type": "object",
            "properties": {
                "customer": {"type": "string", "description": "Who pays."},
                "amount": {"type": ["integer", "null"], "format": "int64"},
            },
            "required": ["customer"],
        },
        "delivery": "at_least_once",
        "timeout_ms": 60_000,
        "max_attempts": 3,
    });
    assert_eq!(tool.definition::<Charge>(), expected);
}

#[test]
fn a_schema_by_hand_and_one_that_says_nothing() {
    let by_hand = json!({"type": "object", "minProperties": 1});
    assert_eq!(Tool::new("a").input_schema(by_hand.clone()).definition::<Value>()["inputSchema"], by_hand);
    assert_eq!(Tool::new("a").definition::<Value>()["inputSchema"], json!({"type": "object"}));
}

#[test]
fn arguments_that_do_not_fit_are_the_callers_mistake() {
    let text = RawValue::from_string(r#"{"customer": null}"#.to_owned()).unwrap();
    let Err(Failure(Kind::ToolError(message))) = read::<Charge>(Some(&text)) else { panic!("it fits") };
    assert_eq!(message, "the arguments do not fit: invalid type: null, expected a string");
    assert!(read::<Charge>(None).is_err());
    let text = RawValue::from_string(r#"{"customer": "ada", "amount": 3}"#.to_owned()).unwrap();
    let Ok(Charge { customer, amount }) = read(Some(&text)) else { panic!("it does not fit") };
    assert_eq!((customer.as_str(), amount), ("ada", Some(3)));
}
