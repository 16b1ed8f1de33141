//! One tool call as a leg sees it, what can come of it, and the watch over it: cancellation, time-outs, progress.
//! Decides nothing about retries; it only says what is known.

use std::future::Future;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// A call to one tool of an upstream.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The tool's name as the upstream knows it.
    pub tool: String,
    /// Passed byte for byte (line breaks between tokens excepted).
    pub arguments: Option<Box<RawValue>>,
    /// Members of `_meta`; the ones that the protocol reserves for the sender (`progressToken`, version, client) are ours.
    pub meta: Vec<(String, Box<RawValue>)>,
    /// What the caller can do, told to servers of revision 2026-07-28; `{}` without it.
    pub client_capabilities: Option<Box<RawValue>>,
    /// The longest the attempt may take, waiting for the server included.
    pub attempt_timeout: Option<Duration>,
    /// The longest the server may go without an answer or progress.
    pub idle_timeout: Option<Duration>,
}

/// A progress notification of the running tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// What the upstream answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The whole `result` object, byte for byte.
    Result(Box<RawValue>),
    /// The whole JSON-RPC `error` object, byte for byte; or one of ours (codes -31413, -31501) where the tool ran
    /// but its result cannot be passed on.
    Error(Box<RawValue>),
}

/// Which time-out ended the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    Attempt,
    Idle,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The call provably never reached the tool; it may be tried again under either delivery.
    #[error("the call did not reach the tool: {reason}")]
    NotStarted { reason: String },
    /// The call may have run; nobody knows how it ended.
    #[error("the call was lost: {reason}")]
    Lost { reason: String },
    /// We cancelled it. `dispatched`: it had been handed to the server, so it may have had its effect.
    #[error("the call was cancelled")]
    Cancelled { dispatched: bool },
    /// It took too long after it had been handed to the server; the server was told to stop.
    #[error("the call ran into its {kind:?} time-out")]
    TimedOut { kind: TimeoutKind },
}

impl CallError {
    /// Returns the stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotStarted { .. } => "not_started",
            Self::Lost { .. } => "lost",
            Self::Cancelled { .. } => "cancelled",
            Self::TimedOut { kind: TimeoutKind::Attempt } => "attempt_timed_out",
            Self::TimedOut { kind: TimeoutKind::Idle } => "idle_timed_out",
        }
    }

    pub(super) fn not_started(reason: impl Into<String>) -> Self {
        Self::NotStarted { reason: reason.into() }
    }

    pub(super) fn lost(reason: impl Into<String>) -> Self {
        Self::Lost { reason: reason.into() }
    }
}

/// Where a leg drops progress of one exchange; a full sink drops, since progress may be lost and answers may not.
pub(super) type ProgressSink = mpsc::Sender<Progress>;

/// How many progress notifications may wait for a slow receiver.
pub(super) const PROGRESS_QUEUE: usize = 64;

/// How long an answer that is on its way is still taken after a cancellation: it is evidence of what happened.
const LAST_WORD: Duration = Duration::from_millis(50);

/// How a watched exchange ended.
pub(super) enum Watched {
    Answered(Result<Answer, CallError>),
    Cancelled,
    TimedOut(TimeoutKind),
}

/// What bounds a watched exchange.
pub(super) struct Bounds {
    pub cancel: CancellationToken,
    /// The moment at which the attempt ends.
    pub deadline: Option<Instant>,
    pub idle_timeout: Option<Duration>,
}

/// Runs `exchange` until it answers, is cancelled or takes too long; hands each progress to `on_progress`, and never
/// one after the answer.
pub(super) async fn watch(
    exchange: impl Future<Output = Result<Answer, CallError>>,
    mut progress: mpsc::Receiver<Progress>,
    bounds: Bounds,
    on_progress: impl Fn(Progress),
) -> Watched {
    tokio::pin!(exchange);
    let mut idle_until = bounds.idle_timeout.map(|idle| Instant::now() + idle);
    let mut progress_open = true;
    loop {
        tokio::select! {
            biased;
            next = progress.recv(), if progress_open => match next {
                Some(next) => {
                    idle_until = bounds.idle_timeout.map(|idle| Instant::now() + idle);
                    on_progress(next);
                }
                None => progress_open = false,
            },
            answer = &mut exchange => {
                while let Ok(next) = progress.try_recv() {
                    on_progress(next);
                }
                return Watched::Answered(answer);
            }
            () = bounds.cancel.cancelled() => {
                // After a stop of the whole process the answer may stand in the pipe already.
                return match timeout(LAST_WORD, exchange).await {
                    Ok(answer @ Ok(_)) => Watched::Answered(answer),
                    Ok(Err(_)) | Err(_) => Watched::Cancelled,
                };
            }
            () = until(bounds.deadline) => return Watched::TimedOut(TimeoutKind::Attempt),
            () = until(idle_until) => return Watched::TimedOut(TimeoutKind::Idle),
        }
    }
}

/// Ends at `moment`, or never.
pub(super) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
