//! Cases about payloads: exact bytes, at every length that matters.

use super::Ground;
use super::scene::{Scene, Verdict, same};
use crate::store::{Payload, PayloadKind};

pub(super) async fn payloads_keep_every_byte(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "bytes").await?;
    let texts = [
        "{}",
        r#"{ "a" : 1.0, "b": 123456789012345678901234567890, "c": "\u00e9\ud83d\ude00\u0000", "d": null }"#,
        "{\"é\":\"\u{1f600}\u{200b}\u{feff}\"}",
        "{\n\t\"x\" : [ ] }\r\n",
        "",
    ];
    for text in texts {
        let mut submit = scene.call("{}");
        submit.arguments = text.into();
        submit.submission.waiter = Some(scene.process);
        let id = scene.new_execution(submit).await?.id();
        same!(scene.store.payload(id, PayloadKind::Arguments).await?.as_deref(), Some(text));
    }
    Ok(())
}

pub(super) async fn a_large_payload_comes_back_in_one_piece(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "large").await?;
    const MIB: usize = 1 << 20;
    for bytes in [MIB - 1, MIB, MIB + 1, 5 * MIB + 3] {
        // Characters of three bytes: pieces are never cut inside one.
        let text = format!("{{\"t\":\"{}\"}}", "€".repeat(bytes / 3));
        let payload: Payload = text.clone().into();
        let mut submit = scene.call(&format!("{{\"n\":{bytes}}}"));
        submit.arguments = payload.clone();
        submit.submission.lease = Some(scene.lease_request());
        let id = scene.new_execution(submit).await?.id();
        scene.complete(id, 1, &text).await?;
        for kind in [PayloadKind::Arguments, PayloadKind::Result] {
            let stored = scene.store.payload(id, kind).await?;
            same!(stored.as_ref().map(|stored| stored.len()), Some(text.len()));
            same!(stored.as_ref() == Some(&payload), true);
            let mut pieces = String::new();
            let mut number = 0;
            while let Some(piece) = scene.store.payload_piece(id, kind, number).await? {
                pieces.push_str(&piece.text);
                number += 1;
                same!(piece.text.len() <= MIB, true);
                same!(piece.pieces as usize, text.len().div_ceil(MIB));
            }
            same!(pieces == text, true);
        }
    }
    Ok(())
}
