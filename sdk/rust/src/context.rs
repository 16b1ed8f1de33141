//! What a handler sees of its call: ids, progress, durable steps, checkpoints, cancellation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::conversation::ToWire;
use crate::failure::{Cancelled, Failure};
use crate::held::Held;

/// The context of one call. Clones are the same.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    held: Arc<Held>,
    wire: mpsc::UnboundedSender<ToWire>,
    /// By name: one lock each, so that a step that runs is waited for and not run twice.
    steps: Mutex<HashMap<String, Slot>>,
    checkpoint: Mutex<Option<Box<RawValue>>>,
}

type Slot = Arc<tokio::sync::Mutex<Option<Box<RawValue>>>>;

impl Context {
    pub(crate) fn new(held: Arc<Held>, wire: mpsc::UnboundedSender<ToWire>) -> Context {
        let stored = held.job.steps.iter().flatten();
        let steps = stored.map(|(name, result)| (name.clone(), Slot::new(Some(result.clone()).into()))).collect();
        let checkpoint = held.job.checkpoint.clone();
        Context(Arc::new(Inner { held, wire, steps: Mutex::new(steps), checkpoint: Mutex::new(checkpoint) }))
    }

    /// The id of the execution; also its MCP task id.
    pub fn execution_id(&self) -> &str {
        &self.0.held.job.execution_id
    }

    /// Which try this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.held.job.attempt
    }

    /// How many tries there will be at most.
    pub fn max_attempts(&self) -> Option<u32> {
        self.0.held.job.max_attempts
    }

    /// The same for every attempt and retry: the idempotency key for what the tool writes elsewhere.
    pub fn effect_key(&self) -> &str {
        &self.0.held.job.effect_key
    }

    /// Grows with every lease: lets what is written to tell a replaced writer from its successor.
    pub fn fencing(&self) -> u64 {
        self.0.held.job.fencing_token
    }

    pub fn tool(&self) -> &str {
        &self.0.held.job.tool
    }

    pub fn namespace(&self) -> Option<&str> {
        self.0.held.job.namespace.as_deref()
    }

    /// Who called.
    pub fn principal(&self) -> Option<&str> {
        self.0.held.job.principal.as_deref()
    }

    /// The `_meta` of the call, as JSON text.
    pub fn meta(&self) -> Option<&str> {
        self.0.held.job.meta.as_deref().map(RawValue::get)
    }

    /// Tells the caller how far the work is, as MCP progress. The newest one wins when many come at once.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let mut news = json!({"progress": done});
        if let Some(total) = total {
            news["total"] = total.into();
        }
        if let Some(message) = message {
            news["message"] = message.into();
        }
        lock(&self.0.held.news).progress = Some(news.to_string());
        let _ = self.0.wire.send(ToWire::News);
    }

    /// Stores how far the work is, for the next attempt. It goes with the next heartbeat, which is sent at once when the
    /// last is a moment ago; a crash before that loses it. What must not be lost is a step.
    ///
    /// Errors: the value is not JSON.
    pub fn checkpoint(&self, value: &impl Serialize) -> Result<(), Failure> {
        let value = serde_json::value::to_raw_value(value)?;
        lock(&self.0.held.news).checkpoint = Some(value.get().to_owned());
        *lock(&self.0.checkpoint) = Some(value);
        let _ = self.0.wire.send(ToWire::News);
        Ok(())
    }

    /// What `checkpoint` stored last, in this attempt or an earlier one. Errors: it is not a `T`.
    pub fn last_checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let checkpoint = lock(&self.0.checkpoint);
        let text = checkpoint.as_deref().map(RawValue::get);
        Ok(text.map(serde_json::from_str).transpose()?)
    }

    /// Runs `run` once and stores what it returns under `name`; a later attempt gets that instead of running it.
    ///
    /// What comes back is what JSON makes of the value, the first time too. A step that dies before its result is stored
    /// runs again: pass [`effect_key`](Context::effect_key) on where that would do harm.
    ///
    /// Errors: those of `run`; [`Cancelled`]; the value is not JSON or not a `T`.
    pub async fn step<T, F, Fut>(&self, name: &str, run: F) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, Failure>>,
    {
        let slot = lock(&self.0.steps).entry(name.to_owned()).or_default().clone();
        let mut stored = slot.lock().await;
        let result = match &mut *stored {
            Some(result) => result,
            none => {
                if self.is_cancelled() {
                    return Err(Cancelled.into());
                }
                let value = serde_json::value::to_raw_value(&run().await?)?;
                let (reply, answer) = oneshot::channel();
                let step = ToWire::Step { held: self.0.held.clone(), name: name.to_owned(), result: value, reply };
                self.0.wire.send(step).map_err(|_| Cancelled)?;
                none.insert(answer.await.map_err(|_| Cancelled)??)
            }
        };
        Ok(serde_json::from_str(result.get())?)
    }

    /// True when nobody wants a result any more: the call was cancelled, or the lease is another worker's.
    pub fn is_cancelled(&self) -> bool {
        self.0.held.dropped.is_cancelled()
    }

    /// Waits until nobody wants a result any more; for `tokio::select!`.
    pub async fn cancelled(&self) {
        self.0.held.dropped.cancelled().await;
    }

    /// For what takes a token.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.0.held.dropped.clone()
    }
}

/// Nothing that is done under these locks can panic half-way.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
