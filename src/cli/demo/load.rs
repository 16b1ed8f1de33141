//! Callers that keep a server busy with calls of both deliveries, one after the other, each with a key of its own, and
//! write down what they were told. A cut call is repeated with its key, as a client would. Counts no runs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::super::stage::caller::{Caller, Error, Place, ToolCall};
use crate::model::revision::Era;

/// The tool with `at_most_once`.
pub const ONCE: &str = "demo_append";
/// The tool with `at_least_once`.
pub const REPEATABLE: &str = "demo_flaky";

/// How long a caller insists.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(50);
/// The shortest call; others take up to four times as long.
const CALL_MS: u64 = 80;

/// What a caller was told in the end.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The key, which is also what the tool writes into its ledger.
    pub key: String,
    /// The tool.
    pub tool: &'static str,
    /// The state that the answer named; absent when there was no answer in time.
    pub state: Option<String>,
}

/// Callers at work.
pub struct Load {
    callers: JoinSet<()>,
    leave: Arc<AtomicBool>,
    book: Arc<Book>,
}

#[derive(Default)]
struct Book {
    started: AtomicUsize,
    cuts: AtomicUsize,
    answered: Mutex<Vec<Answered>>,
}

impl Load {
    /// Starts so many callers.
    pub fn start(place: &Arc<Place>, callers: usize) -> Load {
        let (leave, book) = (Arc::new(AtomicBool::new(false)), Arc::<Book>::default());
        let mut set = JoinSet::new();
        for n in 0..callers {
            let caller = Caller::new(place.clone(), Era::Modern, &format!("caller-{n}"));
            set.spawn(call_on(caller, leave.clone(), book.clone()));
        }
        Load { callers: set, leave, book }
    }

    /// Calls made so far, and how many of them are answered.
    pub fn so_far(&self) -> (usize, usize) {
        let answered = self.book.answered.lock().unwrap_or_else(PoisonError::into_inner).len();
        (self.book.started.load(Ordering::Relaxed), answered)
    }

    /// How often a connection broke under a call.
    pub fn cuts(&self) -> usize {
        self.book.cuts.load(Ordering::Relaxed)
    }

    /// Lets each caller finish its call; returns what they were told.
    pub async fn end(mut self) -> Vec<Answered> {
        self.leave.store(true, Ordering::Relaxed);
        while self.callers.join_next().await.is_some() {}
        std::mem::take(&mut *self.book.answered.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn call_on(mut caller: Caller, leave: Arc<AtomicBool>, book: Arc<Book>) {
    while !leave.load(Ordering::Relaxed) {
        let n = book.started.fetch_add(1, Ordering::Relaxed);
        let key = format!("call-{n:04}");
        let seconds = (CALL_MS + (n as u64 * 37) % (3 * CALL_MS)) as f64 / 1_000.0;
        let (tool, arguments) = match n % 2 {
            0 => (ONCE, format!(r#"{{"text":"{key}","seconds":{seconds}}}"#)),
            _ => (REPEATABLE, format!(r#"{{"name":"{key}","failures":0,"seconds":{seconds}}}"#)),
        };
        let state =
            insist(&mut caller, &ToolCall { tool, arguments: &arguments, key: Some(&key), wait_ms: None }, &book).await;
        book.answered.lock().unwrap_or_else(PoisonError::into_inner).push(Answered { key, tool, state });
    }
}

/// Repeats a call until it is answered with how it ended.
async fn insist(caller: &mut Caller, call: &ToolCall<'_>, book: &Book) -> Option<String> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        match tokio::time::timeout(PATIENCE, caller.call(call)).await {
            Ok(Ok(told)) => return told.execution.map(|execution| execution.state),
            Ok(Err(Error::Wire(_))) => {
                book.cuts.fetch_add(1, Ordering::Relaxed);
            }
            // Overload, a store that is busy, a server that is ending: said to be repeated.
            Ok(Err(_)) | Err(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
    None
}
