//! What is called, and what has to come back: the arguments and the expected text with the key of each call in them.
//! Calls nothing.

use serde_json::value::RawValue;

use super::super::args::BenchArgs;
use super::super::failure::Failure;
use super::super::stage::caller::Told;
use crate::model::revision::Era;

/// Stands for the key of the call.
const KEY: &str = "{{key}}";
/// What the default message is filled up with: a call of about 200 bytes.
const PAD: &str =
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";

/// See the module.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tool.
    pub tool: String,
    /// Its arguments, a JSON text that may hold `{{key}}`.
    pub arguments: String,
    /// What an answer holds; may hold `{{key}}`.
    pub expect: Option<String>,
    /// How often each call is repeated.
    pub duplicates: u32,
    /// Which protocol.
    pub era: Era,
    /// Keeps the keys of one run apart from those of others.
    pub run: String,
}

impl Plan {
    /// What the command line asks for. Errors: the arguments are no JSON object.
    pub fn of(args: &BenchArgs, default_tool: &str, default_era: Era) -> Result<Plan, Failure> {
        let tool = args.tool.clone().unwrap_or_else(|| default_tool.to_owned());
        let echo = args.args.is_none() && tool == default_tool;
        let arguments = match &args.args {
            Some(given) => super::super::call::arguments(given)?,
            None if echo => format!(r#"{{"message":"{KEY} {PAD}"}}"#),
            None => "{}".to_owned(),
        };
        // The key is put into a JSON string: the text has to be JSON with any key in it.
        if serde_json::from_str::<&RawValue>(&arguments.replace(KEY, "a-1")).is_err() {
            return Err(Failure::usage("the arguments are no JSON").next("put {{key}} into a string"));
        }
        let expect = args.expect.clone().or_else(|| echo.then(|| format!("{KEY} {PAD}")));
        let run = hex::encode(&crate::engine::entropy()[..4]);
        let era = args.era.map_or(default_era, Into::into);
        Ok(Plan { tool, arguments, expect, duplicates: args.duplicates, era, run })
    }

    /// The key of a call.
    pub fn key(&self, client: usize, n: u64) -> String {
        format!("{}-{client}-{n}", self.run)
    }

    /// The arguments of a call.
    pub fn arguments_of(&self, key: &str) -> String {
        self.arguments.replace(KEY, key)
    }

    /// What is wrong with the answer to a call; `first` is the answer that a repeat has to equal.
    pub fn fault(&self, key: &str, told: &Told, first: Option<&Told>) -> Option<Fault> {
        if let Some(execution) = &told.execution
            && execution.state != "completed"
        {
            return Some(Fault::Error(execution.state.clone()));
        }
        if told.is_error {
            return Some(Fault::Error("tool_error".to_owned()));
        }
        if let Some(expect) = &self.expect
            && !told.text.contains(&expect.replace(KEY, key))
        {
            return Some(Fault::Wrong("the answer does not hold what is expected".to_owned()));
        }
        let execution = told.execution.as_ref()?;
        match first {
            None if execution.attached => Some(Fault::Wrong("a new key was taken for an old one".to_owned())),
            None => None,
            Some(first) if first.execution.as_ref().map(|first| &first.id) != Some(&execution.id) => {
                Some(Fault::Wrong("a repeated key got another execution".to_owned()))
            }
            Some(first) if first.text != told.text => {
                Some(Fault::Wrong("a repeated key got another result".to_owned()))
            }
            Some(_) => None,
        }
    }
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It says honestly that there is no result: the kind.
    Error(String),
    /// It is not the answer to this call.
    Wrong(String),
}
