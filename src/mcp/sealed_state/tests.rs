//! A sealed state opens for whom and what it was sealed, in its time, and nothing else does.

use serde_json::value::RawValue;

use super::*;
use crate::model::principal::Principal;

fn bound(subject: &str, digest: &[u8]) -> Bound {
    Bound::to(&principal(subject), "prompts/get", &[digest])
}

fn principal(subject: &str) -> Principal {
    Principal { subject: subject.into(), ..Principal::anonymous() }
}

#[test]
fn what_was_sealed_is_opened_for_the_same_caller_and_request_in_time() {
    let keys = Keys::random();
    let text = keys.seal(&bound("ann", b"x"), b"inner", 1_000);
    assert_eq!(keys.open(&bound("ann", b"x"), &text, 999).as_deref(), Ok(&b"inner"[..]));
    assert_eq!(keys.open(&bound("bob", b"x"), &text, 999), Err(BadState));
    assert_eq!(keys.open(&bound("ann", b"y"), &text, 999), Err(BadState));
    assert_eq!(keys.open(&Bound::to(&principal("ann"), "resources/read", &[b"x"]), &text, 999), Err(BadState));
    assert_eq!(keys.open(&bound("ann", b"x"), &text, 1_000), Err(BadState));
}

#[test]
fn a_changed_shortened_or_lengthened_state_fails() {
    let keys = Keys::random();
    let bound = bound("ann", b"x");
    let text = keys.seal(&bound, b"inner", 1_000);
    for at in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        assert_eq!(keys.open(&bound, std::str::from_utf8(&changed).unwrap(), 0), Err(BadState), "{at}");
        assert_eq!(keys.open(&bound, &text[..at], 0), Err(BadState));
    }
    assert_eq!(keys.open(&bound, &format!("{text}-TAMPERED"), 0), Err(BadState));
    assert_eq!(keys.open(&bound, &format!("{text}="), 0), Err(BadState));
    assert_eq!(Keys::random().open(&bound, &text, 0), Err(BadState));
}

#[test]
fn an_older_key_opens_and_the_newest_seals() {
    let keys = Keys::random();
    let bound = bound("ann", b"x");
    keys.replace(&[(1, [1; 32])]);
    let old = keys.seal(&bound, b"old", 1_000);
    keys.replace(&[(2, [2; 32]), (1, [1; 32])]);
    let new = keys.seal(&bound, b"new", 1_000);
    assert_eq!(keys.open(&bound, &old, 0).as_deref(), Ok(&b"old"[..]));
    keys.replace(&[(3, [3; 32]), (2, [2; 32])]);
    assert_eq!(keys.open(&bound, &old, 0), Err(BadState));
    assert_eq!(keys.open(&bound, &new, 0).as_deref(), Ok(&b"new"[..]));
}

#[test]
fn a_round_changes_no_digest_but_another_argument_does() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let first = raw(r#"{"name":"p","arguments":{"a":"1"},"_meta":{"x":1}}"#);
    let second = raw(r#"{"name":"p","arguments":{"a":"1"},"_meta":{},"inputResponses":{},"requestState":"s"}"#);
    let other = raw(r#"{"name":"p","arguments":{"a":"2"}}"#);
    let of = |raw: &RawValue| digest(&Params::split(Some(raw)));
    assert_eq!(of(&first), of(&second));
    assert_ne!(of(&first), of(&other));
}
