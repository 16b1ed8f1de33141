//! What a cut answer holds, and that it is never longer than it may be.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::execution::Identification;
use crate::model::id::ExecutionId;

fn head() -> Head {
    let id = ExecutionId::new(1_800_000_000_000, &[1; 10]);
    let ident = Identification { upstream: "crm".into(), tool: "export".into(), ..Identification::sample(id) };
    Head::new(ident, 1_800_000_000_000)
}

fn cut(result: &Value, bytes_max: usize, has_output_schema: bool) -> (Value, usize) {
    let text = beginning(&result.to_string(), &head(), (bytes_max, has_output_schema));
    (serde_json::from_str(&text).unwrap(), text.len())
}

#[test]
fn a_cut_answer_begins_as_the_result_does_and_says_how_to_read_the_rest() {
    let image = json!({"type": "image", "data": "x".repeat(9_000), "mimeType": "image/png"});
    let result =
        json!({"content": [{"type": "text", "text": "ab\n".repeat(5_000)}, image], "structuredContent": {"a": 1}});
    let (cut_result, bytes) = cut(&result, 4_096, false);
    assert!(bytes <= 4_096, "{bytes}");
    assert!(cut_result["content"][0]["text"].as_str().unwrap().starts_with("ab\nab\n"));
    let notice = cut_result["content"][1]["text"].as_str().unwrap();
    for words in
        ["durable_result", "\"from\":\"0.0\"", "executions result", "structured content and what of it is no text"]
    {
        assert!(notice.contains(words), "{words}: {notice}");
    }
    assert_eq!((&cut_result["isError"], cut_result.get("structuredContent")), (&json!(false), None));
    // With an output schema a client would refuse a result without what fits it.
    let (cut_result, _) = cut(&result, 4_096, true);
    assert_eq!(cut_result["isError"], json!(true));
    assert!(cut_result["content"][1]["text"].as_str().unwrap().contains("Nothing failed."));
    let only_structured = json!({"content": [], "structuredContent": {"rows": vec![1; 9_000]}});
    let (cut_result, _) = cut(&only_structured, 4_096, false);
    assert!(cut_result["content"][0]["text"].as_str().unwrap().starts_with("{\"rows\":[1,1"));
}

#[test]
fn the_beginning_of_a_long_text_is_found_without_its_end_wherever_it_is_cut() {
    for (unit, escaped) in
        [("a", "a"), ("é", "é"), ("\n", "\\n"), ("\\", "\\\\"), ("\u{1}", "\\u0001"), ("😀", "\\ud83d\\ude00")]
    {
        for shift in 0..ESCAPE_BYTES {
            let quoted = format!("\"{}{}\"", "x".repeat(shift), escaped.repeat(9_000));
            let begun = begun(&quoted, 100).expect("a beginning");
            let whole = format!("{}{}", "x".repeat(shift), unit.repeat(9_000));
            assert!(begun.len() >= 100 && begun.len() < 3_000 && whole.starts_with(&begun), "{escaped} {shift}");
        }
    }
    assert_eq!((begun("\"short\"", 100), begun(&"1".repeat(9_000), 100)), (None, None));
}

proptest! {
    #[test]
    fn a_cut_answer_is_never_longer_than_it_may_be(text in "\\PC{0,4000}", controls in "[\u{0}-\u{1f}\"\\\\]{0,3000}") {
        let result = json!({"content": [{"type": "text", "text": text}, {"type": "text", "text": controls}]});
        let (_, bytes) = cut(&result, 2_048, false);
        prop_assert!(bytes <= 2_048, "{bytes}");
    }
}
