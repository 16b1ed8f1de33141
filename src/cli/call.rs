//! `call TOOL`: one call of a tool of a running server. Prints what the tool answered; everything about the execution
//! goes to stderr and into the exit code.

use std::io::Read;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::address::{Address, DEFAULT};
use super::args::CallArgs;
use super::client::{Client, TOKEN_VARIABLE};
use super::failure::{Exit, Failure};
use super::mcp_client::{self, Answer, RpcError, ToolCall};
use super::output::Output;
use crate::mcp::reject::code;
use crate::model::execution::State;
use crate::model::policy::Delivery;

/// Runs the command.
pub async fn run(args: CallArgs, out: Output) -> Result<Exit, Failure> {
    let arguments = arguments(&args.args)?;
    let url = args.server.url.as_deref();
    let address = match (url, &args.configuration.config) {
        (Some(url), _) => Address::parse(url)?,
        (None, None) => Address::parse(DEFAULT)?,
        (None, Some(_)) => {
            let config = args.configuration.load(|_| {})?.config;
            Address::parse(&format!("http://{}{}", config.server.listen, &*config.server.path))?
        }
    };
    // Without authentication every caller is the same one: the local token would add nothing here.
    let bearer = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
    let client = Client::new(address, bearer)?;
    let wait_ms = args.wait.map(|wait| wait.0);
    let call = ToolCall { name: args.tool, arguments, key: args.key, wait_ms };
    match mcp_client::call(&client, &call).await? {
        Answer::Result(result) => tell(&result, wait_ms == Some(0), args.json, &out),
        Answer::Error(error) => Err(refused(&error, &call.name)),
    }
}

/// The arguments' text: as given, from a file, or from stdin.
pub fn arguments(given: &str) -> Result<String, Failure> {
    let wrong = |what: String| Failure::usage(what).next("give a JSON object, @FILE, or - for stdin");
    let text = match given.strip_prefix('@') {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| wrong(format!("{path} can not be read: {error}")))?
        }
        None if given == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| wrong(format!("stdin can not be read: {error}")))?;
            text
        }
        None => given.to_owned(),
    };
    let text = text.trim_start_matches('\u{feff}').trim();
    match serde_json::from_str::<&RawValue>(text) {
        Ok(_) if text.starts_with('{') => Ok(text.to_owned()),
        Ok(_) => Err(wrong("the arguments are no JSON object".to_owned())),
        // The text itself may hold secrets; the place is enough.
        Err(error) => {
            Err(wrong(format!("the arguments are no JSON (line {}, column {})", error.line(), error.column())))
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult {
    #[serde(default)]
    content: Vec<Box<RawValue>>,
    structured_content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "durable-mcp/execution")]
    execution: Option<Execution>,
}

/// What `call --json` prints: the tool's whole result as it came, with one member of ours.
#[derive(JsonSchema)]
#[schemars(rename = "CallResult")]
#[allow(dead_code, reason = "it describes what passes through as bytes")]
pub struct CallView {
    /// The blocks of the result.
    content: Vec<serde_json::Map<String, serde_json::Value>>,
    /// The result as data, from tools that give one.
    #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    structured_content: Option<serde_json::Value>,
    /// The tool says that it failed.
    #[serde(rename = "isError", skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    /// What belongs to the protocol; our member says which execution this is.
    #[serde(rename = "_meta")]
    meta: CallMeta,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes what passes through as bytes")]
struct CallMeta {
    /// The execution behind the call.
    #[serde(rename = "durable-mcp/execution")]
    execution: ExecutionMember,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "it describes what passes through as bytes")]
struct ExecutionMember {
    /// Its id.
    id: String,
    /// Where it stands.
    state: State,
    /// Tries so far.
    attempt: u32,
    /// What may happen to a call whose attempt was lost.
    delivery: Delivery,
    /// The call was attached to an execution that was there already.
    attached: bool,
}

#[derive(Deserialize)]
struct Execution {
    id: String,
    state: String,
    #[serde(default)]
    attached: bool,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

/// Prints a result and says how the command ends. `asked`: only the id was asked for.
pub fn tell(result: &RawValue, asked: bool, json: bool, out: &Output) -> Result<Exit, Failure> {
    let unreadable = |_| Failure::new(Exit::Failure, "the server's answer is no tool result");
    let read: CallResult = serde_json::from_str(result.get()).map_err(unreadable)?;
    let execution = read.meta.execution.as_ref();
    let state = execution.and_then(|execution| State::parse(&execution.state));
    if json {
        out.line(result.get())?;
    }
    let exit = match state {
        Some(State::Completed) | None if read.is_error => Exit::ToolError,
        Some(State::Completed) | None => Exit::Ok,
        Some(State::Failed) => Exit::ToolError,
        Some(State::Cancelled) => Exit::Failure,
        Some(State::Unknown) => Exit::Unknown,
        Some(_) if asked => Exit::Ok,
        Some(_) => Exit::Running,
    };
    if json {
        return Ok(exit);
    }
    if let (Exit::Ok, true, Some(execution)) = (exit, asked, execution.filter(|_| state != Some(State::Completed))) {
        out.line(&execution.id)?;
        return Ok(exit);
    }
    let text = text_of(&read)?;
    if state.is_none() || state == Some(State::Completed) {
        out.line(&text)?;
        if let Some(execution) = execution {
            let attached = if execution.attached { ", stored earlier" } else { "" };
            eprintln!("execution {} {}{attached}", execution.id, execution.state);
        }
        return Ok(exit);
    }
    // The words are ours, not the tool's: nothing of them is data.
    eprintln!("{text}");
    Ok(exit)
}

/// Text blocks as text, other blocks as JSON, one after the other; without any the structured content.
fn text_of(read: &CallResult) -> Result<String, Failure> {
    let block = |raw: &RawValue| match serde_json::from_str::<Block>(raw.get()) {
        Ok(Block { kind, text: Some(text) }) if kind == "text" => text,
        _ => raw.get().to_owned(),
    };
    let blocks: Vec<String> = read.content.iter().map(|raw| block(raw)).collect();
    Ok(match &read.structured_content {
        Some(structured) if blocks.is_empty() => structured.get().to_owned(),
        _ => blocks.join("\n"),
    })
}

/// What a JSON-RPC error means for the command.
pub fn refused(error: &RpcError, tool: &str) -> Failure {
    let unknown_tool = error.code == code::INVALID_PARAMS && error.message.starts_with("unknown tool");
    let exit = match error.code {
        code::CONFLICT => Exit::Conflict,
        code::OVERLOAD | code::STORE_UNAVAILABLE | code::INTERNAL_ERROR => Exit::Failure,
        code::INVALID_PARAMS if unknown_tool => Exit::NotFound,
        code::INVALID_PARAMS | code::INVALID_REQUEST | code::PARSE_ERROR => Exit::Usage,
        _ => Exit::ToolError,
    };
    let failure = Failure::new(exit, format!("{tool}: {}", error.message));
    match error.data.get("next").and_then(|next| next.as_str()) {
        Some(next) => failure.next(next),
        None if unknown_tool => failure.next("`durable-mcp tools list` shows what there is"),
        None => failure,
    }
}
