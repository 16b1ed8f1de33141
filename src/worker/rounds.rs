//! An attempt over its rounds of questions: the tool asks and ends (MCP `input_required`), and is run again with the
//! answers. Asks nobody itself; what a round means for the execution is the engine's.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::SpanKind;

use super::executor::{Continuation, Executor, Job, Outcome};
use super::{STORE_RETRY, STORE_RETRY_MAX, job, run};
use crate::engine::asking::{Question, required_capabilities};
use crate::engine::client::ClientContext;
use crate::engine::inputs::{Answered, Parked, responses_of_meta};
use crate::engine::running::Work;
use crate::engine::spans;
use crate::engine::{Engine, Error};
use crate::model::decide::{Failure, FailureKind};
use crate::model::execution::ErrorInfo;
use crate::model::json::quoted;
use crate::telemetry::Span;

/// Rounds that an attempt may have under one lease: those that ask nothing, or what an earlier attempt was answered.
const ROUNDS_AT_ONCE: u32 = 32;
/// The wait before a tool that asks nothing is run again; it doubles with each round.
const ASKS_NOTHING_WAIT: Duration = Duration::from_millis(50);
/// The longest of these waits.
const ASKS_NOTHING_WAIT_MAX: Duration = Duration::from_secs(2);

/// Runs the tool until it has an outcome, over the rounds whose answers are there; `None` when the lease is gone: the
/// execution waits for its client, or the work was told to stop and its end is decided.
pub(super) async fn rounds(engine: &Arc<Engine>, executor: &dyn Executor, work: &Work) -> Option<Outcome> {
    let client = Arc::new(ClientContext::of_meta(work.meta.as_deref()));
    let mut patience = STORE_RETRY;
    let answered = loop {
        match engine.answered_round(&work.head).await {
            Ok(answered) => break answered,
            Err(error) => Box::pin(wait_for_store(engine, work, (&error, &mut patience))).await?,
        }
    };
    let mut continuation = match answered {
        Some(answered) => match continued(answered) {
            Ok(continuation) => Some(continuation),
            Err(failure) => return Some(Outcome::Failed(failure)),
        },
        None => responses_of_meta(work.meta.as_deref()).map(|responses| Continuation { state: None, responses }),
    };
    let mut wait = ASKS_NOTHING_WAIT;
    let mut round = 1;
    loop {
        let mut job = job(work, engine.clock().now_ms());
        job.client = client.clone();
        job.continuation = continuation.take();
        let span = call_span(engine, work, &mut job);
        let outcome = run(engine, executor, work, job).await;
        end_call(span, outcome.as_ref());
        let outcome = outcome?;
        let Outcome::InputRequired { questions, state } = outcome else { return Some(outcome) };
        if round == ROUNDS_AT_ONCE {
            return Some(Outcome::InputRequired { questions, state });
        }
        round += 1;
        if questions.is_empty() {
            tokio::select! {
                () = work.cancel.cancelled() => return None,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(ASKS_NOTHING_WAIT_MAX),
            }
            continuation = Some(Continuation { state, responses: Vec::new() });
            continue;
        }
        let asked: (&[Question], _) = (&questions, state.as_ref());
        // What is rare gets a box of its own: this future is part of every call.
        let parked = loop {
            match Box::pin(engine.park(work, &client, asked)).await {
                Ok(parked) => break parked,
                Err(error) => Box::pin(wait_for_store(engine, work, (&error, &mut patience))).await?,
            }
        };
        match parked {
            Parked::Waiting | Parked::Refused => return None,
            Parked::NotCapable(needs) => return Some(not_capable(needs)),
            Parked::Known(answered) => match continued(answered) {
                Ok(known) => continuation = Some(known),
                Err(failure) => return Some(Outcome::Failed(failure)),
            },
        }
    }
}

/// The span of one call of the tool, which is given to the tool as its trace context.
fn call_span(engine: &Engine, work: &Work, job: &mut Job) -> Span {
    let meta = job.meta.as_deref();
    let Some(place) = engine.place_of_lease(work.head.id(), work.head.fencing_token, meta) else {
        return Span::default();
    };
    let span = engine.settings().traces.span("call", SpanKind::Client, place);
    span.set("durable_mcp.execution", job.id.to_string());
    span.set("durable_mcp.attempt", i64::from(job.attempt));
    span.set("durable_mcp.upstream", work.head.ident.upstream.clone());
    span.set("gen_ai.tool.name", job.tool.clone());
    if let Some(place) = span.place() {
        job.meta = Some(spans::meta_at(meta, place));
    }
    span
}

fn end_call(span: Span, outcome: Option<&Outcome>) {
    let told = match outcome {
        Some(Outcome::Result(_)) => "result",
        Some(Outcome::RpcError(_)) => "rpc_error",
        Some(Outcome::InputRequired { .. }) => "input_required",
        Some(Outcome::Failed(failure)) => {
            span.fail(&failure.error.code);
            "failed"
        }
        None => "stopped",
    };
    span.set("durable_mcp.outcome", told);
}

/// Waits before something is offered to the store again; `None` when the engine stops.
async fn wait_for_store(engine: &Engine, work: &Work, (error, wait): (&Error, &mut Duration)) -> Option<()> {
    let id = work.head.id();
    tracing::warn!(execution = %id, code = error.code(), "a round of questions could not be stored or read: {error}");
    tokio::select! {
        () = engine.stopping().cancelled() => None,
        () = tokio::time::sleep(*wait) => {
            *wait = (*wait * 2).min(STORE_RETRY_MAX);
            Some(())
        }
    }
}

/// What the tool gets of a round that was answered.
fn continued(answered: Answered) -> std::result::Result<Continuation, Failure> {
    match answered.lacks {
        None => Ok(Continuation { state: answered.state, responses: answered.responses }),
        Some((method, refused)) => Err(unanswered(&method, refused)),
    }
}

/// What becomes of a call whose question has no answer that its tool could be given.
pub(super) fn unanswered(method: &str, refused: bool) -> Failure {
    match refused {
        true => reported("input_refused", format!("the client answered the tool's {method} with an error")),
        false => reported("input_timeout", format!("nobody answered the tool's {method} in time")),
    }
}

/// The error of a tool that asks what the client cannot answer (2026-07-28: -32021).
pub(super) fn not_capable(needs: &str) -> Outcome {
    let required = required_capabilities(needs);
    let message = quoted(&format!("the tool asks the client for {needs}, which it does not support"));
    let error = format!(r#"{{"code":-32021,"message":{message},"data":{{"requiredCapabilities":{required}}}}}"#);
    Outcome::RpcError(error.into())
}

pub(super) fn asks_on() -> Failure {
    reported("input_required", "the tool went on asking, and was never content")
}

/// A failure that another run would not mend.
fn reported(code: &str, message: impl Into<String>) -> Failure {
    let error = ErrorInfo { code: code.into(), message: message.into() };
    Failure { kind: FailureKind::Reported { retryable: false }, error, retry_after_ms: None }
}
