//! Templates: `{{arguments.path}}` and `{{effect_key}}` inside the strings that an operator configured, filled in from
//! one call. Values go in as the exact JSON text they came as. Knows no configuration and sends nothing.

#[cfg(test)]
mod tests;

use serde_json::value::RawValue;
use thiserror::Error;

use crate::model::id::ExecutionId;
use crate::model::json::{members, quoted};

/// Why a template cannot be used, or not for this call.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TemplateError {
    /// A placeholder nobody knows.
    #[error("{{{{{0}}}}} is unknown; known are {{{{arguments.NAME}}}} and {{{{effect_key}}}}")]
    Placeholder(String),
    /// The call has no such argument.
    #[error("the call has no argument {0}")]
    Missing(String),
}

/// What a placeholder stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A path into the call's arguments; empty: all of them.
    Argument(String),
    /// The key for the tool's own external writes.
    EffectKey,
}

/// What a call fills in.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The arguments' exact text.
    pub arguments: &'a str,
    /// The key for the tool's own external writes.
    pub effect_key: ExecutionId,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Stands for itself.
    Text(&'a str),
    /// The trimmed name between the braces.
    Placeholder(&'a str),
}

impl Source {
    /// Reads the name of a placeholder.
    ///
    /// # Errors
    /// When nobody knows it.
    pub fn parse(name: &str) -> Result<Source, TemplateError> {
        match name {
            "effect_key" | "idempotency_key" => Ok(Source::EffectKey),
            "arguments" => Ok(Source::Argument(String::new())),
            _ => match name.strip_prefix("arguments.") {
                Some(path) => Ok(Source::Argument(path.to_owned())),
                None => Err(TemplateError::Placeholder(name.to_owned())),
            },
        }
    }
}

impl Values<'_> {
    /// The JSON text of a value; `None` when the call has no such argument.
    pub fn get(&self, source: &Source) -> Option<String> {
        match source {
            Source::EffectKey => Some(quoted(&self.effect_key.to_string())),
            Source::Argument(path) => {
                let mut value = self.arguments;
                for name in path.split('.').filter(|name| !name.is_empty()) {
                    match step(value, name) {
                        Step::To(next) => value = next,
                        Step::PastEnd | Step::Nowhere => return None,
                    }
                }
                Some(value.to_owned())
            }
        }
    }

    /// The same.
    ///
    /// # Errors
    /// When the call has no such argument.
    pub fn need(&self, source: &Source) -> Result<String, TemplateError> {
        self.get(source).ok_or_else(|| match source {
            Source::Argument(path) => TemplateError::Missing(path.clone()),
            Source::EffectKey => TemplateError::Missing("effect_key".to_owned()),
        })
    }
}

/// The pieces of a text. Braces that nothing closes stand for themselves.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else { break };
        if !before.is_empty() {
            found.push(Part::Text(before));
        }
        found.push(Part::Placeholder(name.trim()));
        rest = after;
    }
    if !rest.is_empty() {
        found.push(Part::Text(rest));
    }
    found
}

/// Reads every placeholder of a text.
///
/// # Errors
/// Names the first one that nobody knows.
pub fn check_text(text: &str) -> Result<(), TemplateError> {
    parts(text).into_iter().try_for_each(|part| match part {
        Part::Placeholder(name) => Source::parse(name).map(|_| ()),
        Part::Text(_) => Ok(()),
    })
}

/// Reads every placeholder in the strings of a JSON text; names of members are no templates.
///
/// # Errors
/// Names the first one that nobody knows.
pub fn check_json(json: &str) -> Result<(), TemplateError> {
    fill_json(json, &|_| Ok(Some("null".to_owned()))).map(|_| ())
}

/// How the value of a placeholder is found: its JSON text, or `None` to leave out what is nothing but this placeholder.
pub type Lookup<'a> = &'a dyn Fn(&Source) -> Result<Option<String>, TemplateError>;

/// `json` with the placeholders of its string values replaced. A string that is one placeholder becomes that JSON as it
/// is; within a longer string, a text stands for itself.
///
/// # Errors
/// Those of `value`, of unknown placeholders, and of a value that is left out inside a longer string.
pub fn fill_json(json: &str, value: Lookup<'_>) -> Result<String, TemplateError> {
    Ok(filled(json, value)?.unwrap_or_else(|| "null".to_owned()))
}

fn filled(json: &str, value: Lookup<'_>) -> Result<Option<String>, TemplateError> {
    if let Some(members) = members(json) {
        let mut kept = Vec::with_capacity(members.len());
        for (name, item) in members {
            if let Some(item) = filled(item.get(), value)? {
                kept.push(format!("{}:{item}", quoted(&name)));
            }
        }
        return Ok(Some(format!("{{{}}}", kept.join(","))));
    }
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) {
        let mut kept = Vec::with_capacity(items.len());
        for item in items {
            kept.extend(filled(item.get(), value)?);
        }
        return Ok(Some(format!("[{}]", kept.join(","))));
    }
    match serde_json::from_str::<String>(json) {
        Ok(text) if text.contains("{{") => match parts(&text).as_slice() {
            [Part::Placeholder(name)] => value(&Source::parse(name)?),
            parts => Ok(Some(quoted(&join(parts, value, &|text| text.to_owned())?))),
        },
        _ => Ok(Some(json.to_owned())),
    }
}

/// A text with its placeholders replaced by the texts of their values, each as `spell` writes it.
///
/// # Errors
/// Those of `value`, of unknown placeholders, and of a value that is left out.
pub fn join(parts: &[Part<'_>], value: Lookup<'_>, spell: &dyn Fn(&str) -> String) -> Result<String, TemplateError> {
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Placeholder(name) => {
                let json = value(&Source::parse(name)?)?.ok_or_else(|| missing(name))?;
                out.push_str(&spell(&plain(&json)));
            }
        }
    }
    Ok(out)
}

fn missing(name: &str) -> TemplateError {
    TemplateError::Missing(name.strip_prefix("arguments.").unwrap_or(name).to_owned())
}

/// The text that a JSON value is within a longer text: of a string its content, else the JSON as it is.
pub fn plain(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}

/// Where a step into a JSON value leads.
pub enum Step<'a> {
    /// To this value.
    To(&'a str),
    /// Beyond the end of a list.
    PastEnd,
    /// There is no such thing.
    Nowhere,
}

/// One step into a JSON text: the member of an object, or the item of a list by its number.
pub fn step<'a>(json: &'a str, name: &str) -> Step<'a> {
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
