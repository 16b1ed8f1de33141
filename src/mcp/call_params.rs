//! The parameters of `tools/call`. Borrows everything from the message; does not look into `arguments`, resolve the
//! idempotency key (`keys` does) or know the tool.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::meta::{Meta, Params, ParamsError};
use crate::model::json::{self, Member};

#[cfg(test)]
mod tests;

/// `params` of `tools/call`. A member that is `null` counts as absent.
#[derive(Debug)]
pub struct CallParams<'a> {
    pub name: Cow<'a, str>,
    /// An object, as written.
    pub arguments: Option<&'a RawValue>,
    pub meta: Meta<'a>,
    /// `params.idempotencyKey` (the spelling of SEP-3182).
    pub idempotency_key: Option<&'a RawValue>,
    /// `params.task`: an object (2025-11-25; later revisions ignore it).
    pub task: Option<&'a RawValue>,
    /// Answers of the client to an `input_required` result: an object.
    pub input_responses: Option<&'a RawValue>,
    pub request_state: Option<Cow<'a, str>>,
    /// Members that the protocol does not know, to be passed on as they are.
    pub passthrough: Vec<Member<'a>>,
}

impl<'a> CallParams<'a> {
    /// Sorts the members of `params`; `meta` is what [`Meta::of`] read from them. Errors: [`ParamsError`].
    pub fn new(params: Params<'a>, meta: Meta<'a>) -> Result<Self, ParamsError> {
        let mut call = CallParams {
            name: Cow::Borrowed(""),
            arguments: None,
            meta,
            idempotency_key: None,
            task: None,
            input_responses: None,
            request_state: None,
            passthrough: Vec::new(),
        };
        let mut has_name = false;
        for (member, value) in params.members {
            let known = matches!(
                &*member,
                "name" | "arguments" | "_meta" | "idempotencyKey" | "task" | "inputResponses" | "requestState"
            );
            if !known {
                call.passthrough.push((member, value));
                continue;
            }
            if json::is_null(value) {
                continue;
            }
            match &*member {
                "name" => {
                    call.name = text(value, "name")?;
                    has_name = true;
                }
                "arguments" => call.arguments = Some(object(value, "arguments")?),
                "idempotencyKey" => call.idempotency_key = Some(value),
                "task" => call.task = Some(object(value, "task")?),
                "inputResponses" => call.input_responses = Some(object(value, "inputResponses")?),
                "requestState" => call.request_state = Some(text(value, "requestState")?),
                _ => {}
            }
        }
        if !has_name {
            return Err(ParamsError::Missing { member: "name" });
        }
        Ok(call)
    }

    /// Reads the `params` of a `tools/call` at once.
    pub fn parse(params: Option<&'a RawValue>) -> Result<Self, ParamsError> {
        let params = Params::split(params);
        let meta = Meta::of(&params)?;
        CallParams::new(params, meta)
    }
}

fn text<'a>(value: &'a RawValue, member: &'static str) -> Result<Cow<'a, str>, ParamsError> {
    json::text(value).ok_or(ParamsError::Type { member, wanted: "a string" })
}

fn object<'a>(value: &'a RawValue, member: &'static str) -> Result<&'a RawValue, ParamsError> {
    if json::is_object(value) { Ok(value) } else { Err(ParamsError::Type { member, wanted: "an object" }) }
}
