//! One tool call as a leg sees it, what can come of it, and the watch over it: cancellation, time-outs, progress.
//! Decides nothing about retries; it only says what is known.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::asides::{Aside, Caller};
use super::keeper::Keeper;
use super::message;
use crate::model::payload::Payload;
use crate::model::revision::Revision;

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
    /// Members of `params` beside these, byte for byte: answers to earlier questions of the server.
    pub members: Vec<(String, Box<RawValue>)>,
    /// The least level of log messages that the caller asked for.
    pub log_level: Option<String>,
    /// The caller speaks revision 2026-07-28.
    pub prefers_modern: bool,
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
    Result(Payload),
    /// The whole JSON-RPC `error` object, byte for byte; or one of ours (codes -31413, -31501) where the tool ran
    /// but its result cannot be passed on.
    Error(Box<RawValue>),
}

/// An answer, the revision that it came in, and who keeps what it tells of.
#[derive(Clone, Debug)]
pub struct Reply {
    pub answer: Answer,
    pub revision: Revision,
    pub keeper: Keeper,
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

/// How long an answer that is on its way is still taken after a cancellation: it is evidence of what happened.
const LAST_WORD: Duration = Duration::from_millis(50);
/// Questions of one call that may be open at once; a further one is refused.
pub(super) const OPEN_MAX: usize = 64;

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

/// Whom a watched exchange talks to.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    /// Whoever waits for the answer.
    pub caller: &'a dyn Caller,
    /// Sends a message to the server.
    pub reply: &'a (dyn Fn(String) + Send + Sync),
}

/// Runs `exchange` until it answers, is cancelled or takes too long; hands the asides to the caller, none after the answer,
/// and its answers to the server. The silence of a server that waits for the caller is not counted.
pub(super) async fn watch(
    exchange: impl Future<Output = Result<Answer, CallError>>,
    mut asides: mpsc::Receiver<Aside>,
    bounds: Bounds,
    ends: Ends<'_>,
) -> Watched {
    tokio::pin!(exchange);
    let idle = || bounds.idle_timeout.map(|idle| Instant::now() + idle);
    let mut idle_until = idle();
    let mut open = true;
    let mut questions = Questions::new(ends);
    let watched = loop {
        tokio::select! {
            biased;
            next = asides.recv(), if open => match next {
                Some(next) => {
                    idle_until = idle();
                    questions.take(next);
                }
                None => open = false,
            },
            answer = &mut exchange => break Watched::Answered(answer),
            () = questions.answered(), if questions.are_open() => idle_until = idle(),
            () = bounds.cancel.cancelled() => {
                // After a stop of the whole process the answer may stand in the pipe already.
                break match timeout(LAST_WORD, exchange).await {
                    Ok(answer @ Ok(_)) => Watched::Answered(answer),
                    Ok(Err(_)) | Err(_) => Watched::Cancelled,
                };
            }
            () = until(bounds.deadline) => break Watched::TimedOut(TimeoutKind::Attempt),
            () = until(idle_until), if !questions.are_open() => break Watched::TimedOut(TimeoutKind::Idle),
        }
    };
    // What came with the answer.
    asides.close();
    while let Ok(next) = asides.try_recv() {
        match next {
            Aside::Request(request) => questions.refuse(&request.id, &message::question_over()),
            next if matches!(watched, Watched::Answered(_)) => questions.take(next),
            _ => {}
        }
    }
    watched
}

type Asking<'a> = Pin<Box<dyn Future<Output = (Box<RawValue>, Option<Answer>)> + Send + 'a>>;

/// Questions of the server that the caller has not answered. What is still open in the end is refused, so that no server
/// waits for ever.
struct Questions<'a> {
    ends: Ends<'a>,
    open: Vec<(Box<RawValue>, CancellationToken)>,
    asking: FuturesUnordered<Asking<'a>>,
}

impl<'a> Questions<'a> {
    fn new(ends: Ends<'a>) -> Self {
        Self { ends, open: Vec::new(), asking: FuturesUnordered::new() }
    }

    fn are_open(&self) -> bool {
        !self.asking.is_empty()
    }

    fn take(&mut self, aside: Aside) {
        let caller = self.ends.caller;
        match aside {
            Aside::Progress(progress) => caller.progress(progress),
            Aside::Notice { method, params } => caller.notice(&method, params.as_deref()),
            Aside::Request(request) if self.open.len() >= OPEN_MAX => {
                self.refuse(&request.id, &message::failed("too many questions of this call are open"));
            }
            Aside::Request(request) => {
                let withdrawn = CancellationToken::new();
                self.open.push((request.id.clone(), withdrawn.clone()));
                self.asking.push(Box::pin(async move {
                    let answer = withdrawn.run_until_cancelled(caller.ask(&request)).await;
                    (request.id, answer)
                }));
            }
            Aside::Withdrawn(id) => {
                for (_, withdrawn) in self.open.iter().filter(|(open, _)| open.get() == id.get()) {
                    withdrawn.cancel();
                }
            }
        }
    }

    fn refuse(&self, id: &RawValue, why: &Answer) {
        (self.ends.reply)(message::response(id, why));
    }

    /// Waits for the next answer and sends it.
    async fn answered(&mut self) {
        if let Some((id, answer)) = self.asking.next().await {
            self.open.retain(|(open, _)| open.get() != id.get());
            if let Some(answer) = answer {
                (self.ends.reply)(message::response(&id, &answer));
            }
        }
    }
}

impl Drop for Questions<'_> {
    fn drop(&mut self) {
        for (id, _) in &self.open {
            self.refuse(id, &message::question_over());
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
