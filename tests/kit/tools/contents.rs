//! Results with what only some revisions have: media, and structured content that is no object. Fixed texts, no effects.

use super::Outcome;

/// The first revision with `structuredContent`, `outputSchema` and elicitation.
pub const STRUCTURED: &str = "2025-06-18";

const IMAGE: &str = r#"{"type":"image","data":"iVBORw0KGgo\u003d","mimeType":"image/png"}"#;
const AUDIO: &str = r#"{"type":"audio","data":"UklGRgAAAABXQVZF","mimeType":"audio/wav"}"#;
const BLOB: &str =
    r#"{"type":"resource","resource":{"uri":"kit://blob","mimeType":"application/octet-stream","blob":"AAEC/w=="}}"#;

/// All kinds of bytes that the revision has.
pub fn media(revision: &str) -> Outcome {
    let audio = if revision >= "2025-03-26" { format!(",{AUDIO}") } else { String::new() };
    Outcome::Result(format!(r#"{{"content":[{IMAGE}{audio},{BLOB}]}}"#))
}

/// An array as structured content, which 2026-07-28 allows, and its text beside it.
pub fn rows() -> Outcome {
    Outcome::Result(r#"{"content":[{"type":"text","text":"[1,2,3]"}],"structuredContent":[1,2,3]}"#.to_owned())
}
