//! A caller's hold on an execution. Dropping it means that the caller left; the work does not depend on it.

use std::sync::Arc;

use opentelemetry::trace::SpanKind;

use super::asking::Round;
use super::notices::Notice;
use super::waiters::{Following, Progress, Settled, Sight};
use super::{Engine, Result};
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::store::Mark;
use crate::telemetry::{Span, here};

/// How the caller left, for whoever asks the same again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Departure {
    /// Without an answer.
    Gone,
    /// With a handle, since its time was up.
    Handle,
    /// With an answer about the end, or with the one it asked for.
    Answered,
}

/// A caller's hold on an execution.
pub struct Ticket {
    engine: Arc<Engine>,
    pub(super) following: Following,
    /// The questions it was told of last.
    told: Option<Arc<Round>>,
    /// The report it was told of last.
    reported: Option<Progress>,
    /// The row as the submission found or made it.
    pub head: Arc<Head>,
    /// An earlier execution took the call.
    pub attached: bool,
    departure: Departure,
    left: bool,
    /// The request that waits, and its waiting, where spans are made.
    spans: Option<Box<Spans>>,
    /// The tool's calls are sent twice by some client (`unkeyed = "coalesce"`).
    pub(super) coalesces: bool,
}

/// A request that waits for an execution. They end when its answer is written, or it leaves without one.
struct Spans {
    wait: Span,
    /// From the end to the answer.
    answer: Option<Span>,
    /// Ends last.
    request: Span,
}

impl Spans {
    fn begin(head: &Head) -> Option<Box<Spans>> {
        let request = here::span();
        request.place()?;
        let wait = here::child("wait");
        wait.set("durable_mcp.execution", head.id().to_string());
        Some(Box::new(Spans { wait, answer: None, request }))
    }
}

/// How long an answered call of a tool that coalesces still takes its twin, in milliseconds. A client that sends
/// everything twice does so within a few of them, and a fast tool may have answered in between.
const COALESCE_MS: i64 = 100;

/// What a caller learns next.
#[derive(Clone, Debug)]
pub enum News {
    /// The execution has settled.
    Settled(Settled),
    /// The tool reported progress.
    Progress(Progress),
    /// The tool, or its server, told something: a log message.
    Message(Arc<Notice>),
    /// The questions to the client have changed: these are open now, maybe none.
    Asked(Arc<Round>),
}

impl Ticket {
    pub(super) fn new(engine: Arc<Engine>, head: Head, attached: bool) -> Ticket {
        let following = engine.waiters.enter(head.id(), Some(&head));
        let spans = Spans::begin(&head);
        Ticket {
            spans,
            engine,
            following,
            told: None,
            reported: None,
            head: Arc::new(head),
            attached,
            departure: Departure::Gone,
            left: false,
            coalesces: false,
        }
    }

    /// A hold on what a key's execution ended with. Nobody waits for it, and no mark is written for a keyed call.
    pub(super) fn of_end(engine: Arc<Engine>, end: Settled) -> Ticket {
        let head = end.head.clone();
        let following = Following::still(Sight { settled: Some(end), ..Sight::default() });
        let (departure, told, reported) = (Departure::Gone, None, None);
        let spans = Spans::begin(&head);
        Ticket {
            spans,
            engine,
            following,
            told,
            reported,
            head,
            attached: true,
            departure,
            left: true,
            coalesces: false,
        }
    }

    /// The execution.
    pub fn id(&self) -> ExecutionId {
        self.head.id()
    }

    /// The end, if it is there already.
    pub fn settled(&self) -> Option<Settled> {
        self.following.sight.borrow().settled.clone()
    }

    /// Waits for the end or for the next thing to tell. Cancel safe.
    pub async fn news(&mut self) -> News {
        loop {
            let sight = self.following.sight.borrow_and_update().clone();
            // What was told before the end is there by now, and comes before it.
            if let Some(notice) = self.following.messages.next() {
                // The sight is looked at again.
                self.following.sight.mark_changed();
                return News::Message(notice);
            }
            if let Some(settled) = sight.settled {
                if let Some(spans) = &mut self.spans {
                    let answer = spans.answer.get_or_insert_with(|| spans.request.child("answer", SpanKind::Internal));
                    answer.set("durable_mcp.state", settled.head.state.as_str());
                }
                return News::Settled(settled);
            }
            if sight.asked != self.told {
                self.told = sight.asked;
                return News::Asked(self.told.clone().unwrap_or_default());
            }
            if sight.progress != self.reported {
                self.reported = sight.progress.clone();
                if let Some(progress) = sight.progress {
                    return News::Progress(progress);
                }
            }
            if self.following.sight.changed().await.is_err() {
                // The entry lives as long as this ticket does.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits for the end. Cancel safe.
    pub async fn end(&mut self) -> Settled {
        loop {
            if let News::Settled(settled) = self.news().await {
                return settled;
            }
        }
    }

    /// The caller got its answer whole (the end, or the id it asked for).
    pub fn answered(mut self) {
        self.departure = Departure::Answered;
    }

    /// The caller leaves without an answer; true when nobody else waits here for the same execution.
    pub fn leave(mut self) -> bool {
        self.depart()
    }

    /// The caller got a handle since its time was up.
    pub fn handle_given(mut self) {
        self.departure = Departure::Handle;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.depart();
    }
}

impl Ticket {
    /// Counts the caller out, once; true when it was the last.
    fn depart(&mut self) -> bool {
        if let Some(spans) = self.spans.take() {
            spans.wait.set(
                "durable_mcp.left_with",
                match self.departure {
                    Departure::Answered => "answer",
                    Departure::Handle => "handle",
                    Departure::Gone => "nothing",
                },
            );
        }
        if std::mem::replace(&mut self.left, true) {
            return false;
        }
        let id = self.head.id();
        self.engine.waiters.leave(id, |last| {
            // A keyed call is found by its key, whoever waits; marks would be written for nobody.
            if self.head.ident.key.is_some() {
                return;
            }
            let process = self.engine.process;
            if self.coalesces && self.departure == Departure::Answered {
                return self.mark_delivered_later();
            }
            let mark = match self.departure {
                Departure::Answered => Mark::Delivered(process),
                Departure::Handle if last => Mark::HandleGiven(process),
                Departure::Gone if last => Mark::Left(process),
                Departure::Handle | Departure::Gone => return,
            };
            self.engine.store.mark(id, mark, self.engine.now_ms());
        })
    }

    /// Until the mark is written the row says that its caller is still there, which is when a twin may join it.
    fn mark_delivered_later(&self) {
        let (engine, id) = (self.engine.clone(), self.head.id());
        self.engine.spawn(async move {
            let now_ms = engine.now_ms();
            tokio::select! {
                () = engine.stop.cancelled() => {}
                () = engine.clock.sleep_until(now_ms + COALESCE_MS) => {}
            }
            engine.store.mark(id, Mark::Delivered(engine.process), now_ms);
        });
    }
}

impl Engine {
    /// The row with the payload its caller gets, read from the store.
    pub(super) async fn settled(&self, head: Head) -> Result<Settled> {
        let payload = match Settled::kind(head.state) {
            Some(kind) => self.store.payload(head.id(), kind).await?,
            None => None,
        };
        Ok(Settled { head: Arc::new(head), payload })
    }
}
