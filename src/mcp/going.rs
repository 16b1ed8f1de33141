//! The answer to a request that is no `tools/call`: there at once, or after a while in which notifications may come.
//! Knows no transport and no method. Dropping it ends what was begun for it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::answer::Reply;
use super::call::progress_params;
use super::frame;
use super::id::Id;
use super::progress::Rising;
use super::reject::{RpcError, Source, code, http_status};
use super::written::Written;
use crate::engine::waiters::Progress;
use crate::model::json;
use crate::model::revision::Era;

/// Messages that wait for a client that does not read.
const WAITING_MAX: usize = 64;

/// An answer and where an error in it came to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    pub reply: Reply,
    pub source: Source,
}

impl Finished {
    /// A result, as JSON text.
    pub fn result(result: impl Into<String>) -> Finished {
        Finished { reply: Reply::Result(Written::Whole(result.into())), source: Source::Handler }
    }

    /// An error of ours.
    pub fn error(error: RpcError) -> Finished {
        Finished { reply: Reply::Error(error), source: Source::Handler }
    }

    /// The request was taken back by its client.
    pub fn withdrawn() -> Finished {
        Finished::error(RpcError::new(code::INVALID_REQUEST, "the request was cancelled by the client"))
    }

    /// The HTTP status it travels with.
    pub fn status(&self, era: Era) -> u16 {
        match &self.reply {
            Reply::Result(_) => 200,
            Reply::Error(error) => http_status(era, self.source, error.code),
            Reply::RawError(error) => error_code(error).map_or(200, |code| http_status(era, self.source, code)),
        }
    }

    /// Appends the response.
    pub fn write(&self, out: &mut String, id: &Id<'_>) {
        self.reply.write(out, id);
    }
}

impl From<super::method::Answer> for Finished {
    fn from(answer: super::method::Answer) -> Finished {
        match answer {
            Ok(result) => Finished::result(&*result),
            Err((source, error)) => Finished { reply: Reply::Error(error), source },
        }
    }
}

/// The code of an error object.
pub fn error_code(error: &str) -> Option<i64> {
    let members = json::members(error)?;
    members.iter().rev().find(|(name, _)| name == "code").and_then(|(_, code)| code.get().parse().ok())
}

/// An answer, or the way to it.
pub enum Answering {
    /// It is there.
    Now(Finished),
    /// It comes.
    Going(Going),
}

impl Answering {
    /// Waits for the answer and lets the notifications before it go.
    pub async fn end(self) -> Finished {
        match self {
            Answering::Now(finished) => finished,
            Answering::Going(mut going) => loop {
                match going.next().await {
                    Said::Message(_) => {}
                    Said::End(finished) => return *finished,
                    Said::Over => return Finished::withdrawn(),
                }
            },
        }
    }
}

impl From<Finished> for Answering {
    fn from(finished: Finished) -> Answering {
        Answering::Now(finished)
    }
}

/// What is said next.
#[derive(Debug)]
pub enum Said {
    /// A notification, a whole JSON-RPC message.
    Message(String),
    /// The answer; the last thing that is said.
    End(Box<Finished>),
    /// Nothing more, and no answer.
    Over,
}

/// A request that is being answered.
pub struct Going {
    said: mpsc::Receiver<Said>,
    withdrawn: CancellationToken,
    /// True when it is a stream from the start (`subscriptions/listen`).
    pub is_stream: bool,
    _task: AbortOnDropHandle<()>,
}

impl Going {
    /// Runs `answering` until it ends or the client takes its request back.
    pub fn begin<A>(withdrawn: CancellationToken, is_stream: bool, answering: impl FnOnce(Teller) -> A) -> Going
    where
        A: Future<Output = Option<Finished>> + Send + 'static,
    {
        let (sender, said) = mpsc::channel(WAITING_MAX);
        let answering = answering(Teller { said: sender.clone() });
        let task = tokio::spawn(async move {
            if let Some(finished) = answering.await {
                // Nobody may be there to hear it.
                let _ = sender.send(Said::End(Box::new(finished))).await;
            }
        });
        Going { said, withdrawn, is_stream, _task: AbortOnDropHandle::new(task) }
    }

    /// What is said next; [`Said::Over`] for ever once the client has taken its request back. Cancel safe.
    pub async fn next(&mut self) -> Said {
        tokio::select! {
            biased;
            () = self.withdrawn.cancelled() => Said::Over,
            said = self.said.recv() => said.unwrap_or(Said::Over),
        }
    }
}

/// Where notifications before an answer go.
#[derive(Clone, Debug)]
pub struct Teller {
    said: mpsc::Sender<Said>,
}

impl Teller {
    /// Tells a notification, once there is room.
    pub async fn tell(&self, method: &str, params: Option<&str>) {
        let mut message = String::new();
        frame::notification(&mut message, method, params);
        // Nobody may be there to hear it; then the task ends too.
        let _ = self.said.send(Said::Message(message)).await;
    }

    /// Tells a notification if there is room.
    pub fn try_tell(&self, method: &str, params: Option<&str>) {
        let mut message = String::new();
        frame::notification(&mut message, method, params);
        // Whoever does not read misses news that the answer makes old anyway.
        let _ = self.said.try_send(Said::Message(message));
    }
}

/// Where a request's progress is told.
#[derive(Clone, Debug)]
pub struct ProgressTo {
    /// The client's token.
    pub token: Id<'static>,
    /// The revision has messages in progress.
    pub with_message: bool,
}

/// Tells progress to whoever asked for it.
pub fn progress_teller(teller: Teller, to: Option<ProgressTo>) -> impl Fn(Progress) + Send + Sync {
    let rising = Arc::new(Mutex::new(Rising::default()));
    move |progress| {
        let Some(to) = &to else { return };
        if let Some(progress) = rising.lock().unwrap_or_else(PoisonError::into_inner).next(progress) {
            let params = progress_params(&to.token, &progress, to.with_message);
            teller.try_tell("notifications/progress", Some(&params));
        }
    }
}
