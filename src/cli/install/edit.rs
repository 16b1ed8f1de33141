//! Changes to a text by spans, in the hand of whoever wrote it: the same line ends, the same indentation, the same space
//! around colons. Knows objects and arrays; knows nothing of servers.

use std::ops::Range;

use super::document::{Member, Node};
use crate::model::json::quoted;

/// Changes that are made at once; their spans are those of the unchanged text and do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Puts a text in the place of a span.
    pub fn replace(&mut self, span: Range<usize>, text: impl Into<String>) {
        self.0.push((span, text.into()));
    }

    /// Puts a text in.
    pub fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// Takes in the changes of another part of the text.
    pub fn merge(&mut self, other: Edits) {
        self.0.extend(other.0);
    }

    /// The text of the one change there is.
    pub fn only(&self) -> Option<&str> {
        match &self.0[..] {
            [(_, text)] => Some(text),
            _ => None,
        }
    }

    /// True when nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with the changes made.
    pub fn apply(mut self, text: &str) -> String {
        // Stable: what is inserted at one place stays in its order.
        self.0.sort_by_key(|(span, _)| span.start);
        let mut out = String::with_capacity(text.len() + 256);
        let mut copied = 0;
        for (span, new) in &self.0 {
            out.push_str(&text[copied..span.start]);
            out.push_str(new);
            copied = span.end;
        }
        out.push_str(&text[copied..]);
        out
    }
}

/// The white space right before `at`, from the last line break on.
fn lead(text: &str, at: usize) -> &str {
    let before = &text[..at];
    let space = &before[before.trim_end_matches([' ', '\t', '\r', '\n']).len()..];
    let Some(newline) = space.rfind('\n') else { return space };
    let start = if space[..newline].ends_with('\r') { newline - 1 } else { newline };
    &space[start..]
}

/// What stands between the members of an object: a line break and indentation, a space, or nothing.
fn member_lead<'t>(text: &'t str, object: &Node) -> &'t str {
    match object.members() {
        [] => " ",
        // A lone member may have a space before it that belongs to the brace.
        [one] => {
            let lead = lead(text, one.key.start);
            match lead.contains('\n') {
                true => lead,
                false if colon(text, object) == ":" => "",
                false => " ",
            }
        }
        [_, second, ..] => lead(text, second.key.start),
    }
}

/// What stands between a name and its value.
fn colon<'t>(text: &'t str, object: &Node) -> &'t str {
    let between = |member: &Member| &text[member.key.end..member.value.span.start];
    object.members().first().map(between).filter(|colon| colon.trim() == ":").unwrap_or(": ")
}

/// Members to add: names, and values as JSON texts.
pub type Pairs = Vec<(String, String)>;

/// The hand that an object is written in.
#[derive(Clone, Copy, Debug)]
pub struct Hand<'t> {
    /// What stands between members.
    pub lead: &'t str,
    /// What stands between a name and its value.
    pub colon: &'t str,
    /// One step of indentation.
    pub step: &'t str,
}

impl<'t> Hand<'t> {
    /// The hand of an object of a text.
    pub fn of(text: &'t str, object: &Node) -> Hand<'t> {
        Hand { lead: member_lead(text, object), colon: colon(text, object), step: step(text) }
    }

    /// The lead one step deeper; on one line it stays.
    pub fn deeper(&self) -> String {
        if self.lead.contains('\n') { format!("{}{}", self.lead, self.step) } else { self.lead.to_owned() }
    }

    /// What stands before the first member of a new object that is a member of this one, between two, and behind the last.
    fn layout(&self) -> (String, String, &'t str) {
        match self.lead.contains('\n') {
            true => (self.deeper(), format!(",{}", self.deeper()), self.lead),
            false => (String::new(), if self.lead.is_empty() { ",".to_owned() } else { ", ".to_owned() }, ""),
        }
    }
}

/// One step of indentation: the first that the text has.
fn step(text: &str) -> &str {
    let indent = |line: &'_ str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let first = text.lines().find(|line| indent(line) > 0 && line[indent(line)..].starts_with('"'));
    first.map_or("  ", |line| &line[..indent(line)])
}

/// Adds members at the end of an object; `outer` is the hand of the object that it is a member of.
pub fn append_members(edits: &mut Edits, text: &str, (object, outer): (&Node, &Hand<'_>), pairs: &Pairs) {
    if pairs.is_empty() {
        return;
    }
    match object.members().last() {
        Some(last) => {
            let Hand { lead, colon, .. } = Hand::of(text, object);
            let added: String =
                pairs.iter().map(|(name, value)| format!(",{lead}{}{colon}{value}", quoted(name))).collect();
            edits.insert(last.value.span.end, added);
        }
        None => {
            let inside = &text[object.span.start + 1..object.span.end - 1];
            let (lead, between, end) = outer.layout();
            let colon = outer.colon;
            let added: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{}{colon}{value}", quoted(name))).collect();
            let end = if inside.contains('\n') { "" } else { end };
            edits.insert(object.span.start + 1, format!("{lead}{}{end}", added.join(&between)));
        }
    }
}

/// A new object; `outer` is the hand of the object that it will be a member of.
pub fn object(pairs: &Pairs, outer: &Hand<'_>) -> String {
    let (lead, between, end) = outer.layout();
    let colon = outer.colon;
    let members: Vec<String> = pairs.iter().map(|(name, value)| format!("{}{colon}{value}", quoted(name))).collect();
    format!("{{{lead}{}{end}}}", members.join(&between))
}

/// Adds a member behind another one.
pub fn insert_after(edits: &mut Edits, text: &str, (object, after): (&Node, &Member), (name, value): (&str, &str)) {
    let Hand { lead, colon, .. } = Hand::of(text, object);
    edits.insert(after.value.span.end, format!(",{lead}{}{colon}{value}", quoted(name)));
}

/// Takes a member out, with the comma that kept it apart.
pub fn remove_member(edits: &mut Edits, text: &str, object: &Node, name: &str) {
    let members = object.members();
    let Some(at) = members.iter().position(|member| member.name == name) else { return };
    let member = &members[at];
    let comma_after = comma(text, member.value.span.end, object.span.end);
    let span = match (at.checked_sub(1), members.get(at + 1), comma_after) {
        // The comma before it goes, and what stands between; a trailing comma stays with the one before.
        (Some(before), _, _) => {
            let comma = comma(text, members[before].value.span.end, object.span.end);
            comma.unwrap_or(members[before].value.span.end)..member.value.span.end
        }
        (None, Some(next), _) => member.key.start..next.key.start,
        (None, None, Some(comma)) => start_of_line(text, member.key.start)..comma + 1,
        (None, None, None) => start_of_line(text, member.key.start)..member.value.span.end,
    };
    edits.replace(span, "");
}

fn start_of_line(text: &str, at: usize) -> usize {
    at - lead(text, at).len()
}

/// Where the comma behind a value stands, comments left out.
fn comma(text: &str, mut at: usize, end: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    while at < end {
        match bytes[at] {
            b',' => return Some(at),
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += text[at..end].find('\n').unwrap_or(end - at);
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += text[at..end].find("*/").map_or(end - at, |length| length + 2);
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => return None,
        }
    }
    None
}

/// Puts items before those of an array.
pub fn prepend_items(edits: &mut Edits, text: &str, array: &Node, items: &[String]) {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    match array.items() {
        [] => edits.insert(array.span.start + 1, items.join(", ")),
        [first, rest @ ..] => {
            let between = match rest {
                [second, ..] => lead(text, second.span.start),
                [] if lead(text, first.span.start).contains('\n') => lead(text, first.span.start),
                [] => " ",
            };
            let added: String = items.iter().map(|item| format!("{item},{between}")).collect();
            edits.insert(first.span.start, added);
        }
    }
}

/// Takes the first `count` items out of an array.
pub fn remove_first(edits: &mut Edits, array: &Node, count: usize) {
    let items = array.items();
    let Some(first) = items.first().filter(|_| count > 0) else { return };
    let end = match items.get(count) {
        Some(next) => next.span.start,
        None => items[items.len() - 1].span.end,
    };
    edits.replace(first.span.start..end, "");
}

/// An array of strings on one line.
pub fn array(items: &[String], hand: &Hand<'_>) -> String {
    let comma = if hand.colon == ":" { "," } else { ", " };
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    format!("[{}]", items.join(comma))
}
