//! Questions that a server asks by its answer: `input_required` of 2026-07-28, the error -32042 of 2025-11-25. Reads them,
//! and puts the client's answers into the call that goes on. Asks nobody itself.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::executor::{Continuation, Outcome};
use super::super::upstream::Request;
use super::super::upstream::message::error_parts;
use crate::engine::asking::Question;
use crate::engine::client::ClientContext;
use crate::model::json::{is_null, members, one_line, quoted, text};
use crate::store::Payload;

/// An elicitation by URL has to be done before the call (2025-11-25).
const URL_ELICITATION_REQUIRED: i64 = -32042;
/// A resource is not there (up to 2025-11-25).
const RESOURCE_NOT_FOUND: i64 = -32002;
/// What 2026-07-28 says instead.
const INVALID_PARAMS: &str = "-32602";

/// Questions that a server may ask at once: each is stored.
const QUESTIONS_MAX: usize = 256;

/// What an `input_required` asks.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    pub questions: Vec<Question>,
    /// `requestState`, as it stands there.
    pub state: Option<Payload>,
}

/// Reads an `input_required`; `None` when it cannot be read.
pub(super) fn read(result: &str) -> Option<Asked> {
    let mut asked = Asked { questions: Vec::new(), state: None };
    for (name, value) in members(result)? {
        match name.as_ref() {
            "inputRequests" => asked.questions = questions(value.get())?,
            "requestState" if is_null(value) => {}
            // Anything else could be taken for a state of ours (see `task`).
            "requestState" => {
                text(value)?;
                asked.state = Some(one_line(value.get()).into());
            }
            _ => {}
        }
    }
    Some(asked)
}

/// Reads `inputRequests`, a map from the server's keys to requests; `None` too when they are more than anybody could answer.
pub(super) fn questions(requests: &str) -> Option<Vec<Question>> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        method: String,
        #[serde(borrow, default)]
        params: Option<&'a RawValue>,
    }
    let question = |(key, raw): (std::borrow::Cow<'_, str>, &RawValue)| {
        let wire: Wire<'_> = serde_json::from_str(raw.get()).ok()?;
        let params = wire.params.map_or("{}", RawValue::get);
        Some(Question { key: key.into_owned(), method: wire.method, params: one_line(params).into() })
    };
    let requests = members(requests).filter(|requests| requests.len() <= QUESTIONS_MAX)?;
    requests.into_iter().map(question).collect()
}

/// The call with what the client answered to an earlier one. A state that is not text is ours (see `task`).
pub(super) fn continued(mut call: Request, continuation: Option<&Continuation>) -> Request {
    let Some(Continuation { state, responses }) = continuation else { return call };
    if !responses.is_empty() {
        call = call.with("inputResponses", &response_map(responses));
    }
    match state {
        Some(state) => call.with("requestState", state),
        None => call,
    }
}

/// `inputResponses`: the answers by the server's keys, byte for byte.
pub(super) fn response_map(responses: &[(String, Payload)]) -> String {
    let members: Vec<_> = responses.iter().map(|(key, answer)| format!("{}:{answer}", quoted(key))).collect();
    format!("{{{}}}", members.join(","))
}

/// What an error of a server means for this client (protocol decisions: errors).
pub(super) fn of_error(error: &RawValue, client: &ClientContext) -> Outcome {
    let error = one_line(error.get());
    if !client.is_modern() {
        return Outcome::RpcError(error.into());
    }
    let code = RawValue::from_string(error.to_string()).ok().and_then(|raw| error_parts(&raw).0);
    match code {
        Some(URL_ELICITATION_REQUIRED) => match elicitations(&error) {
            Some(questions) if !questions.is_empty() => Outcome::InputRequired { questions, state: None },
            _ => Outcome::RpcError(error.into()),
        },
        Some(RESOURCE_NOT_FOUND) => Outcome::RpcError(with_code(&error, INVALID_PARAMS).into()),
        _ => Outcome::RpcError(error.into()),
    }
}

/// The elicitations that an error -32042 names, as questions.
fn elicitations(error: &str) -> Option<Vec<Question>> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        data: Data<'a>,
    }
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        elicitations: Vec<&'a RawValue>,
    }
    let wire: Wire<'_> = serde_json::from_str(error).ok()?;
    let question = |(n, params): (usize, &RawValue)| Question {
        key: format!("url{}", n + 1),
        method: "elicitation/create".to_owned(),
        params: params.get().into(),
    };
    Some(wire.data.elicitations.into_iter().enumerate().map(question).collect())
}

/// An error object with another code; all else stays byte for byte.
fn with_code(error: &str, code: &str) -> String {
    let members = members(error).unwrap_or_default();
    let member = |(name, value): &(std::borrow::Cow<'_, str>, &RawValue)| {
        format!("{}:{}", quoted(name), if name == "code" { code } else { value.get() })
    };
    format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
}

/// The string value of a member.
pub(super) fn text_member(object: &str, name: &str) -> Option<String> {
    let found = members(object)?.into_iter().find(|(member, _)| member == name)?;
    text(found.1).map(|text| text.into_owned())
}
