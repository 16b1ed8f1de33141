//! The tools: their definitions as the exact JSON a list carries, and what a call does. Every run with a side effect
//! writes its start into the ledger before and its end after the effect. No JSON-RPC here: outcomes only.

mod asking;
mod contents;
mod definitions;
mod processes;

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use definitions::definitions;

use crate::Era;
use crate::corpus;
use crate::ledger::{Ledger, Origin};
use crate::protocol::notification;
use crate::server::{Running, Server};

pub struct Call<'a> {
    pub name: &'a str,
    /// The exact text of the arguments.
    pub arguments: &'a str,
    pub meta: &'a Map<String, Value>,
    /// The exact text of `params`.
    pub params: &'a str,
    pub headers: &'a str,
    /// The revision that the call was made in.
    pub revision: &'a str,
    pub notify: mpsc::UnboundedSender<String>,
    /// The connection's, for answers to what a tool asks.
    pub running: &'a Running,
    pub cancelled: CancellationToken,
}

pub enum Outcome {
    /// The exact JSON of the result.
    Result(String),
    /// The exact JSON of a result that says itself what type it has.
    Typed(String),
    Error {
        code: i64,
        message: String,
        data: Option<String>,
    },
    /// Ended by a cancellation: nothing is answered.
    Cancelled,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    #[serde(default)]
    once: bool,
}

#[derive(Deserialize)]
struct Slow {
    seconds: f64,
    text: Option<String>,
    /// A file: the run goes on until it is there.
    gate: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Flaky {
    name: String,
    failures: usize,
}

#[derive(Deserialize)]
struct Big {
    size: usize,
}

#[derive(Deserialize)]
struct Case {
    case: String,
}

#[derive(Deserialize)]
struct Structured {
    n: Box<RawValue>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    message: String,
    data: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Flood {
    count: usize,
    uri: String,
}

#[derive(Deserialize)]
struct Grandchild {
    #[serde(default)]
    orphan: bool,
}

/// Runs one call; arguments of the wrong shape are a tool error, an unknown tool is -32602.
pub async fn run(server: &Server, call: &Call<'_>) -> Outcome {
    match dispatch(server, call).await {
        Ok(outcome) => outcome,
        Err(problem) => tool_error(&problem),
    }
}

async fn dispatch(server: &Server, call: &Call<'_>) -> Result<Outcome, String> {
    match call.name {
        "append" | "append_idempotent" => append(ledger(server)?, call),
        "slow" | "slow_idempotent" => slow(ledger(server)?, call).await,
        "slow_structured" => {
            let n = parse::<Structured>(call)?.n;
            Ok(match slow(ledger(server)?, call).await? {
                Outcome::Result(_) => structured(n.get()),
                other => other,
            })
        }
        "flaky" | "flaky_idempotent" => flaky(ledger(server)?, call),
        "crash_after_write" | "crash_idempotent" => crash(ledger(server)?, call),
        "lookup" => lookup(ledger(server)?, call),
        "echo" => Ok(text_result(call.arguments)),
        "received" => Ok(received(call)),
        "big" => {
            let Big { size } = parse(call)?;
            Ok(text_result(&"0123456789abcdef".repeat(size.div_ceil(16))[..size]))
        }
        "structured" if call.revision < contents::STRUCTURED => {
            Ok(text_result(&format!("{{\"n\":{}}}", parse::<Structured>(call)?.n.get())))
        }
        "structured" => Ok(structured(parse::<Structured>(call)?.n.get())),
        "rows" if server.options.era == Era::Modern => Ok(contents::rows()),
        "media" => Ok(contents::media(call.revision)),
        "ask" => asking::ask(server, call).await,
        "corpus" => {
            let Case { case } = parse(call)?;
            corpus::case(&case).map(Outcome::Result).ok_or_else(|| format!("no corpus case: {case}"))
        }
        "rpc_error" => {
            let RpcError { code, message, data } = parse(call)?;
            Ok(Outcome::Error { code, message, data: data.map(|data| data.get().to_owned()) })
        }
        "flood" if server.options.offers => {
            let Flood { count, uri } = parse(call)?;
            let told = json!({"uri": uri, "pad": "x".repeat(4_000)}).to_string();
            for _ in 0..count {
                let _ = call.notify.send(notification("notifications/resources/updated", &told));
                // The pipe's other end sets the pace.
                tokio::task::yield_now().await;
            }
            Ok(text_result("flooded"))
        }
        "grandchild" => {
            let pids =
                processes::grandchildren(parse::<Grandchild>(call)?.orphan).await.map_err(|error| error.to_string())?;
            Ok(structured_result(&pids.to_string()))
        }
        extra if extra.starts_with("extra_") && server.options.extra_tools > 0 => Ok(text_result(extra)),
        "late" if server.tools_have_changed() => Ok(text_result("late")),
        unknown => Ok(Outcome::Error { code: -32602, message: format!("unknown tool: {unknown}"), data: None }),
    }
}

fn append(ledger: &Ledger, call: &Call<'_>) -> Result<Outcome, String> {
    let Text { text, .. } = parse(call)?;
    start(ledger, &text, call)?;
    end(ledger, "done", &text)?;
    Ok(text_result(&format!("appended {text}")))
}

async fn slow(ledger: &Ledger, call: &Call<'_>) -> Result<Outcome, String> {
    let Slow { seconds, text, gate } = parse(call)?;
    let text = text.unwrap_or_else(|| "slow".to_owned());
    start(ledger, &text, call)?;
    let tick_seconds = if seconds > 2.0 { 1.0 } else { 0.1 };
    let ticks = (seconds / tick_seconds).floor() as u64;
    let work = async {
        for tick in 1..=ticks {
            tokio::time::sleep(Duration::from_secs_f64(tick_seconds)).await;
            progress(call, tick, ticks);
        }
        tokio::time::sleep(Duration::from_secs_f64((seconds - ticks as f64 * tick_seconds).max(0.0))).await;
        while gate.as_ref().is_some_and(|gate| !gate.exists()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        biased;
        () = call.cancelled.cancelled() => {
            end(ledger, "cancelled", &text)?;
            return Ok(Outcome::Cancelled);
        }
        () = work => {}
    }
    end(ledger, "done", &text)?;
    Ok(text_result(&format!("slept {text}")))
}

fn progress(call: &Call<'_>, tick: u64, ticks: u64) {
    if let Some(token) = call.meta.get("progressToken") {
        let mut params = json!({"progressToken": token, "progress": tick, "total": ticks});
        if call.revision > "2024-11-05" {
            params["message"] = json!(format!("tick {tick}"));
        }
        let _ = call.notify.send(notification("notifications/progress", &params.to_string()));
    }
}

/// Fails by the starts already in the ledger, so that a restarted process goes on counting.
fn flaky(ledger: &Ledger, call: &Call<'_>) -> Result<Outcome, String> {
    let Flaky { name, failures } = parse(call)?;
    start(ledger, &name, call)?;
    let starts = ledger.starts(&name);
    if starts <= failures {
        end(ledger, "failed", &name)?;
        return Err(format!("{name} failed {starts} of {failures} times"));
    }
    end(ledger, "done", &name)?;
    Ok(text_result(&format!("{name} succeeded at run {starts}")))
}

fn crash(ledger: &Ledger, call: &Call<'_>) -> Result<Outcome, String> {
    let Text { text, once } = parse(call)?;
    let spared = once && ledger.starts(&text) > 0;
    start(ledger, &text, call)?;
    if !spared {
        processes::kill_myself();
    }
    end(ledger, "done", &text)?;
    Ok(text_result(&format!("survived {text}")))
}

fn lookup(ledger: &Ledger, call: &Call<'_>) -> Result<Outcome, String> {
    let Text { text, .. } = parse(call)?;
    let count = ledger.starts(&text);
    let found = json!({"found": count > 0, "count": count, "done": ledger.dones(&text)});
    Ok(structured_result(&found.to_string()))
}

/// What arrived: the exact `params` as the first text, the HTTP headers as the second.
fn received(call: &Call<'_>) -> Outcome {
    let content = json!([{"type": "text", "text": call.params}, {"type": "text", "text": call.headers}]);
    Outcome::Result(format!("{{\"content\":{content}}}"))
}

fn structured(n: &str) -> Outcome {
    structured_result(&format!("{{\"n\":{n},\"label\":\"n is given back as it came\"}}"))
}

fn structured_result(structured: &str) -> Outcome {
    let text = json!(structured);
    Outcome::Result(format!(
        "{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"structuredContent\":{structured}}}"
    ))
}

fn text_result(text: &str) -> Outcome {
    let text = json!(text);
    Outcome::Result(format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}"))
}

fn tool_error(problem: &str) -> Outcome {
    let text = json!(problem);
    Outcome::Result(format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"isError\":true}}"))
}

fn ledger(server: &Server) -> Result<&Ledger, String> {
    // A run that nobody counts would pass every test about counting.
    server.ledger.as_ref().ok_or_else(|| "kit was started without --ledger".to_owned())
}

fn start(ledger: &Ledger, text: &str, call: &Call<'_>) -> Result<(), String> {
    let member = |name: &str| match call.meta.get(name) {
        None => "-".to_owned(),
        Some(Value::String(value)) => value.clone(),
        Some(value) => value.to_string(),
    };
    let origin = Origin { key: member("durable-mcp/idempotencyKey"), token: member("durable-mcp/fencingToken") };
    ledger.start(text, &origin).map_err(|error| error.to_string())
}

fn end(ledger: &Ledger, how: &str, text: &str) -> Result<(), String> {
    ledger.end(how, text).map_err(|error| error.to_string())
}

fn parse<T: DeserializeOwned>(call: &Call<'_>) -> Result<T, String> {
    serde_json::from_str(call.arguments).map_err(|error| format!("bad arguments: {error}"))
}
