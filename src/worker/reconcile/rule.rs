//! One reconcile rule, pure: the question it makes of a lost call, and what the answer of the read tool says about it.
//! Numbers are compared by exact decimal value, never through a float.

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::model::arguments::canonical;
use crate::model::id::ExecutionId;
use crate::model::json::members;
use crate::worker::rules::Reconcile;
use crate::worker::template::{self, Step, TemplateError, Values, step};

/// Why a rule cannot be used, or not for this call.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RuleError {
    /// `match` is not `POINTER == value`.
    #[error("match {0:?} is not of the form POINTER == value, such as /items/0/title == arguments.title")]
    Match(String),
    /// The configured arguments are no JSON object.
    #[error("the arguments of the read tool are not a JSON object")]
    Arguments,
    /// A placeholder nobody knows, or one that this call has no value for.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl RuleError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            RuleError::Match(_) => "reconcile_match",
            RuleError::Arguments => "reconcile_arguments",
            RuleError::Template(TemplateError::Placeholder(_)) => "reconcile_placeholder",
            RuleError::Template(TemplateError::Missing(_)) => "reconcile_argument_missing",
        }
    }
}

/// What `match` compares with.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    /// Something of the lost call.
    Call(template::Source),
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
    expected: Expected,
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
        let literal = |_| canonical(expected, None).map(|_| Expected::Literal(expected.to_owned()));
        let expected = template::Source::parse(expected).map(Expected::Call).or_else(literal).map_err(|_| bad())?;
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
        template::check_json(&rule.arguments)?;
        Ok(rule)
    }

    /// The question about one call.
    ///
    /// # Errors
    /// When the call has no such argument as the rule speaks of.
    pub fn question(&self, call: LostCall<'_>) -> Result<Question, RuleError> {
        let values = Values { arguments: call.arguments, effect_key: call.effect_key };
        let expected = match &self.expected {
            Expected::Call(source) => values.need(source)?,
            Expected::Literal(text) => text.clone(),
        };
        Ok(Question {
            // A question with a hole in it would be another question.
            arguments: template::fill_json(&self.arguments, &|source| values.need(source).map(Some))?,
            pointer: self.pointer.clone(),
            expected: canonical(&expected, None).map_err(|_| RuleError::Match(expected))?,
        })
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
