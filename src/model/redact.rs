//! What must not be kept: rules that strike values out of JSON and text, by pointer and by pattern. Pure, and linear in
//! what it reads. Everything that no rule names keeps its bytes. Knows no execution, and not what becomes of the rest.

mod pointer;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::BTreeSet;
use std::ops::Range;

use regex::{NoExpand, Regex, RegexBuilder};

use super::json::quoted;
pub use pointer::Pointer;
use walk::{Found, scalars, unescaped, walk};

/// What stands where something was struck.
pub const MARK: &str = "[redacted]";
/// A struck value this long or longer is struck wherever else it appears in the same call: a tool repeats what it was given.
const TELLING_BYTES: usize = 6;
/// The most values that are looked for in this way.
const VALUES_MAX: usize = 1_024;
/// The most memory that a pattern may need once it is compiled.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The same for the values of one call.
const VALUES_BYTES_MAX: usize = 64 << 20;

/// Why a rule can not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not a JSON pointer.
    #[error("is no JSON pointer: {0}")]
    Pointer(&'static str),
    /// Not a regular expression, or one that is too large.
    #[error("is no usable regular expression: {0}")]
    Pattern(String),
}

/// Which pointers apply to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The arguments of a call.
    Arguments,
    /// The result of a tool.
    Result,
    /// Anything else: patterns and known values only.
    Other,
}

/// What is struck.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    patterns: Vec<Regex>,
    arguments: Vec<Pointer>,
    results: Vec<Pointer>,
}

/// Values that were struck in a call and are struck wherever they appear again.
#[derive(Clone, Debug, Default)]
pub struct Known(Option<Regex>);

/// A JSON text after striking.
#[derive(Clone, Debug)]
pub struct Struck {
    /// The text that may be kept.
    pub text: String,
    /// What was struck by a pointer.
    pub values: BTreeSet<String>,
}

impl Rules {
    /// Reads rules. Errors: the first one that can not be used, as it was written, and why.
    pub fn parse<'a>(
        patterns: impl IntoIterator<Item = &'a str>,
        arguments: impl IntoIterator<Item = &'a str>,
        results: impl IntoIterator<Item = &'a str>,
    ) -> Result<Rules, (String, Fault)> {
        let pointers = |texts: &mut dyn Iterator<Item = &'a str>| {
            texts
                .map(|text| Pointer::parse(text).map_err(|fault| (text.to_owned(), fault)))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Rules {
            patterns: patterns
                .into_iter()
                .map(|text| pattern(text).map_err(|fault| (text.to_owned(), fault)))
                .collect::<Result<_, _>>()?,
            arguments: pointers(&mut arguments.into_iter())?,
            results: pointers(&mut results.into_iter())?,
        })
    }

    /// True when nothing is ever struck.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.arguments.is_empty() && self.results.is_empty()
    }

    /// True when values are struck that are known by their place only.
    pub fn has_pointers(&self) -> bool {
        !self.arguments.is_empty() || !self.results.is_empty()
    }

    /// `json` without what a rule names; `None` when it may be kept as it is. A text that is no JSON is struck whole when
    /// anything in it would be.
    pub fn strike(&self, json: &str, part: Part, known: &Known) -> Option<Struck> {
        if self.is_empty() && known.0.is_none() {
            return None;
        }
        let pointers = match part {
            Part::Arguments => &self.arguments[..],
            Part::Result => &self.results[..],
            Part::Other => &[],
        };
        let mut values = BTreeSet::new();
        if !pointers.is_empty() {
            let mut note = |found: Found, at: Range<usize>| {
                if found == Found::Named {
                    scalars(&json[at], &mut |value| {
                        if value.len() >= TELLING_BYTES && values.len() < VALUES_MAX {
                            values.insert(value);
                        }
                    });
                }
            };
            if walk(json, pointers, &mut note).is_err() {
                return Some(Struck { text: quoted(MARK), values: BTreeSet::new() });
            }
        }
        let here = Known::of(&values);
        let mut edits = Edits { json, out: String::new(), copied: 0 };
        let mut edit = |found: Found, at: Range<usize>| match found {
            Found::Named => edits.replace(at, &quoted(MARK)),
            Found::Text => {
                let text = unescaped(&json[at.clone()]);
                if let Some(kept) = self.strike_known(&text, [known, &here]) {
                    edits.replace(at, &quoted(&kept));
                }
            }
            Found::Scalar => {
                if self.strike_known(&json[at.clone()], [known, &here]).is_some() {
                    edits.replace(at, &quoted(MARK));
                }
            }
        };
        match walk(json, pointers, &mut edit) {
            Ok(()) => edits.done().map(|text| Struck { text, values }),
            Err(()) => {
                let struck = self.strike_known(json, [known, &here]).is_some();
                struck.then(|| Struck { text: quoted(MARK), values })
            }
        }
    }

    /// `text` without what a pattern finds, or what is known of the call; `None` when it may be kept as it is.
    pub fn strike_text(&self, text: &str, known: &Known) -> Option<String> {
        self.strike_known(text, [known, &Known(None)])
    }

    fn strike_known(&self, text: &str, known: [&Known; 2]) -> Option<String> {
        let known = known.into_iter().filter_map(|known| known.0.as_ref());
        let mut kept: Option<String> = None;
        for pattern in known.chain(&self.patterns) {
            let text = kept.as_deref().unwrap_or(text);
            if pattern.is_match(text) {
                kept = Some(pattern.replace_all(text, NoExpand(MARK)).into_owned());
            }
        }
        kept
    }
}

impl Known {
    /// What was struck in a call: looked for as it is, and as JSON inside a text has it.
    pub fn of(values: &BTreeSet<String>) -> Known {
        if values.is_empty() {
            return Known(None);
        }
        let mut forms: BTreeSet<String> = values.clone();
        for value in values {
            let escaped = quoted(value);
            forms.insert(escaped[1..escaped.len() - 1].to_owned());
        }
        // Of two values that begin alike the longer one has to be found first.
        let mut forms: Vec<String> = forms.iter().map(|form| regex::escape(form)).collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        let pattern = RegexBuilder::new(&forms.join("|")).size_limit(VALUES_BYTES_MAX).build();
        // Too much to look for one by one: then nothing of the call is kept.
        let everything = || Regex::new("(?s).+").expect("a pattern of our own is valid");
        Known(Some(pattern.unwrap_or_else(|_| everything())))
    }

    /// True when there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

fn pattern(text: &str) -> Result<Regex, Fault> {
    let pattern = RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
    let pattern = pattern.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => Fault::Pattern("it is too large once compiled".into()),
        // The last line says what is wrong; those before draw a picture of where.
        error => {
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default().trim();
            Fault::Pattern(reason.trim_start_matches("error: ").to_owned())
        }
    })?;
    match pattern.is_match("") {
        true => Err(Fault::Pattern("it matches the empty text, so it would strike everything".into())),
        false => Ok(pattern),
    }
}

struct Edits<'a> {
    json: &'a str,
    out: String,
    copied: usize,
}

impl Edits<'_> {
    fn replace(&mut self, at: Range<usize>, new: &str) {
        self.out.push_str(&self.json[self.copied..at.start]);
        self.out.push_str(new);
        self.copied = at.end;
    }

    fn done(mut self) -> Option<String> {
        if self.copied == 0 {
            return None;
        }
        self.out.push_str(&self.json[self.copied..]);
        Some(self.out)
    }
}
