//! A tool that asks the client for a form: by a request up to 2025-11-25, by its answer in 2026-07-28. It asks whatever the
//! client declared and the revision knows, as careless servers do, and answers what came of it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Call, Outcome, parse, text_result, tool_error};
use crate::protocol::MODERN;
use crate::server::Server;

/// Comes back with the answer, or the call is not the one that asked.
const STATE: &str = "kit-asked";

#[derive(Deserialize)]
struct Ask {
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Continued<'a> {
    #[serde(borrow)]
    input_responses: Option<&'a RawValue>,
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Value>,
}

pub async fn ask(server: &Server, call: &Call<'_>) -> Result<Outcome, String> {
    let Ask { message } = parse(call)?;
    let schema = json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]});
    let mut params = json!({"message": message, "requestedSchema": schema});
    if call.revision >= "2025-11-25" {
        params["mode"] = json!("form");
    }
    if call.revision == MODERN {
        return by_answer(call, &params);
    }
    let id = server.question_id();
    let answer = call.running.ask(&id);
    let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{params}}}"#);
    call.notify.send(request).map_err(|_| "the client is gone")?;
    let Some(answer) = call.cancelled.run_until_cancelled(answer).await else { return Ok(Outcome::Cancelled) };
    let answer = answer.map_err(|_| "nobody answered")?;
    let response: Response<'_> = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    Ok(match (response.result, response.error) {
        (Some(result), None) => text_result(&format!("told {result}")),
        (_, error) => {
            let error = error.unwrap_or_default();
            tool_error(&format!("refused with {}: {}", error["code"], error["message"]))
        }
    })
}

fn by_answer(call: &Call<'_>, params: &Value) -> Result<Outcome, String> {
    let Continued { input_responses, request_state } = serde_json::from_str(call.params).map_err(|e| e.to_string())?;
    if let Some(responses) = input_responses {
        return match request_state.as_deref() {
            Some(STATE) => {
                let responses: std::collections::BTreeMap<String, &RawValue> =
                    serde_json::from_str(responses.get()).map_err(|error| error.to_string())?;
                let answer = responses.get("colour").ok_or("another question was answered")?;
                Ok(text_result(&format!("told {answer}")))
            }
            other => Err(format!("the state came back as {other:?}")),
        };
    }
    let questions = json!({"colour": {"method": "elicitation/create", "params": params}});
    let state = json!(STATE);
    Ok(Outcome::Typed(format!(
        r#"{{"resultType":"input_required","inputRequests":{questions},"requestState":{state}}}"#
    )))
}
