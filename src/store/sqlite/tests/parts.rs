//! The small parts by themselves: bodies of events, pieces of payloads, remembered rows, names of columns.

use crate::model::event::{Digest, Event, Order};
use crate::model::execution::{Effect, ErrorInfo, ResultSource};
use crate::model::id::{Entropy, ProcessId};
use crate::store::encoding::{event, event_body as body, pieces};

fn every_event() -> Vec<Event> {
    let error = ErrorInfo { code: "lost".into(), message: "a \"quoted\"\nword".into() };
    let order = Order { principal: "type".into(), reason: "{\"type\":\"x\"}".into() };
    let process = ProcessId::new(1, &Entropy::default());
    vec![
        Event::Submitted { run_at_ms: None, by: None },
        Event::Submitted { run_at_ms: Some(5), by: None },
        Event::Promoted,
        Event::Leased { worker: "w".into(), process, fencing_token: 1, attempt: 1 },
        Event::Released { fencing_token: 1 },
        Event::Held,
        Event::Parked,
        Event::Resumed,
        Event::Retried { run_at_ms: 1, attempt: 1, ran: true, error: error.clone(), by: Some(order.clone()) },
        Event::Lost { attempt: 1, error: error.clone() },
        Event::Completed {
            fencing_token: Some(1),
            source: ResultSource::LateResult,
            is_error: true,
            result: Digest::of("1"),
            by: Some(order.clone()),
        },
        Event::Failed { attempt: 0, ran: false, error, by: None },
        Event::Cancelled { effect: Effect::Unknown, by: order },
        Event::Rejected { fencing_token: 1, reason: "ended".into(), result: None },
        Event::Conflicted { arguments_hash: "00".into(), foreign: false },
    ]
}

#[test]
fn an_event_is_its_type_and_its_body() {
    let mut names: Vec<&str> = every_event().iter().map(Event::name).collect();
    names.dedup();
    assert_eq!(names, Event::NAMES);
    for original in every_event() {
        let body = body(&original).unwrap();
        assert!(!body.contains("null"), "{body}");
        assert!(serde_json::from_str::<serde_json::Value>(&body).unwrap().get("type").is_none(), "{body}");
        assert_eq!(event(original.name(), &body).unwrap(), original);
    }
    assert_eq!(body(&Event::Held).unwrap(), "{}");
}

#[test]
fn pieces_are_cut_between_characters_and_make_the_whole() {
    for text in ["", "a", "abcdef", "€€€", "a\u{1f600}b\u{1f600}", "日本語テキスト"] {
        for bytes in 1..12 {
            let cut: Vec<&str> = pieces(text, bytes).collect();
            assert_eq!(cut.concat(), text, "{bytes}");
            assert!(cut.iter().all(|piece| piece.len() <= bytes.max(4)), "{cut:?}");
        }
    }
    assert_eq!(pieces("", 10).count(), 1);
}
