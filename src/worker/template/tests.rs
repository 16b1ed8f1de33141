//! What templates become, as tables. What reconcile rules make of them is tested there.

use super::*;

const ARGUMENTS: &str = r#"{"title":"a \"b\"","n":9007199254740993,"tags":["x",{"y":1.50}],"none":null}"#;

fn values() -> Values<'static> {
    Values { arguments: ARGUMENTS, effect_key: ExecutionId::new(1, &[2; 10]) }
}

fn optional(json: &str) -> Result<String, TemplateError> {
    fill_json(json, &|source| Ok(values().get(source)))
}

#[test]
fn an_absent_argument_leaves_out_what_is_nothing_else() {
    for (template, filled) in [
        (r#"{"a":"{{arguments.title}}","b":"{{arguments.absent}}"}"#, r#"{"a":"a \"b\""}"#),
        (r#"{"deep":{"b":"{{arguments.absent}}"}}"#, r#"{"deep":{}}"#),
        (r#"["{{arguments.absent}}","{{arguments.n}}"]"#, "[9007199254740993]"),
        (r#"{"none":"{{arguments.none}}"}"#, r#"{"none":null}"#),
        (r#""{{arguments.absent}}""#, "null"),
    ] {
        assert_eq!(optional(template).unwrap(), filled, "{template}");
    }
    let wrong = optional(r#"{"a":"x-{{arguments.absent.deep}}"}"#);
    assert_eq!(wrong, Err(TemplateError::Missing("absent.deep".into())));
}

#[test]
fn a_text_falls_into_its_pieces() {
    use Part::{Placeholder as P, Text as T};
    for (text, pieces) in [
        ("", vec![]),
        ("plain", vec![T("plain")]),
        ("{{a}}", vec![P("a")]),
        ("{{ a }}{{b}}", vec![P("a"), P("b")]),
        ("x{{a}}y{{", vec![T("x"), P("a"), T("y{{")]),
        ("{{a", vec![T("{{a")]),
        ("}}", vec![T("}}")]),
    ] {
        assert_eq!(parts(text), pieces, "{text}");
    }
}

#[test]
fn the_value_of_a_placeholder_is_spelt_and_the_rest_is_not() {
    let lookup = |source: &Source| Ok(values().get(source));
    let joined = join(&parts("/a b/{{arguments.title}}/{{arguments.n}}"), &lookup, &|text| text.replace(' ', "+"));
    assert_eq!(joined.unwrap(), "/a b/a+\"b\"/9007199254740993");
}

#[test]
fn unknown_placeholders_are_named() {
    for (text, known) in [("{{argument.a}}", false), ("{{}}", false), ("{{arguments}} {{idempotency_key}}", true)] {
        assert_eq!(check_text(text).is_ok(), known, "{text}");
        assert_eq!(check_json(&quoted(text)).is_ok(), known, "{text}");
    }
    assert_eq!(
        check_text("{{fencing}}").unwrap_err().to_string(),
        "{{fencing}} is unknown; known are {{arguments.NAME}} and {{effect_key}}"
    );
}
