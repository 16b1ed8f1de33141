//! The shapes that the CLI and the API print, as text.

use super::*;
use crate::model::event::{Digest, Event, Order};
use crate::model::execution::Identification;
use crate::model::id::{ExecutionId, OperationId, ProcessId};

fn id(n: u8) -> ExecutionId {
    ExecutionId::new(1_700_000_000_000, &[n; 10])
}

fn head() -> Head {
    Head::new(
        Identification {
            upstream: "github".into(),
            tool: "create_issue".into(),
            key: Some("release-1".into()),
            principal: "ci".into(),
            arguments_hash: "aa".into(),
            ..Identification::sample(id(1))
        },
        1_700_000_000_000,
    )
}

fn text(view: &impl Serialize) -> String {
    serde_json::to_string(view).unwrap()
}

#[test]
fn times_have_three_decimals_and_survive_any_number() {
    assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00.000Z");
    assert_eq!(Time(1_700_000_000_120).to_string(), "2023-11-14T22:13:20.120Z");
    assert!(Time(i64::MAX).to_string().starts_with("9999-12-"));
    assert!(Time(i64::MIN).to_string().starts_with('-'));
}

#[test]
fn an_execution_shows_every_member_in_one_order() {
    let mut head = head();
    head.apply(&Event::Submitted { run_at_ms: None, by: None }, 1_700_000_000_000);
    let process = ProcessId::new(0, &[0; 10]);
    head.apply(&Event::Leased { worker: "host.1".into(), process, fencing_token: 1, attempt: 1 }, 1_700_000_000_001);
    assert_eq!(
        text(&ExecutionView::of(&head)),
        concat!(
            r#"{"id":"018bcfe5-6800-7101-8101-010101010101","state":"leased","tool":"create_issue","upstream":"github","#,
            r#""namespace":"default","principal":"ci","key":"release-1","attempt":1,"attempts_allowed":3,"#,
            r#""delivery":"at_most_once","delivery_source":"default","fencing_token":1,"#,
            r#""created_at":"2023-11-14T22:13:20.000Z","updated_at":"2023-11-14T22:13:20.001Z","run_at":null,"#,
            r#""ended_at":null,"error":null,"effect":null,"source":null,"is_error":null,"retry_of":null,"#,
            r#""effect_key":"018bcfe5-6800-7101-8101-010101010101","#,
            r#""lease":{"worker":"host.1","expires_at":"2023-11-14T22:13:20.001Z"}}"#
        )
    );
}

#[test]
fn an_event_shows_place_type_and_time_before_its_own_members() {
    let record =
        |seq, event| EventRecord { seq, at_ms: 1_700_000_000_000, operation: OperationId::new(0, &[0; 10]), event };
    let error = ErrorInfo { code: "lease_expired".into(), message: "gone".into() };
    for (event, expect) in [
        (Event::Promoted, r#"{"seq":2,"type":"promoted","at":"2023-11-14T22:13:20.000Z"}"#),
        (
            Event::Submitted { run_at_ms: Some(1_700_000_001_000), by: None },
            r#"{"seq":2,"type":"submitted","at":"2023-11-14T22:13:20.000Z","run_at":"2023-11-14T22:13:21.000Z"}"#,
        ),
        (
            Event::Retried { run_at_ms: 1_700_000_001_000, attempt: 1, ran: true, error, by: None },
            concat!(
                r#"{"seq":2,"type":"retried","at":"2023-11-14T22:13:20.000Z","run_at":"2023-11-14T22:13:21.000Z","#,
                r#""attempt":1,"error":{"code":"lease_expired","message":"gone"},"ran":true}"#
            ),
        ),
        (
            Event::Cancelled { effect: Effect::Unknown, by: Order { principal: "ann".into(), reason: "wrong".into() } },
            concat!(
                r#"{"seq":2,"type":"cancelled","at":"2023-11-14T22:13:20.000Z","#,
                r#""by":{"principal":"ann","reason":"wrong"},"effect":"unknown"}"#
            ),
        ),
    ] {
        assert_eq!(text(&EventView::of(&record(2, event))), expect);
    }
}

#[test]
fn a_result_is_the_exact_text_of_the_tool() {
    let mut head = head();
    let exact: Payload = r#"{"content":[], "x": 1.0, "x2":10000000000000000000000000000001}"#.into();
    let completed = Event::Completed {
        fencing_token: Some(1),
        source: ResultSource::Result,
        is_error: true,
        result: Digest::of(&exact),
        by: None,
    };
    head.apply(&completed, 1_700_000_000_002);
    let shown = text(&ResultView::of(&head, Some(&exact)).unwrap());
    assert!(shown.contains(&format!(r#""is_error":true,"result":{exact},"rpc_error":null"#)), "{shown}");
    assert!(text(&ResultView::of(&head, None).unwrap()).ends_with(r#""error":null,"deleted":true}"#));
    assert!(ResultView::of(&head, Some(&"no json".into())).is_err());
}
