//! Tests of the legs: the stdio engine against streams in memory, real children of `/bin/sh`, HTTP servers in this
//! process. No test sleeps to wait for something, except for the end of
//! processes that are not its children; time-outs are bounds that a sound leg never reaches.

mod asides;
mod child;
mod conversation;
mod frames;
mod guard;
mod http;
mod http_asides;
pub(in crate::worker) mod http_server;
mod http_stream;
mod message;
mod sse;

use std::future::Future;
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{Answer, Call, CallError, LegLimits, Status, StdioSettings, Transport, Upstream, UpstreamSettings};

/// Fails a test that hangs instead of letting it hang.
pub(in crate::worker) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("takes much too long")
}

/// A server that is a program without a guard: a test has no binary of ours to guard it.
pub(in crate::worker) fn unguarded(name: &str, program: &str, args: &[&str]) -> UpstreamSettings {
    let mut stdio = StdioSettings::new(program, args.iter().map(Into::into).collect());
    stdio.guard = Vec::new();
    UpstreamSettings::new(name, Transport::Stdio(stdio))
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn call(tool: &str, arguments: &str) -> Call {
    Call { tool: tool.to_owned(), arguments: Some(raw(arguments)), ..Call::default() }
}

fn limits() -> LegLimits {
    LegLimits { list_changed_debounce: Duration::from_millis(1), ..LegLimits::default() }
}

async fn run(upstream: &Upstream, call: Call) -> Result<Answer, CallError> {
    soon(upstream.call(call, CancellationToken::new(), |_| {})).await
}

fn result(answer: Result<Answer, CallError>) -> String {
    match answer {
        Ok(Answer::Result(result)) => result.to_string(),
        other => panic!("no result: {other:?}"),
    }
}

fn error_code(answer: Result<Answer, CallError>) -> i64 {
    match answer {
        Ok(Answer::Error(error)) => serde_json::from_str::<Value>(error.get()).unwrap()["code"].as_i64().unwrap(),
        other => panic!("no error object: {other:?}"),
    }
}

fn not_started(answer: Result<Answer, CallError>) -> String {
    match answer {
        Err(CallError::NotStarted { reason }) => reason,
        other => panic!("not 'not started': {other:?}"),
    }
}

fn lost(answer: Result<Answer, CallError>) -> String {
    match answer {
        Err(CallError::Lost { reason }) => reason,
        other => panic!("not 'lost': {other:?}"),
    }
}

async fn status(upstream: &Upstream, wanted: impl FnMut(&Status) -> bool) -> Status {
    soon(upstream.status().wait_for(wanted)).await.unwrap().clone()
}

async fn ready(upstream: &Upstream) -> Status {
    status(upstream, |status| matches!(status, Status::Ready(_))).await
}

async fn down(upstream: &Upstream) -> String {
    match status(upstream, |status| matches!(status, Status::Down { .. } | Status::Failed { .. })).await {
        Status::Down { reason, .. } | Status::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

fn tool_names(upstream: &Upstream) -> Vec<String> {
    upstream.tools().borrow().tools.iter().map(|tool| tool.name.clone()).collect()
}
