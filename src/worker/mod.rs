//! Floor 3: leases executions and runs them. The loop, the executors, and what they publish to the catalog.
//! Knows no MCP client and writes no execution but through the engine's verbs.

pub mod command;
pub mod demo;
pub mod executor;
pub mod forwarder;
pub mod http_call;
pub mod http_client;
pub mod left_tasks;
pub mod legs;
pub mod publish;
pub mod reconcile;
pub mod remote_tools;
mod rounds;
pub mod rules;
pub mod template;
pub mod upstream;
pub mod upstream_executor;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

use crate::engine::asking::Pauses;
use crate::engine::running::Work;
use crate::engine::spans;
use crate::engine::waiters::Progress;
use crate::engine::{Engine, LocalWorker, Result};
use crate::model::decide::{Answer, Failure, FailureKind};
use crate::model::execution::ErrorInfo;
use crate::store::{CandidateQuery, Payload, crash};
use crate::telemetry::faults;
use executor::{Executor, Job, Outcome};
use rounds::{asks_on, rounds};

/// The wait before an outcome that could not be stored is offered again; it doubles up to the longest.
const STORE_RETRY: Duration = Duration::from_millis(200);
/// The longest wait between two offers.
const STORE_RETRY_MAX: Duration = Duration::from_secs(5);

/// The worker of this process.
pub struct Worker {
    engine: Arc<Engine>,
    executors: HashMap<String, Arc<dyn Executor>>,
    results_bytes_max: usize,
}

impl LocalWorker for Worker {
    fn run(&self, work: Work) {
        let engine = self.engine.clone();
        let executor = self.executors.get(&work.head.ident.upstream).cloned();
        let limit = self.results_bytes_max;
        let id = work.head.id();
        let (attempt_number, token) = (work.head.attempt, work.head.fencing_token);
        // Whatever is logged meanwhile names the execution.
        let logged = tracing::info_span!("attempt", execution = %id, attempt = attempt_number, token, trace = Empty);
        if let Some(caller) = work.meta.as_deref().and_then(|meta| spans::caller(Some(meta))) {
            logged.record("trace", caller.trace.to_string());
        }
        let attempt = async move { attempt(&engine, executor, work, limit).await };
        self.engine.spawn(faults::of_execution(id, attempt).instrument(logged));
    }
}

impl Worker {
    /// A worker that runs these upstreams. [`Worker::start`] begins to look for work.
    pub fn new(engine: Arc<Engine>, executors: HashMap<String, Arc<dyn Executor>>) -> Arc<Worker> {
        let results_bytes_max = engine.settings().result_bytes_max;
        let worker = Arc::new(Worker { engine, executors, results_bytes_max });
        worker.engine.attach_worker(worker.clone());
        worker
    }

    /// Looks for work that was not leased at submission: queued, retried, left by another process.
    pub fn start(self: &Arc<Self>) {
        let worker = self.clone();
        self.engine.spawn(async move {
            let draining = worker.engine.draining().clone();
            let poll = Duration::from_millis(worker.engine.settings().worker_poll_ms);
            loop {
                let wait = match worker.pull().await {
                    Ok(()) => poll,
                    Err(error) => {
                        tracing::warn!(code = error.code(), "a worker could not look for work: {error}");
                        // Freed slots announce the same work over and over while the store can not be used.
                        tokio::time::sleep(STORE_RETRY).await;
                        Duration::ZERO
                    }
                };
                tokio::select! {
                    () = draining.cancelled() => return,
                    () = worker.engine.slots().work_available() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
        });
    }

    /// Claims what there is for the free slots, until there is nothing or no slot.
    async fn pull(&self) -> Result<()> {
        let engine = &self.engine;
        loop {
            let mut upstreams = engine.slots().free_upstreams();
            upstreams.retain(|upstream| self.executors.contains_key(upstream));
            if upstreams.is_empty() {
                return Ok(());
            }
            let query = CandidateQuery {
                upstreams,
                process: engine.process(),
                dead: Vec::new(),
                now_ms: engine.clock().now_ms(),
                limit: engine.settings().slots,
            };
            let candidates = engine.store().candidates(query).await?;
            let mut claims = Vec::new();
            for candidate in &candidates {
                if let Some(holder) = engine.slots().try_take(&candidate.ident.upstream) {
                    claims.push(engine.claim(candidate, holder));
                }
            }
            // All or none of the errors matter: the claims that worked are at work already.
            let claimed: Vec<bool> = futures_util::future::join_all(claims).await.into_iter().collect::<Result<_>>()?;
            if !claimed.contains(&true) {
                return Ok(());
            }
        }
    }
}

/// One attempt, from the lease to its record.
async fn attempt(engine: &Arc<Engine>, executor: Option<Arc<dyn Executor>>, mut work: Work, result_bytes_max: usize) {
    let lease = work.lease();
    let outcome = match executor {
        Some(executor) if !engine.halting().is_cancelled() => {
            crash::point("before_call");
            let outcome = rounds(engine, executor.as_ref(), &work).await;
            crash::point("after_call");
            // The tool runs no more; what is left is a write.
            work.slot = None;
            let Some(outcome) = outcome else { return engine.abandon(lease) };
            Some(outcome)
        }
        // Leased for an upstream that this process does not run, or too late: it provably never started.
        _ => None,
    };
    // What happened happened: it is offered until the store takes it, however late.
    let mut wait = STORE_RETRY;
    loop {
        match record(engine, &work, outcome.as_ref(), result_bytes_max).await {
            Ok(answer) => {
                tracing::debug!(execution = %lease.id, token = lease.fencing_token, ?answer, "an attempt was recorded");
                return;
            }
            Err(error) => {
                tracing::warn!(execution = %lease.id, code = error.code(), "an outcome could not be stored: {error}");
            }
        }
        tokio::select! {
            () = engine.stopping().cancelled() => return,
            () = tokio::time::sleep(wait) => wait = (wait * 2).min(STORE_RETRY_MAX),
        }
    }
}

/// Records how an attempt ended; without an outcome it never started.
async fn record(engine: &Engine, work: &Work, outcome: Option<&Outcome>, result_bytes_max: usize) -> Result<Answer> {
    let (lease, operation) = (work.lease(), work.operation);
    match outcome {
        // What is rare gets a box of its own: this future is part of every call.
        None => Box::pin(engine.release(lease, operation)).await,
        Some(Outcome::Result(result)) if result.len() > result_bytes_max => {
            Box::pin(engine.complete(lease, operation, too_large(result.len(), result_bytes_max), true)).await
        }
        Some(Outcome::Result(result)) => engine.complete(lease, operation, result.clone(), is_error(result)).await,
        Some(Outcome::RpcError(error)) => {
            Box::pin(engine.fail(lease, operation, rpc_failure(error), Some(error.clone()))).await
        }
        Some(Outcome::Failed(failure)) => Box::pin(engine.fail(lease, operation, failure.clone(), None)).await,
        Some(Outcome::InputRequired { .. }) => Box::pin(engine.fail(lease, operation, asks_on(), None)).await,
    }
}

/// Runs the executor under the call's time limits, which stand still while it waits for the client; `None` when the
/// work was told to stop and its end is decided.
async fn run(engine: &Arc<Engine>, executor: &dyn Executor, work: &Work, mut job: Job) -> Option<Outcome> {
    let id = work.head.id();
    let timeouts = work.head.ident.policy.timeouts;
    let total_left_ms = work.head.total_deadline_ms().saturating_sub(engine.clock().now_ms()).max(0);
    let started = Instant::now();
    let attempt_end = started + millis(timeouts.attempt_ms);
    let total_end = started + millis(total_left_ms);
    let last_sign = Mutex::new(started);
    let last_sign_at = || *last_sign.lock().unwrap_or_else(PoisonError::into_inner);
    let stop_grace = Duration::from_millis(engine.settings().stop_grace_ms);

    let pauses = Arc::new(Pauses::default());
    let mut paused = pauses.follow();
    job.asks = engine.asks(work, job.client.clone(), pauses.clone());
    let stop = job.cancel.clone();
    let report = |progress: Progress| {
        *last_sign.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        engine.progress(id, progress);
    };
    // A panic in one call must not keep its lease and its slot.
    let running = AssertUnwindSafe(executor.run(job, &report)).catch_unwind();
    let running = running.map(|outcome| {
        outcome.unwrap_or_else(|_| {
            let words = format!("the code that ran the tool panicked: internal fault {}", faults::caught());
            Outcome::lost("executor_panicked", words)
        })
    });
    tokio::pin!(running);
    let (code, message) = loop {
        let pause = *paused.borrow_and_update();
        let (end, code, message) = [
            Some((attempt_end + pause.total(), "attempt_timeout", "the attempt's absolute time ran out")),
            Some((total_end + pause.total(), "total_timeout", "the total time for the call ran out")),
            timeouts.idle_ms.map(|idle_ms| {
                (last_sign_at() + millis(idle_ms), "idle_timeout", "the tool reported no progress for too long")
            }),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|(end, ..)| *end)?;
        tokio::select! {
            outcome = &mut running => return (!work.cancel.is_cancelled() || is_result(&outcome)).then_some(outcome),
            () = work.cancel.cancelled() => {
                // A result that comes while the tool is being told is evidence all the same.
                return tokio::time::timeout(stop_grace, &mut running).await.ok().filter(is_result);
            }
            () = engine.halting().cancelled() => break ("worker_stopped", "the server stopped while the tool ran"),
            // A question and its answer are signs of life. The sender lives as long as the job does.
            Ok(()) = paused.changed() => *last_sign.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now(),
            () = tokio::time::sleep_until(end), if !pause.is_on() => {
                let idle_end = timeouts.idle_ms.map(|idle_ms| last_sign_at() + millis(idle_ms));
                if code != "idle_timeout" || idle_end.is_some_and(|end| end <= Instant::now()) {
                    break (code, message);
                }
            }
        }
    };
    stop.cancel();
    match tokio::time::timeout(stop_grace, &mut running).await {
        Ok(outcome) if is_result(&outcome) || never_started(&outcome) => Some(outcome),
        _ => Some(Outcome::lost(code, message)),
    }
}

/// After a tool was told to stop only its result is evidence: servers answer what was cancelled with an error.
fn is_result(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Result(_))
}

fn never_started(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(Failure { kind: FailureKind::NotStarted, .. }))
}

fn job(work: &Work, now_ms: i64) -> Job {
    let head = &work.head;
    Job {
        attempt: head.attempt,
        fencing_token: head.fencing_token,
        effect_key: head.ident.effect_key,
        meta: work.meta.clone(),
        may_run_again: head.may_run_again(true, now_ms),
        cancel: work.cancel.child_token(),
        namespace: head.ident.namespace.clone(),
        principal: head.ident.principal.clone(),
        ..Job::of_nobody(head.id(), head.ident.tool.clone(), work.arguments.clone())
    }
}

fn millis(ms: i64) -> Duration {
    // Far enough to mean never, near enough for the timer.
    Duration::from_millis(ms.clamp(0, 10 * 365 * 86_400_000) as u64)
}

fn is_error(result: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Peek {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    serde_json::from_str::<Peek>(result).is_ok_and(|peek| peek.is_error)
}

fn rpc_failure(error: &str) -> Failure {
    #[derive(serde::Deserialize)]
    struct Peek {
        code: serde_json::Number,
    }
    let code =
        serde_json::from_str::<Peek>(error).map_or_else(|_| "unreadable".to_owned(), |peek| peek.code.to_string());
    let error = ErrorInfo { code: "rpc_error".into(), message: format!("the upstream answered with error {code}") };
    Failure { kind: FailureKind::RpcError, error, retry_after_ms: None }
}

fn too_large(bytes: usize, limit: usize) -> Payload {
    let text = format!(
        "The tool ran and returned a result of {bytes} bytes, more than the limit of {limit} bytes. \
         The result was not kept. Ask for less, or raise limits.result_bytes."
    );
    serde_json::json!({ "content": [{ "type": "text", "text": text }], "isError": true }).to_string().into()
}
