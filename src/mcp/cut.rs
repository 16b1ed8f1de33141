//! Results that are longer than their callers are sent: the beginning, a notice that says how to read the rest, and the
//! rest part by part. Stores nothing and cuts nothing that is stored.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::value::RawValue;

use super::answer::{self, Audience, Reply};
use super::face::Face;
use super::reject::{RpcError, code};
use crate::engine::ticket::Ticket;
use crate::engine::waiters::Settled;
use crate::model::execution::{Head, State};
use crate::model::json::{members, quoted, text};
use crate::model::revision::Era;
use crate::store::{Payload, PayloadKind};

#[cfg(test)]
mod tests;

/// The smallest bound that can be set.
const BOUND_MIN: usize = 1024;
/// A part of a result, where the tool's answers are not bounded.
const PART_BYTES: usize = 50_000;
/// What the notice needs at most, and what is around the texts.
const NOTICE_BYTES: usize = 900;

impl Face {
    /// The answer about a settled execution, cut where its tool's answers are bounded.
    pub(super) fn settled(&self, settled: &Settled, attached: bool, audience: Audience) -> Reply {
        match self.cut(settled) {
            None => answer::settled(settled, attached, audience),
            Some(payload) => {
                let cut = Settled { payload: Some(payload), ..settled.clone() };
                answer::settled(&cut, attached, audience)
            }
        }
    }

    /// What the caller gets of a result that is longer than its tool's bound.
    fn cut(&self, settled: &Settled) -> Option<Payload> {
        let head = &settled.head;
        // Most results are below any bound: nobody looks for their tool.
        let result = settled.payload.as_ref().filter(|result| result.len() > BOUND_MIN)?;
        let (bytes_max, has_output_schema) = self.bound_of(head).filter(|_| head.state == State::Completed)?;
        (result.len() > bytes_max).then(|| beginning(result, head, (bytes_max, has_output_schema)).into())
    }

    /// A part of the stored result, as the exact JSON text that it is. `from` is what a notice or the part before said.
    pub(super) async fn part(&self, ticket: &Ticket, from: &str, era: Era) -> Result<Reply, RpcError> {
        let invalid = || {
            let words = "durable_result: `from` names no place in the result; begin with \"0.0\" and go on with what each part says";
            RpcError::new(code::INVALID_PARAMS, words)
        };
        let place = from.split_once('.').and_then(|(piece, at)| Some((piece.parse::<u32>().ok()?, at.parse().ok()?)));
        let (piece, at): (u32, usize) = place.ok_or_else(invalid)?;
        let id = ticket.id();
        let found = self.engine.store().payload_piece(id, PayloadKind::Result, piece).await;
        let Some(found) = found.map_err(|error| answer::refused(&error.into()))? else {
            if piece > 0 {
                return Err(invalid());
            }
            return Ok(answer::plain(&format!("Execution {id} has no stored result."), true, era));
        };
        let rest = found.text.get(at..).ok_or_else(invalid)?;
        let most = self.bound_of(&ticket.head).map_or(PART_BYTES, |(bytes_max, _)| bytes_max);
        let part = fitting(rest, most.saturating_sub(NOTICE_BYTES).max(64));
        let next = match part.len() < rest.len() {
            true => Some((piece, at + part.len())),
            false => (piece + 1 < found.pieces).then_some((piece + 1, 0)),
        };
        let said = match next {
            Some((piece, at)) => format!(
                "[durable-mcp: a part of the stored result of execution {id}, from {from}. The next one: durable_result with \
                 {{\"execution_id\":\"{id}\",\"from\":\"{piece}.{at}\"}}.]"
            ),
            None => format!("[durable-mcp: the last part of the stored result of execution {id}, from {from}.]"),
        };
        Ok(answer::texts(&[part, &said], era))
    }

    /// How much of a result callers of its tool are sent, and whether the tool has an output schema.
    fn bound_of(&self, head: &Head) -> Option<(usize, bool)> {
        let listing = self.engine.catalog().listing();
        let tool = listing.of_upstream(&head.ident.upstream, &head.ident.tool)?;
        Some((tool.service.answer_bytes_max?, tool.has_output_schema))
    }
}

/// The longest beginning of `text` that is no longer than this as a JSON string.
fn fitting(text: &str, bytes_max: usize) -> &str {
    let mut bytes = 0;
    for (at, char) in text.char_indices() {
        bytes += match char {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            char if char < ' ' => 6,
            char => char.len_utf8(),
        };
        if bytes > bytes_max {
            return &text[..at];
        }
    }
    text
}

/// The result with the beginning of its texts, and the notice. Clients hold a result of a tool with an `outputSchema`
/// against it unless it says `isError`; a cut one has nothing that would fit it.
fn beginning(result: &str, head: &Head, (bytes_max, has_output_schema): (usize, bool)) -> String {
    let members = members(result).unwrap_or_default();
    let last = |name: &str| members.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value);
    let is_error = last("isError").is_some_and(|value| value.get() == "true");
    let content = last("content").and_then(|content| serde_json::from_str::<Vec<&RawValue>>(content.get()).ok());
    let mut left = bytes_max.saturating_sub(NOTICE_BYTES);
    let (mut blocks, mut others) = (String::new(), 0);
    let mut push = |said: &str, left: &mut usize| {
        let kept = fitting(said, *left);
        *left = left.saturating_sub(quoted(kept).len() + 24);
        if !kept.is_empty() {
            let _ = write!(blocks, "{{\"type\":\"text\",\"text\":{}}},", quoted(kept));
        }
    };
    for block in content.unwrap_or_default() {
        match said(block, left) {
            Some(said) => push(&said, &mut left),
            None => others += 1,
        }
    }
    if blocks.is_empty()
        && let Some(structured) = last("structuredContent")
    {
        let kept = fitting(structured.get(), left);
        let _ = write!(blocks, "{{\"type\":\"text\",\"text\":{}}},", quoted(kept));
    }
    let id = head.id();
    let nothing_failed = if has_output_schema && !is_error { "Nothing failed. " } else { "" };
    let left_out = match (others, last("structuredContent").is_some()) {
        (0, false) => "",
        (0, true) => " Its structured content is left out.",
        (_, false) => " What of it is no text is left out.",
        (_, true) => " Its structured content and what of it is no text are left out.",
    };
    let notice = format!(
        "[durable-mcp: {nothing_failed}This is the beginning of a result of {bytes} bytes, more than the {bytes_max} that are \
         sent of it.{left_out} What is stored of it can be read: call durable_result with \
         {{\"execution_id\":\"{id}\",\"from\":\"0.0\"}} and go on with what each part says. A person reads it with \
         `durable-mcp executions result {id}`, or at /api/v1/executions/{id}/payloads/result?piece=0.]",
        bytes = result.len(),
    );
    format!(
        "{{\"content\":[{blocks}{{\"type\":\"text\",\"text\":{}}}],\"isError\":{}}}",
        quoted(&notice),
        is_error || has_output_schema,
    )
}

/// The text of a block that is one, or of a long one a beginning of at least so many bytes.
fn said(block: &RawValue, bytes_min: usize) -> Option<Cow<'_, str>> {
    let members = members(block.get())?;
    let member = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let kind = member("type").and_then(text)?;
    let said = member("text").filter(|_| kind == "text")?;
    begun(said.get(), bytes_min).map(Cow::Owned).or_else(|| text(said))
}

/// The longest an escape is: two halves of a character outside the basic plane.
const ESCAPE_BYTES: usize = 12;
/// The most bytes that a string spends on one byte of its text.
const SPENT_BYTES: usize = 6;

/// The beginning of a raw string that is much longer, unescaped, at least so many bytes of it: nobody unescapes 30 MB for
/// the first few.
fn begun(quoted: &str, bytes_min: usize) -> Option<String> {
    let end = bytes_min * SPENT_BYTES + ESCAPE_BYTES;
    if quoted.len() <= 2 * end || !quoted.starts_with('"') {
        return None;
    }
    // A cut in the middle of an escape is no string.
    (0..ESCAPE_BYTES).find_map(|less| serde_json::from_str(&format!("{}\"", quoted.get(..end - less)?)).ok())
}
