//! A state opens for whom and what it was sealed for, in time, and byte for byte.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;
use crate::model::principal::Principal;

const NOW_MS: i64 = 1_800_000_000_000;

fn key(generation: i64) -> SealingKey {
    SealingKey { generation, key: [generation as u8; 32], created_at_ms: NOW_MS }
}

fn state() -> RequestState {
    RequestState {
        execution: ExecutionId::new(NOW_MS, &[3; 10]),
        round: 2,
        expires_at_ms: NOW_MS + 1_000,
        numbers: vec![2, 3],
    }
}

fn bound(subject: &str, name: &str, hash: &str) -> Bound {
    Bound::to(
        &Principal { subject: subject.into(), ..Principal::anonymous() },
        "tools/call",
        &[name.as_bytes(), hash.as_bytes()],
    )
}

#[test]
fn a_state_comes_back_as_it_was_and_says_nothing_to_readers() {
    let sealer = Sealer::new(&[key(2), key(1)]);
    let text = sealer.seal(&state(), &bound("ann", "deploy", "h")).unwrap();
    assert_eq!(sealer.open(&text, &bound("ann", "deploy", "h"), NOW_MS), Ok(state()));
    let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
    let id = state().execution;
    assert!(!bytes.windows(16).any(|window| window == id.as_uuid().as_bytes()));
    assert_ne!(sealer.seal(&state(), &bound("ann", "deploy", "h")).unwrap(), text);
}

#[test]
fn a_state_is_good_for_its_principal_and_request_only_and_for_its_time() {
    let sealer = Sealer::new(&[key(1)]);
    let text = sealer.seal(&state(), &bound("ann", "deploy", "h")).unwrap();
    for (subject, name, hash) in [("eve", "deploy", "h"), ("ann", "destroy", "h"), ("ann", "deploy", "i")] {
        assert_eq!(sealer.open(&text, &bound(subject, name, hash), NOW_MS), Err(BadState::Invalid));
    }
    let acme = Principal { namespace: "acme".into(), subject: "ann".into(), ..Principal::anonymous() };
    let acme = Bound::to(&acme, "tools/call", &[b"deploy", b"h"]);
    assert_eq!(sealer.open(&text, &acme, NOW_MS), Err(BadState::Invalid));
    let late = sealer.open(&text, &bound("ann", "deploy", "h"), NOW_MS + 1_000);
    assert_eq!(late, Err(BadState::Expired));
}

#[test]
fn a_changed_character_a_suffix_and_a_cut_are_refused() {
    let sealer = Sealer::new(&[key(1)]);
    let bound = bound("ann", "deploy", "h");
    let text = sealer.seal(&state(), &bound).unwrap();
    for at in 0..text.len() {
        let mut changed: Vec<u8> = text.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(sealer.open(&changed, &bound, NOW_MS).is_err(), "{at}");
        assert!(sealer.open(&text[..at], &bound, NOW_MS).is_err(), "cut at {at}");
    }
    for suffix in ["A", "AA", "AAAA", "=", "==", " ", "\n", "!"] {
        assert!(sealer.open(&format!("{text}{suffix}"), &bound, NOW_MS).is_err(), "{suffix:?}");
    }
    assert_eq!(sealer.open(&"A".repeat(1 << 20), &bound, NOW_MS), Err(BadState::Invalid));
}

#[test]
fn the_key_before_opens_and_an_older_one_is_unknown() {
    let bound = bound("ann", "deploy", "h");
    let old = Sealer::new(&[key(1)]).seal(&state(), &bound).unwrap();
    assert_eq!(Sealer::new(&[key(2), key(1)]).open(&old, &bound, NOW_MS), Ok(state()));
    assert_eq!(Sealer::new(&[key(3), key(2)]).open(&old, &bound, NOW_MS), Err(BadState::UnknownKey));
    // The number alone opens nothing.
    let other = SealingKey { key: [9; 32], ..key(1) };
    assert_eq!(Sealer::new(&[other]).open(&old, &bound, NOW_MS), Err(BadState::Invalid));
    assert_eq!(Sealer::new(&[]).seal(&state(), &bound), None);
}
