//! One reconcile rule, pure: the question it makes of a lost call, and what the answer of the read tool says about it.
//! Numbers are compared by exact decimal value, never through a float.

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::model::arguments::canonical;
use crate::model::id::ExecutionId;
use crate::model::json::{members, quoted};
use crate::worker::rules::Reconcile;

/// Why a rule cannot be used, or not for this call.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RuleError {
    /// `match` is not `POINTER == value`.
    #[error("match {0:?} is not of the form POINTER == value, such as /items/0/title == arguments.title")]
    Match(String),
    /// A placeholder nobody knows.
    #[error("{{{{{0}}}}} is unknown; known are {{{{arguments.NAME}}}} and {{{{effect_key}}}}")]
    Placeholder(String),
    /// The configured arguments are no JSON object.
    #[error("the arguments of the read tool are not a JSON object")]
    Arguments,
    /// The call has no such argument.
    #[error("the call has no argument {0}")]
    Missing(String),
}

impl RuleError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            RuleError::Match(_) => "reconcile_match",
            RuleError::Placeholder(_) => "reconcile_placeholder",
            RuleError::Arguments => "reconcile_arguments",
            RuleError::Missing(_) => "reconcile_argument_missing",
        }
    }
}

/// What a value of a rule stands for.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    /// A path into the lost call's arguments.
    Argument(String),
    /// The key the lost call carried.
    EffectKey,
    /// A JSON text.
    Literal(String),
}

/// A rule that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The read tool.
    pub tool: String,
    arguments: String,
    pointer: String,
    expected: Source,
}

/// A lost call.
#[derive(Clone, Copy, Debug)]
pub struct LostCall<'a> {
    /// Its arguments' exact text.
    pub arguments: &'a str,
    /// The key it carried.
    pub effect_key: ExecutionId,
}

/// What to ask about one lost call, and what to look for in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The read tool's arguments.
    pub arguments: String,
    pointer: String,
    expected: String,
}

/// What an answer says about the lost call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It took effect.
    TookEffect,
    /// It took none.
    NoEffect,
    /// The answer says neither; why.
    Unclear(&'static str),
}

impl Rule {
    /// Reads a rule as it is configured.
    ///
    /// # Errors
    /// When `match` or a placeholder cannot be read.
    pub fn parse(configured: &Reconcile) -> Result<Rule, RuleError> {
        let bad = || RuleError::Match(configured.matches.clone());
        let (pointer, expected) = configured.matches.split_once("==").ok_or_else(bad)?;
        let (pointer, expected) = (pointer.trim(), expected.trim());
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(bad());
        }
        let literal = || canonical(expected, None).map(|_| Source::Literal(expected.to_owned()));
        let expected = source(expected).map_or_else(literal, Ok).map_err(|_| bad())?;
        let rule = Rule {
            tool: configured.tool.clone(),
            arguments: configured.arguments.clone(),
            pointer: pointer.to_owned(),
            expected,
        };
        if members(&rule.arguments).is_none() {
            return Err(RuleError::Arguments);
        }
        // Every placeholder is looked at; that this call has no arguments is no fault of the rule.
        match fill(&rule.arguments, &|_| Ok("null".to_owned())) {
            Ok(_) => Ok(rule),
            Err(error) => Err(error),
        }
    }

    /// The question about one call.
    ///
    /// # Errors
    /// When the call has no such argument as the rule speaks of.
    pub fn question(&self, call: LostCall<'_>) -> Result<Question, RuleError> {
        let value = |source: &Source| call.value(source);
        let expected = value(&self.expected)?;
        Ok(Question {
            arguments: fill(&self.arguments, &value)?,
            pointer: self.pointer.clone(),
            expected: canonical(&expected, None).map_err(|_| RuleError::Match(expected))?,
        })
    }
}

impl LostCall<'_> {
    fn value(&self, source: &Source) -> Result<String, RuleError> {
        match source {
            Source::EffectKey => Ok(quoted(&self.effect_key.to_string())),
            Source::Literal(text) => Ok(text.clone()),
            Source::Argument(path) => {
                let mut value = self.arguments;
                for name in path.split('.').filter(|name| !name.is_empty()) {
                    match step(value, name) {
                        Step::To(next) => value = next,
                        Step::PastEnd | Step::Nowhere => return Err(RuleError::Missing(path.clone())),
                    }
                }
                Ok(value.to_owned())
            }
        }
    }
}

impl Question {
    /// What the read tool's whole `result` says.
    pub fn judge(&self, result: &str) -> Verdict {
        #[derive(Deserialize)]
        struct ToolResult<'a> {
            #[serde(default, rename = "isError")]
            is_error: bool,
            #[serde(borrow, default, rename = "structuredContent")]
            structured: Option<&'a RawValue>,
            #[serde(default)]
            content: Vec<Block>,
        }
        #[derive(Deserialize)]
        struct Block {
            #[serde(default)]
            text: Option<String>,
        }
        let Ok(answer) = serde_json::from_str::<ToolResult<'_>>(result) else {
            return Verdict::Unclear("its result cannot be read");
        };
        if answer.is_error {
            return Verdict::Unclear("it answered with an error");
        }
        let text = answer.content.into_iter().find_map(|block| block.text);
        let json = match (answer.structured, &text) {
            (Some(structured), _) => structured.get(),
            (None, Some(text)) => text.trim(),
            (None, None) => return Verdict::Unclear("its result has neither structured content nor text"),
        };
        if canonical(json, None).is_err() {
            return Verdict::Unclear("its result has no structured content and its text is not JSON");
        }
        self.compare(json)
    }

    fn compare(&self, json: &str) -> Verdict {
        let mut found = json;
        for name in self.pointer.split('/').skip(1) {
            let name = name.replace("~1", "/").replace("~0", "~");
            match step(found, &name) {
                Step::To(next) => found = next,
                // A list that is shorter than that is the plain way to say that there is no such thing.
                Step::PastEnd => return Verdict::NoEffect,
                Step::Nowhere => return Verdict::Unclear("its result has nothing where the rule looks"),
            }
        }
        match canonical(found, None) {
            Ok(found) if found == self.expected => Verdict::TookEffect,
            Ok(_) => Verdict::NoEffect,
            Err(_) => Verdict::Unclear("its result cannot be compared"),
        }
    }
}

enum Step<'a> {
    To(&'a str),
    PastEnd,
    Nowhere,
}

fn step<'a>(json: &'a str, name: &str) -> Step<'a> {
    if let Some(members) = members(json) {
        let found = members.into_iter().rev().find(|(known, _)| known == name);
        return found.map_or(Step::Nowhere, |(_, value)| Step::To(value.get()));
    }
    let plain = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    match (serde_json::from_str::<Vec<&RawValue>>(json), name.parse::<usize>()) {
        (Ok(items), Ok(index)) if plain => items.get(index).map_or(Step::PastEnd, |item| Step::To(item.get())),
        _ => Step::Nowhere,
    }
}

fn source(text: &str) -> Option<Source> {
    match text {
        "effect_key" | "idempotency_key" => Some(Source::EffectKey),
        "arguments" => Some(Source::Argument(String::new())),
        _ => text.strip_prefix("arguments.").map(|path| Source::Argument(path.to_owned())),
    }
}

/// `json` with the placeholders of its string values replaced by what `value` gives, a JSON text each. A string that is
/// one placeholder becomes that JSON as it is; within a longer string, a text stands for itself.
fn fill(json: &str, value: &dyn Fn(&Source) -> Result<String, RuleError>) -> Result<String, RuleError> {
    if let Some(members) = members(json) {
        let mut filled = Vec::with_capacity(members.len());
        for (name, item) in members {
            filled.push(format!("{}:{}", quoted(&name), fill(item.get(), value)?));
        }
        return Ok(format!("{{{}}}", filled.join(",")));
    }
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) {
        let filled: Result<Vec<_>, _> = items.into_iter().map(|item| fill(item.get(), value)).collect();
        return Ok(format!("[{}]", filled?.join(",")));
    }
    match serde_json::from_str::<String>(json) {
        Ok(text) if text.contains("{{") => fill_text(&text, value),
        _ => Ok(json.to_owned()),
    }
}

fn fill_text(text: &str, value: &dyn Fn(&Source) -> Result<String, RuleError>) -> Result<String, RuleError> {
    let filled = |name: &str| {
        let name = name.trim();
        value(&source(name).ok_or_else(|| RuleError::Placeholder(name.to_owned()))?)
    };
    let alone = text.strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
    if let Some(name) = alone.filter(|name| !name.contains("}}")) {
        return filled(name);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else { break };
        let filled = filled(name)?;
        out.push_str(before);
        match serde_json::from_str::<String>(&filled) {
            Ok(text) => out.push_str(&text),
            Err(_) => out.push_str(&filled),
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(quoted(&out))
}
