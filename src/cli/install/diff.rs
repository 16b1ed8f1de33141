//! What changes in a file, as a unified diff with the secrets covered. Compares lines; knows of JSON only what may be secret.

use super::document::{Document, Kind, Node};
use super::edit::Edits;
use super::secret::{looks_secret, sounds_secret};

/// Lines shown around a change.
const CONTEXT: usize = 2;
/// Lines that are all compared with each other; beyond it changes are taken to be small.
const PAIRS_MAX: usize = 1_000_000;
/// Lines that a small change has at most.
const AHEAD_MAX: usize = 400;
/// Variables and words that are none, whatever they are called.
const PLAIN: [&str; 2] = ["PATH", "DURABLE_MCP_DATA_DIR"];

/// The difference between two states of a file.
pub fn unified(path: &str, before: Option<&Document>, after: Option<&Document>) -> String {
    let text = |document: Option<&Document>| document.map_or(String::new(), covered);
    let name = |document: Option<&Document>| if document.is_some() { path } else { "/dev/null" };
    let (old, new) = (text(before), text(after));
    let mut out = format!("--- {}\n+++ {}\n", name(before), name(after));
    out.push_str(&hunks(&lines(&old), &lines(&new)));
    out
}

fn lines(text: &str) -> Vec<&str> {
    // Line ends are compared as they are and shown as nothing.
    text.split_inclusive('\n').collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Same,
    Gone,
    New,
}

fn hunks(old: &[&str], new: &[&str]) -> String {
    let steps = steps(old, new);
    let mut out = String::new();
    let mut at = 0;
    let (mut old_at, mut new_at) = (0, 0);
    while at < steps.len() {
        if steps[at] == Step::Same {
            (at, old_at, new_at) = (at + 1, old_at + 1, new_at + 1);
            continue;
        }
        let start = at.saturating_sub(CONTEXT).max(at - at.min(CONTEXT));
        let mut end = at;
        let mut quiet = 0;
        while end < steps.len() && quiet <= CONTEXT * 2 {
            quiet = if steps[end] == Step::Same { quiet + 1 } else { 0 };
            end += 1;
        }
        let end = end - quiet.saturating_sub(CONTEXT).min(quiet);
        let back = at - start;
        let (mut o, mut n) = (old_at - back, new_at - back);
        let (first_old, first_new) = (o, n);
        let mut body = String::new();
        for step in &steps[start..end] {
            let (mark, line) = match step {
                Step::Same => (' ', old[o]),
                Step::Gone => ('-', old[o]),
                Step::New => ('+', new[n]),
            };
            o += usize::from(*step != Step::New);
            n += usize::from(*step != Step::Gone);
            body.push(mark);
            body.extend(line.trim_end_matches(['\r', '\n']).chars().map(shown));
            body.push('\n');
        }
        let range = |first: usize, count: usize| {
            if count == 0 { format!("{first},0") } else { format!("{},{count}", first + 1) }
        };
        out.push_str(&format!(
            "@@ -{} +{} @@\n{body}",
            range(first_old, o - first_old),
            range(first_new, n - first_new)
        ));
        (at, old_at, new_at) = (end, o, n);
    }
    out
}

/// A file may hold control sequences; a terminal must not obey them.
fn shown(c: char) -> char {
    if c.is_control() && c != '\t' { '\u{fffd}' } else { c }
}

fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let head = old.iter().zip(new).take_while(|(one, two)| one == two).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(one, two)| one == two).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut steps = vec![Step::Same; head];
    match old.len().saturating_mul(new.len()) > PAIRS_MAX {
        true => steps.extend(far_apart(old, new)),
        false => steps.extend(between(old, new)),
    }
    steps.extend(vec![Step::Same; tail]);
    steps
}

/// The longest common run of lines, as a table of the lengths that are left.
fn between(old: &[&str], new: &[&str]) -> Vec<Step> {
    let width = new.len() + 1;
    let mut longest = vec![0u32; (old.len() + 1) * width];
    for o in (0..old.len()).rev() {
        for n in (0..new.len()).rev() {
            longest[o * width + n] = match old[o] == new[n] {
                true => longest[(o + 1) * width + n + 1] + 1,
                false => longest[(o + 1) * width + n].max(longest[o * width + n + 1]),
            };
        }
    }
    let (mut o, mut n, mut steps) = (0, 0, Vec::new());
    while o < old.len() || n < new.len() {
        let step = match (o < old.len(), n < new.len()) {
            (true, true) if old[o] == new[n] => Step::Same,
            (true, true) if longest[(o + 1) * width + n] >= longest[o * width + n + 1] => Step::Gone,
            (true, false) => Step::Gone,
            _ => Step::New,
        };
        o += usize::from(step != Step::New);
        n += usize::from(step != Step::Gone);
        steps.push(step);
    }
    steps
}

/// Small changes with many lines between them: after each, the nearest place where the two go on alike.
fn far_apart(old: &[&str], new: &[&str]) -> Vec<Step> {
    let (mut o, mut n, mut steps) = (0, 0, Vec::new());
    let alike = |o: usize, n: usize| {
        o < old.len() && n < new.len() && old[o..].iter().zip(&new[n..]).take(2).all(|(one, two)| one == two)
    };
    while o < old.len() || n < new.len() {
        if alike(o, n) {
            (o, n) = (o + 1, n + 1);
            steps.push(Step::Same);
            continue;
        }
        let near = (1..=AHEAD_MAX)
            .find_map(|d| (0..=d).map(|gone| (gone, d - gone)).find(|(gone, new)| alike(o + gone, n + new)));
        let (gone, added) = near.unwrap_or((old.len() - o, new.len() - n));
        steps.extend(vec![Step::Gone; gone]);
        steps.extend(vec![Step::New; added]);
        (o, n) = (o + gone, n + added);
    }
    steps
}

/// The text with every value that may be secret covered.
fn covered(document: &Document) -> String {
    let mut edits = Edits::default();
    if let Some(root) = &document.root {
        cover(&mut edits, root, "");
    }
    edits.apply(&document.text)
}

fn cover(edits: &mut Edits, node: &Node, name: &str) {
    let mask = |edits: &mut Edits, node: &Node| edits.replace(node.span.clone(), "\"***\"");
    match &node.kind {
        Kind::Object(members) => {
            let environment = matches!(name, "env" | "headers");
            for member in members {
                let value = &member.value;
                let plain = PLAIN.contains(&member.name.as_str()) || value.text().is_some_and(is_placeholder);
                let scalar = !value.is_object() && !value.is_array();
                let secret = environment || sounds_secret(&member.name) || value.text().is_some_and(looks_secret);
                match scalar && !plain && secret {
                    true => mask(edits, value),
                    false => cover(edits, value, &member.name),
                }
            }
        }
        Kind::Array(items) => {
            let mut after_secret_flag = false;
            for item in items {
                match item.text() {
                    Some(text) => {
                        // `--token=…`, `Authorization: …`
                        let pair = text.split_once(['=', ':']);
                        let tells = looks_secret(text)
                            || pair.is_some_and(|(name, value)| sounds_secret(name) || looks_secret(value.trim()));
                        let is_flag = text.starts_with('-') && !text.contains('=');
                        if (after_secret_flag && !is_flag && !is_placeholder(text)) || (tells && !names_variable(text))
                        {
                            mask(edits, item);
                        }
                        after_secret_flag = is_flag && sounds_secret(text);
                    }
                    None => cover(edits, item, name),
                }
            }
        }
        _ => {}
    }
}

/// What `--header-env` is given: the name of a header and of a variable, no value.
fn names_variable(text: &str) -> bool {
    text.split_once('=').is_some_and(|(_, variable)| variable.starts_with("MCP_HEADER_"))
}

fn is_placeholder(text: &str) -> bool {
    let inner = text.trim_start_matches("Bearer ").strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.contains(['{', '}']) && !inner.contains(":-"))
}
