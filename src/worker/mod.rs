//! Floor 3: leases executions and runs them. The loop, the executors, and what they publish to the catalog.
//! Knows no MCP client and writes no execution but through the engine's verbs.

pub mod command;
pub mod demo;
pub mod executor;
pub mod publish;
pub mod reconcile;
pub mod rules;
mod splice;
pub mod upstream;
pub mod upstream_executor;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::running::Work;
use crate::engine::waiters::Progress;
use crate::engine::{Engine, LocalWorker, Result};
use crate::store::{CandidateQuery, Payload, crash};
use executor::{Executor, Job, Outcome};

/// How long an executor may tidy up after it was told to stop.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// The wait before a result that could not be stored is tried again.
const STORE_RETRY: Duration = Duration::from_millis(200);

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
        self.engine.spawn(async move {
            match executor {
                Some(executor) => attempt(&engine, executor, work, limit).await,
                // Leased for an upstream that this process does not run: it provably never started.
                None => drop(engine.release(work.lease()).await),
            }
            engine.slot_freed();
        });
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
            let stop = worker.engine.stopping().clone();
            let poll = millis(worker.engine.settings().poll_ms.max(1));
            loop {
                if let Err(error) = worker.pull().await {
                    tracing::warn!(code = error.code(), "a worker could not look for work: {error}");
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = worker.engine.work_available() => {}
                    () = tokio::time::sleep(poll) => {}
                }
            }
        });
    }

    /// Claims what there is for the free slots, until there is nothing or no slot.
    async fn pull(&self) -> Result<()> {
        let engine = &self.engine;
        loop {
            let upstreams = engine.slots().free_upstreams();
            if upstreams.is_empty() || engine.stopping().is_cancelled() {
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
                if let Some(slot) = engine.slots().try_take(&candidate.ident.upstream) {
                    claims.push(engine.claim(candidate, slot));
                }
            }
            let mut claimed = false;
            for claim in futures_util::future::join_all(claims).await {
                claimed |= claim?;
            }
            if !claimed {
                return Ok(());
            }
        }
    }
}

/// One attempt, from the lease to its record.
async fn attempt(engine: &Arc<Engine>, executor: Arc<dyn Executor>, work: Work, result_bytes_max: usize) {
    let lease = work.lease();
    crash::point("before_call");
    let outcome = run(engine, executor.as_ref(), &work).await;
    crash::point("after_call");
    let Some(outcome) = outcome else { return engine.abandon(lease) };
    // What happened happened: a result is offered until the store takes it, however late.
    loop {
        let recorded = match &outcome {
            Outcome::Result(result) if result.len() > result_bytes_max => {
                let notice = too_large(result.len(), result_bytes_max);
                engine.complete(lease, notice, true).await
            }
            Outcome::Result(result) => engine.complete(lease, result.clone(), is_error(result)).await,
            Outcome::RpcError(error) => engine.fail(lease, rpc_failure(error), Some(error.clone())).await,
            Outcome::Failed(failure) => engine.fail(lease, failure.clone(), None).await,
        };
        match recorded {
            Ok(answer) => {
                tracing::debug!(execution = %lease.id, token = lease.fencing_token, ?answer, "an attempt was recorded");
                return;
            }
            Err(error) => {
                tracing::warn!(execution = %lease.id, code = error.code(), "an outcome could not be stored: {error}");
                tokio::time::sleep(STORE_RETRY).await;
            }
        }
    }
}

/// Runs the executor under the call's time limits; `None` when the work was told to stop and its end is decided.
async fn run(engine: &Arc<Engine>, executor: &dyn Executor, work: &Work) -> Option<Outcome> {
    let id = work.head.id();
    let timeouts = work.head.ident.policy.timeouts;
    let total_left_ms = work.head.total_deadline_ms().saturating_sub(engine.clock().now_ms()).max(0);
    let started = Instant::now();
    let attempt_end = started + millis(timeouts.attempt_ms);
    let total_end = started + millis(total_left_ms);
    let last_sign = Mutex::new(started);

    let job = job(work);
    let stop = job.cancel.clone();
    let report = |progress: Progress| {
        *last_sign.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        engine.progress(id, progress);
    };
    let running = executor.run(job, &report);
    tokio::pin!(running);
    let out_of_time = loop {
        let idle_end =
            timeouts.idle_ms.map(|idle_ms| *last_sign.lock().unwrap_or_else(PoisonError::into_inner) + millis(idle_ms));
        let (end, code, message) = [
            Some((attempt_end, "attempt_timeout", "the attempt's absolute time ran out")),
            Some((total_end, "total_timeout", "the total time for the call ran out")),
            idle_end.map(|end| (end, "idle_timeout", "the tool reported no progress for too long")),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|(end, ..)| *end)?;
        tokio::select! {
            outcome = &mut running => return (!work.cancel.is_cancelled() || is_answer(&outcome)).then_some(outcome),
            () = tokio::time::sleep_until(end) => {
                let sign = *last_sign.lock().unwrap_or_else(PoisonError::into_inner);
                if code != "idle_timeout" || sign + millis(timeouts.idle_ms.unwrap_or_default()) <= Instant::now() {
                    break (code, message);
                }
            }
            () = work.cancel.cancelled() => {
                // A result that comes while the tool is being told is evidence all the same.
                let late = tokio::time::timeout(STOP_GRACE, &mut running).await.ok();
                return late.filter(is_answer);
            }
        }
    };
    stop.cancel();
    match tokio::time::timeout(STOP_GRACE, &mut running).await {
        Ok(outcome) if is_answer(&outcome) => Some(outcome),
        _ => Some(Outcome::lost(out_of_time.0, out_of_time.1)),
    }
}

fn is_answer(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Result(_) | Outcome::RpcError(_))
}

fn job(work: &Work) -> Job {
    let head = &work.head;
    Job {
        id: head.id(),
        attempt: head.attempt,
        fencing_token: head.fencing_token,
        effect_key: head.ident.effect_key,
        tool: head.ident.tool.clone(),
        arguments: work.arguments.clone(),
        meta: work.meta.clone(),
        cancel: work.cancel.child_token(),
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

fn rpc_failure(error: &str) -> crate::model::decide::Failure {
    use crate::model::decide::{Failure, FailureKind};
    use crate::model::execution::ErrorInfo;

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
