//! Asks upstreams what became of lost calls: for each `unknown` execution of a tool with a reconcile rule, the rule's
//! read tool is called, and its answer completes the execution or orders one more attempt. An answer that says neither
//! changes nothing; it is asked for again, later and not for ever.

mod rule;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;

pub use rule::{LostCall, Question, Rule, RuleError, Verdict};

use super::executor::{Executor, Job, Outcome};
use crate::engine::{Engine, Result};
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::model::json::quoted;
use crate::store::{LeaseRef, ListQuery, Payload, PayloadKind};

/// Executions remembered as looked at.
const SEEN_MAX: usize = 10_000;

/// How a reconciler works. Durations in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Questions about one lost attempt, at most.
    pub tries: u32,
    /// The pause before the second question; each further one is twice as long.
    pub wait_ms: i64,
    /// The longest pause.
    pub wait_max_ms: i64,
    /// So many answers in a row have to say that a call took no effect before it is run again: it may still be on its
    /// way, and an index may be behind.
    pub denials: u32,
    /// How long one question may take.
    pub ask_timeout_ms: u64,
    /// Questions at once.
    pub concurrency: usize,
    /// How often the store is asked for `unknown` executions that nobody announced.
    pub rescan_ms: i64,
    /// Executions per upstream and look, newest first.
    pub scan_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tries: 8,
            wait_ms: 1_000,
            wait_max_ms: 300_000,
            denials: 2,
            ask_timeout_ms: 30_000,
            concurrency: 4,
            rescan_ms: 60_000,
            scan_max: 1_000,
        }
    }
}

/// The rules in force, by upstream and tool.
pub type Rules = HashMap<(String, String), Rule>;

/// Asks about lost calls.
pub struct Reconciler {
    engine: Arc<Engine>,
    executors: HashMap<String, Arc<dyn Executor>>,
    rules: Rules,
    settings: Settings,
    questions: Semaphore,
    /// What is being looked at or was given up, by fencing token: another lost attempt is another matter.
    seen: Mutex<HashMap<ExecutionId, i64>>,
}

impl Reconciler {
    /// A reconciler for the upstreams that this process reaches.
    pub fn new(
        engine: Arc<Engine>,
        executors: HashMap<String, Arc<dyn Executor>>,
        rules: Rules,
        settings: Settings,
    ) -> Arc<Reconciler> {
        let questions = Semaphore::new(settings.concurrency.max(1));
        Arc::new(Reconciler { engine, executors, rules, settings, questions, seen: Mutex::default() })
    }

    /// Looks at what is `unknown` already, and from then on at what becomes so, until the engine stops.
    pub fn start(self: &Arc<Self>) {
        if self.rules.is_empty() {
            return;
        }
        let this = self.clone();
        self.engine.spawn_until_stopped(async move { this.watch().await });
    }

    async fn watch(self: Arc<Self>) {
        let mut unknown = self.engine.unknown();
        loop {
            if let Err(error) = self.scan().await {
                tracing::warn!(code = error.code(), "unknown executions could not be listed: {error}");
            }
            let rescan_at_ms = self.engine.clock().now_ms() + self.settings.rescan_ms;
            loop {
                let told = tokio::select! {
                    told = unknown.recv() => told,
                    () = self.engine.clock().sleep_until(rescan_at_ms) => break,
                };
                match told {
                    Ok(id) => match self.engine.store().heads(&[id]).await {
                        Ok(heads) => heads.into_iter().for_each(|head| self.look_at(head)),
                        Err(error) => {
                            tracing::warn!(execution = %id, code = error.code(), "a row could not be read: {error}");
                        }
                    },
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                }
            }
        }
    }

    async fn scan(self: &Arc<Self>) -> Result<()> {
        for upstream in self.executors.keys() {
            if !self.rules.keys().any(|(of, _)| of == upstream) {
                continue;
            }
            let query = ListQuery {
                states: vec![State::Unknown],
                upstream: Some(upstream.clone()),
                limit: self.settings.scan_max,
                ..ListQuery::default()
            };
            for head in self.engine.store().list(query).await? {
                self.look_at(head);
            }
        }
        Ok(())
    }

    fn look_at(self: &Arc<Self>, head: Head) {
        let ident = &head.ident;
        if head.state != State::Unknown || !self.executors.contains_key(&ident.upstream) {
            return;
        }
        let Some(rule) = self.rules.get(&(ident.upstream.clone(), ident.tool.clone())) else { return };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.get(&head.id()) == Some(&head.fencing_token) {
            return;
        }
        if seen.len() >= SEEN_MAX {
            // What is forgotten is asked about once more.
            seen.clear();
        }
        seen.insert(head.id(), head.fencing_token);
        drop(seen);
        let (this, rule) = (self.clone(), rule.clone());
        self.engine.spawn_until_stopped(async move { this.settle(&head, &rule).await });
    }

    /// Asks until there is an answer, the execution is no longer that lost attempt, or the tries are used up.
    async fn settle(&self, head: &Head, rule: &Rule) {
        let id = head.id();
        let question = match self.question(head, rule).await {
            Ok(question) => question,
            Err(reason) => {
                tracing::warn!(execution = %id, "an unknown execution cannot be reconciled: {reason}");
                return;
            }
        };
        let mut wait_ms = self.settings.wait_ms;
        let mut denials = 0;
        let mut last = "";
        for number in 1..=self.settings.tries.max(1) {
            if number > 1 {
                self.engine.clock().sleep_until(self.engine.clock().now_ms() + wait_ms).await;
                wait_ms = wait_ms.saturating_mul(2).min(self.settings.wait_max_ms);
            }
            if !self.still_lost(head).await {
                return;
            }
            let answer = self.ask(head, rule, &question).await;
            let recorded = match &answer {
                Ask::TookEffect(result) => self.record(head, Some(confirmed(rule, result, self.result_max()))).await,
                Ask::NoEffect => {
                    denials += 1;
                    if denials < self.settings.denials {
                        continue;
                    }
                    if head.attempt >= head.ident.policy.retry.max_attempts {
                        tracing::warn!(
                            execution = %id,
                            "the upstream says that the call took no effect, and no attempt is left; it stays unknown"
                        );
                        return;
                    }
                    self.record(head, None).await
                }
                Ask::Unclear(reason) => {
                    denials = 0;
                    last = *reason;
                    continue;
                }
            };
            if recorded {
                return;
            }
        }
        tracing::warn!(
            execution = %id, tool = rule.tool,
            "an unknown execution could not be reconciled and stays unknown: {last}"
        );
    }

    async fn question(&self, head: &Head, rule: &Rule) -> std::result::Result<Question, String> {
        if head.ident.policy.arguments_redacted {
            return Err("what is stored of its arguments is redacted".into());
        }
        let arguments = self.engine.store().payload(head.id(), PayloadKind::Arguments).await;
        let arguments = arguments.map_err(|error| error.to_string())?.ok_or("its arguments are no longer stored")?;
        let call = LostCall { arguments: &arguments, effect_key: head.ident.effect_key };
        rule.question(call).map_err(|error| error.to_string())
    }

    /// An answer speaks of the attempt it was asked about, and of no later one.
    async fn still_lost(&self, asked: &Head) -> bool {
        match self.engine.store().heads(&[asked.id()]).await {
            Ok(heads) => heads
                .first()
                .is_some_and(|head| head.state == State::Unknown && head.fencing_token == asked.fencing_token),
            // The write that follows is judged by the store.
            Err(_) => true,
        }
    }

    async fn ask(&self, head: &Head, rule: &Rule, question: &Question) -> Ask {
        let Some(executor) = self.executors.get(&head.ident.upstream) else {
            return Ask::Unclear("it is not run here");
        };
        let Ok(_permit) = self.questions.acquire().await else { return Ask::Unclear("the process stops") };
        // A call of its own: the lost call's key is its arguments' matter, and must not make the server take this for it.
        let id = self.engine.new_execution_id();
        let cancel = self.engine.stopping().child_token();
        let _stop_when_dropped = cancel.clone().drop_guard();
        let mut job = Job::of_nobody(id, rule.tool.clone(), question.arguments.as_str());
        job.cancel = cancel;
        let limit = Duration::from_millis(self.settings.ask_timeout_ms);
        match tokio::time::timeout(limit, executor.run(job, &|_| {})).await {
            Ok(Outcome::Result(result)) => match question.judge(&result) {
                Verdict::TookEffect => Ask::TookEffect(result),
                Verdict::NoEffect => Ask::NoEffect,
                Verdict::Unclear(reason) => Ask::Unclear(reason),
            },
            Ok(Outcome::RpcError(_)) => Ask::Unclear("it answered with a JSON-RPC error"),
            Ok(Outcome::InputRequired { .. }) => Ask::Unclear("it asks a client, and there is none"),
            Ok(Outcome::Failed(_)) => Ask::Unclear("it did not answer"),
            Err(_) => Ask::Unclear("it took too long to answer"),
        }
    }

    /// True when nothing is left to do.
    async fn record(&self, head: &Head, found: Option<Payload>) -> bool {
        let id = head.id();
        if !self.still_lost(head).await {
            return true;
        }
        let took_effect = found.is_some();
        let lost = LeaseRef { id, fencing_token: head.fencing_token };
        match self.engine.reconcile(lost, found).await {
            Ok(_) => {
                tracing::info!(execution = %id, took_effect, "an unknown execution was reconciled");
                true
            }
            Err(crate::engine::Error::NotPermitted { .. } | crate::engine::Error::NotFound(_)) => true,
            Err(error) => {
                tracing::warn!(execution = %id, code = error.code(), "a reconciliation could not be stored: {error}");
                false
            }
        }
    }

    fn result_max(&self) -> usize {
        self.engine.settings().result_bytes_max
    }
}

/// What one question brought.
enum Ask {
    TookEffect(Payload),
    NoEffect,
    Unclear(&'static str),
}

/// The recorded result: says plainly where it comes from, then what the read tool answered. It carries no structured
/// content, since that would be the read tool's and not this tool's.
fn confirmed(rule: &Rule, answer: &str, bytes_max: usize) -> Payload {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow, default)]
        content: Vec<&'a RawValue>,
        #[serde(borrow, default, rename = "structuredContent")]
        structured: Option<&'a RawValue>,
    }
    let text = format!(
        "Reconciled: the answer of this call was lost, and {} of the same server confirms that the call took effect. \
         The original result is not known; what {0} answered follows.",
        rule.tool
    );
    let block = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
    let mut blocks = vec![block(&text)];
    if let Ok(answer) = serde_json::from_str::<Answer<'_>>(answer) {
        match answer.structured {
            Some(structured) if answer.content.is_empty() => blocks.push(block(structured.get())),
            _ => blocks.extend(answer.content.iter().map(|item| item.get().to_owned())),
        }
    }
    let whole = |blocks: &[String]| -> Payload { format!(r#"{{"content":[{}]}}"#, blocks.join(",")).into() };
    let result = whole(&blocks);
    if result.len() > bytes_max { whole(&blocks[..1]) } else { result }
}
