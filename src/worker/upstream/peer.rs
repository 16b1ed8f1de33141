//! The protocol engine of a stdio leg: many requests at once over one pair of byte streams, told apart by our own ids.
//! Knows nothing of processes and restarts, and nothing of what the requests mean.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::asides::{Correlation, Entered, ServerRequest, Sink};
use super::call::{Answer, CallError, until};
use super::frames::{Frame, Frames};
use super::log_budget::{LogBudget, Unloggable, loggable};
use super::message::{self, Incoming, LongResult};
use super::overheard::Overheard;
use super::settings::LegLimits;

/// Room in a frame for what surrounds the result.
const ENVELOPE_BYTES: usize = 64 * 1024;
/// How long answers that were written before the process ended are still read; its descendants may hold stdout open.
const DRAIN: Duration = Duration::from_millis(200);

/// What the engine needs beside the streams.
pub(super) struct PeerSettings {
    pub name: String,
    pub limits: LegLimits,
    pub unloggable: Unloggable,
    pub correlation: Arc<Correlation>,
    pub overheard: Arc<Overheard>,
}

/// The engine's handle.
pub(super) struct Peer {
    shared: Arc<Shared>,
    next_id: AtomicU64,
}

struct Shared {
    name: String,
    limits: LegLimits,
    unloggable: Unloggable,
    correlation: Arc<Correlation>,
    overheard: Arc<Overheard>,
    pending: Mutex<Pending>,
    outbox: mpsc::Sender<Outbound>,
    /// The process has ended: what is left on stdout is read for [`DRAIN`].
    ended: CancellationToken,
    /// Nothing more will be written; stdin is closed.
    hung_up: CancellationToken,
    /// The stream is over and all calls are settled.
    closed: CancellationToken,
}

#[derive(Default)]
struct Pending {
    exchanges: HashMap<u64, Entry>,
    closed: Option<String>,
}

struct Entry {
    reply: oneshot::Sender<Result<Answer, CallError>>,
    sending: Arc<Sending>,
}

/// Whether the first byte of a request may have left: the line between "not started" and "lost".
#[derive(Default)]
struct Sending(AtomicU8);

const QUEUED: u8 = 0;
const WRITING: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Sending {
    /// Claims the request for writing; false if it was withdrawn.
    fn begin(&self) -> bool {
        self.0.compare_exchange(QUEUED, WRITING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Takes the request back; false if its writing had begun.
    fn withdraw(&self) -> bool {
        match self.0.compare_exchange(QUEUED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(state) => state == WITHDRAWN,
        }
    }
}

struct Outbound {
    frame: String,
    sending: Option<Arc<Sending>>,
}

impl Peer {
    /// Starts the engine on the two streams.
    pub fn start<R, W>(reader: R, writer: W, settings: PeerSettings) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        // Each exchange puts at most a request and a cancellation into the queue.
        let (outbox, queue) = mpsc::channel(2 * settings.limits.max_in_flight + 64);
        let shared = Arc::new(Shared {
            name: settings.name,
            limits: settings.limits,
            unloggable: settings.unloggable,
            correlation: settings.correlation,
            overheard: settings.overheard,
            pending: Mutex::default(),
            outbox,
            ended: CancellationToken::new(),
            hung_up: CancellationToken::new(),
            closed: CancellationToken::new(),
        });
        tokio::spawn(write(writer, queue, shared.clone()));
        tokio::spawn(read(reader, shared.clone()));
        Self { shared, next_id: AtomicU64::new(1) }
    }

    /// Sends a request; `build` makes its `params` for the id that it gets, which is also its progress token.
    ///
    /// # Errors
    /// `NotStarted` if the leg is closed or has too many calls.
    pub fn send(
        &self,
        method: &str,
        asides: Option<Sink>,
        build: impl FnOnce(u64) -> String,
    ) -> Result<Exchange, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let frame = message::request(id, method, &build(id));
        let sending = Arc::new(Sending::default());
        let (reply, receiver) = oneshot::channel();
        {
            let mut pending = self.shared.pending();
            if let Some(reason) = &pending.closed {
                return Err(CallError::not_started(reason.clone()));
            }
            if pending.exchanges.len() >= self.shared.limits.max_in_flight {
                return Err(CallError::not_started("too many calls are in flight"));
            }
            pending.exchanges.insert(id, Entry { reply, sending: sending.clone() });
        }
        let exchange = Exchange {
            id,
            // `initialize` must never be cancelled (2025-11-25, basic/utilities/cancellation).
            may_be_cancelled: method != "initialize",
            _entered: asides.map(|sink| self.shared.correlation.enter(id, sink)),
            receiver,
            sending: sending.clone(),
            shared: self.shared.clone(),
            settled: false,
            reason: "the caller left",
        };
        // The exchange already exists: on an error here its drop takes the entry away again.
        match self.shared.outbox.try_send(Outbound { frame, sending: Some(sending) }) {
            Ok(()) => Ok(exchange),
            Err(_) => Err(CallError::not_started("the server does not read its stdin")),
        }
    }

    /// Sends a notification; it is dropped if the server does not read.
    pub fn notify(&self, method: &str, params: &str) {
        self.shared.enqueue(message::notification(method, params));
    }

    /// Sends the answer to a request of the server; it is dropped if the server does not read.
    pub fn reply(&self, frame: String) {
        self.shared.enqueue(frame);
    }

    /// Says that the process has ended, so that the end of stdout need not be waited for.
    pub fn process_ended(&self) {
        self.shared.ended.cancel();
    }

    /// Closes stdin.
    pub fn hang_up(&self) {
        self.shared.hung_up.cancel();
    }

    /// Ends when the stream is over and every call is settled.
    pub fn closed(&self) -> CancellationToken {
        self.shared.closed.clone()
    }
}

/// One request on its way. Dropping it unanswered withdraws or cancels the request.
pub(super) struct Exchange {
    id: u64,
    may_be_cancelled: bool,
    _entered: Option<Entered>,
    receiver: oneshot::Receiver<Result<Answer, CallError>>,
    sending: Arc<Sending>,
    shared: Arc<Shared>,
    settled: bool,
    reason: &'static str,
}

impl Exchange {
    /// Waits for the answer.
    ///
    /// # Errors
    /// `NotStarted` or `Lost` when the leg is lost before.
    pub async fn answer(&mut self) -> Result<Answer, CallError> {
        let answer = (&mut self.receiver).await;
        self.settled = true;
        answer.unwrap_or_else(|_| Err(CallError::lost("the leg was dropped")))
    }

    /// Gives up waiting and tells the server; returns whether the request may have reached it.
    pub fn abandon(mut self, reason: &'static str) -> bool {
        self.reason = reason;
        !self.sending.withdraw()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let pending = self.shared.pending().exchanges.remove(&self.id).is_some();
        if !self.sending.withdraw() && pending && self.may_be_cancelled {
            self.shared.enqueue(message::cancelled(self.id, self.reason));
        }
    }
}

impl Shared {
    fn pending(&self) -> std::sync::MutexGuard<'_, Pending> {
        // No code panics while it holds the lock; the map is whole even if one did.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(&self, frame: String) {
        if self.outbox.try_send(Outbound { frame, sending: None }).is_err() {
            debug!(upstream = self.name, "a message was dropped: the server does not read its stdin");
        }
    }

    fn settle(&self, id: u64, answer: Result<Answer, CallError>) {
        // An unknown id is an answer that came after its call was given up.
        if let Some(entry) = self.pending().exchanges.remove(&id) {
            let _ = entry.reply.send(answer);
        }
    }

    fn close(&self, reason: &str) {
        let exchanges = {
            let mut pending = self.pending();
            pending.closed.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut pending.exchanges)
        };
        for entry in exchanges.into_values() {
            let error = match entry.sending.withdraw() {
                true => CallError::not_started(reason),
                false => CallError::lost(reason),
            };
            let _ = entry.reply.send(Err(error));
        }
        self.closed.cancel();
    }

    /// Takes in what a line says; false when it is no message.
    fn take(&self, line: &mut Vec<u8>) -> bool {
        let Some(messages) = message::parse(line) else { return false };
        let Some(long) = LongResult::of(&messages, line) else {
            messages.into_iter().for_each(|message| self.receive(message));
            return true;
        };
        drop(messages);
        let (id, answer) = (long.id, long.taken_from(std::mem::take(line)));
        self.settle(id, Ok(message::admit(answer, self.limits.max_result_bytes)));
        true
    }

    fn receive(&self, message: Incoming<'_>) {
        match message {
            Incoming::Response { id, answer } => {
                self.settle(id, Ok(message::admit(answer.into(), self.limits.max_result_bytes)));
            }
            Incoming::Broken { id: Some(id) } => {
                self.settle(id, Err(CallError::lost("the server's answer has neither result nor error")));
            }
            Incoming::Broken { id: None } => {
                debug!(upstream = self.name, "the server sent an answer that names no request of ours");
            }
            Incoming::Request { id, method, .. } if method == "ping" => {
                self.enqueue(message::response(id, &message::pong()));
            }
            Incoming::Request { id, method, params } => {
                let params = params.map(ToOwned::to_owned);
                let request = ServerRequest { id: id.to_owned(), method: method.into_owned(), params };
                if let Some(refused) = self.correlation.request(request) {
                    self.enqueue(message::response(&refused.id, &message::unsupported(&refused.method)));
                }
            }
            Incoming::Notification { method, params } if method == "notifications/progress" => {
                if let Some((token, progress)) = params.and_then(message::progress) {
                    self.correlation.progress(token, progress);
                }
            }
            Incoming::Notification { method, params } => self.correlation.notice(&method, params),
        }
    }
}

async fn read<R: AsyncRead + Unpin>(reader: R, shared: Arc<Shared>) {
    let mut frames = Frames::new(reader, shared.limits.max_result_bytes.saturating_add(ENVELOPE_BYTES));
    let mut log = LogBudget::new(shared.limits.log_lines_per_second);
    let mut drain_until = None;
    let reason = loop {
        tokio::select! {
            biased;
            frame = frames.next() => match frame {
                Ok(Some(Frame::Whole(mut line))) => {
                    if !shared.take(&mut line) && !line.trim_ascii().is_empty() {
                        shared.overheard.stray(|| loggable(&line, &shared.unloggable));
                        if let Some(dropped) = log.take() {
                            let line = loggable(&line, &shared.unloggable);
                            debug!(upstream = shared.name, dropped, line, "a line on stdout is no protocol message");
                        }
                    }
                }
                Ok(Some(Frame::TooLong { id })) => {
                    if let Some(dropped) = log.take() {
                        info!(upstream = shared.name, dropped, "a message over the size limit was dropped");
                    }
                    if let Some(id) = id {
                        shared.settle(id, Ok(message::too_large(shared.limits.max_result_bytes)));
                    }
                }
                Ok(None) => break "the server closed its stdout",
                Err(_) => break "the server's stdout cannot be read",
            },
            () = shared.ended.cancelled(), if drain_until.is_none() => drain_until = Some(Instant::now() + DRAIN),
            () = until(drain_until) => break "the server's process ended",
        }
    };
    shared.close(reason);
}

async fn write<W: AsyncWrite + Unpin>(mut writer: W, mut queue: mpsc::Receiver<Outbound>, shared: Arc<Shared>) {
    let hung_up = shared.hung_up.clone();
    let closed = shared.closed.clone();
    let writing = async {
        while let Some(outbound) = queue.recv().await {
            if outbound.sending.as_ref().is_some_and(|sending| !sending.begin()) {
                continue;
            }
            let mut frame = outbound.frame;
            frame.push('\n');
            if writer.write_all(frame.as_bytes()).await.is_err() || writer.flush().await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = hung_up.cancelled() => {}
        () = closed.cancelled() => {}
    }
    let _ = writer.shutdown().await;
}
