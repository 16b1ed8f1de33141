//! A message in pieces is the message in one piece.

use serde_json::value::RawValue;

use super::*;
use crate::mcp::answer::Reply;
use crate::model::payload::{LONG_BYTES, Payload};

#[test]
fn a_long_message_says_the_same_in_pieces_and_shares_what_is_stored() {
    let raw: &RawValue = serde_json::from_str("7").unwrap();
    let id = Id::parse(raw).unwrap();
    let stored = Payload::from(format!("{{\"a\":\"{}\"}}", "é".repeat(LONG_BYTES)));
    let bytes = stored.bytes();
    let end = bytes.len() - 1;
    let pieces = vec![bytes.slice(..end), Bytes::from_static(b",\"b\":1.0"), bytes.slice(end..)];
    for (result, is_long) in [(Written::Pieces(pieces), true), ("{\"a\":1.0}".to_owned().into(), false)] {
        let mut pushed = String::new();
        result.push(&mut pushed);
        let reply = Reply::Result(result.clone());
        assert_eq!(pushed, result.into_whole());
        let mut whole = String::new();
        reply.write(&mut whole, &id);
        assert_eq!(whole, format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{pushed}}}"));
        let message = reply.message(&id);
        assert_eq!([message.head.as_bytes(), &message.rest.concat()].concat(), whole.as_bytes());
        let is_shared = message.rest.iter().any(|piece| piece.as_ptr() == stored.as_ptr());
        assert_eq!((is_shared, message.rest.is_empty()), (is_long, !is_long));
    }
}
