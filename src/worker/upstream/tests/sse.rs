//! Server-sent events in any chunks.

use std::time::Duration;

use proptest::prelude::*;

use super::super::http::sse::{Event, Parser, TooLong};

/// Cuts a text at the given places.
pub(super) fn cut(text: &[u8], at: &[usize]) -> Vec<Vec<u8>> {
    let mut at: Vec<_> = at.iter().map(|place| place % (text.len() + 1)).collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| text[pair[0]..pair[1]].to_vec()).collect()
}

type Seen = (Vec<Event>, Option<String>, Option<Duration>);

fn parse(chunks: &[Vec<u8>]) -> Seen {
    let mut parser = Parser::new(10_000);
    let mut events = Vec::new();
    for chunk in chunks {
        parser.feed(chunk, &mut events).unwrap();
    }
    (events, parser.last_event_id().map(ToOwned::to_owned), parser.retry())
}

fn event(kind: &str, data: &str) -> Event {
    Event { kind: kind.to_owned(), data: data.as_bytes().to_vec() }
}

#[test]
fn an_event_stream_is_read_as_the_standard_says() {
    let text = "\u{feff}: comment\n\nid: 1\ndata\n\nevent: message\r\ndata: a\r\ndata:  b\r\n\r\nretry: 250\rretry: x\rid: 2\r\r\
                data:c\n\nid: 3\ndata: never ended";
    let (events, id, retry) = parse(&[text.as_bytes().to_vec()]);
    assert_eq!(events, [event("", ""), event("message", "a\n b"), event("", "c")]);
    assert_eq!(id.as_deref(), Some("2"), "the id of an event that never ended does not count");
    assert_eq!(retry, Some(Duration::from_millis(250)));
}

#[test]
fn an_event_over_the_bound_is_an_error_and_earlier_events_count() {
    let mut parser = Parser::new(10);
    let mut events = Vec::new();
    assert_eq!(parser.feed(b"data: a\n\ndata: 12345\ndata: 6789012\n\n", &mut events), Err(TooLong));
    assert_eq!(events, [event("", "a")]);
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "data", "data: x", "data:y", "id: 7", "id:", "event: e", "retry: 5", ": c", "x: y", "\n", "\r", "\r\n", "é",
            ]),
            0..40,
        ),
        cuts in prop::collection::vec(0_usize..300, 0..12),
    ) {
        let text = parts.concat().into_bytes();
        prop_assert_eq!(parse(std::slice::from_ref(&text)), parse(&cut(&text, &cuts)));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut events = Vec::new();
        let _ = Parser::new(64).feed(&bytes, &mut events);
    }
}
