//! What all connections of one kit process share: options, ledger, the count of calls, the news that the tools changed.
//! Also the runs in flight of one connection, so that a cancellation finds its run, and a client's answer its question. No protocol and no transport here.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::ledger::Ledger;

pub struct Server {
    pub options: Options,
    pub ledger: Option<Ledger>,
    /// The level of `logging/setLevel`.
    pub level: Mutex<Option<String>>,
    calls: AtomicU64,
    questions: AtomicU64,
    /// Fires once, when `--change-tools-after` is reached.
    pub tools_changed: broadcast::Sender<()>,
}

impl Server {
    pub fn new(options: Options) -> Server {
        let ledger = options.ledger.clone().map(Ledger::new);
        Server {
            options,
            ledger,
            level: Mutex::default(),
            calls: AtomicU64::new(0),
            questions: AtomicU64::new(0),
            tools_changed: broadcast::channel(4).0,
        }
    }

    /// An id for a request to a client, as JSON: used once in this process.
    pub fn question_id(&self) -> String {
        format!("\"question-{}\"", self.questions.fetch_add(1, Ordering::SeqCst) + 1)
    }

    pub fn count_call(&self) {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if self.options.change_tools_after == Some(calls) {
            // Nobody listening is no error.
            let _ = self.tools_changed.send(());
        }
    }

    pub fn tools_have_changed(&self) -> bool {
        self.options.change_tools_after.is_some_and(|after| self.calls.load(Ordering::SeqCst) >= after)
    }
}

/// The runs in flight of one connection or session, by the exact text of their JSON-RPC id.
#[derive(Default)]
pub struct Running {
    tokens: Mutex<HashMap<String, CancellationToken>>,
    /// Requests to the client, by their id.
    asked: Mutex<HashMap<String, oneshot::Sender<String>>>,
}

impl Running {
    /// Registers a run, or joins what a transport registered when it read the request: only so can a cancellation that
    /// follows at once not miss it.
    pub fn begin(&self, id: &str) -> CancellationToken {
        self.tokens.lock().unwrap().entry(id.to_owned()).or_default().clone()
    }

    pub fn end(&self, id: &str) {
        self.tokens.lock().unwrap().remove(id);
    }

    pub fn cancel(&self, id: &str) {
        if let Some(token) = self.tokens.lock().unwrap().get(id) {
            token.cancel();
        }
    }

    /// Waits for the client's response to a request of this id: the exact text of the message.
    pub fn ask(&self, id: &str) -> oneshot::Receiver<String> {
        let (told, answer) = oneshot::channel();
        self.asked.lock().unwrap().insert(id.to_owned(), told);
        answer
    }

    /// Takes a response; one to nothing asked is dropped.
    pub fn told(&self, id: &str, message: &str) {
        if let Some(told) = self.asked.lock().unwrap().remove(id) {
            let _ = told.send(message.to_owned());
        }
    }

    pub fn cancel_all(&self) {
        self.tokens.lock().unwrap().values().for_each(CancellationToken::cancel);
    }
}

/// One message's way in: where notifications about it go, and whose runs it may cancel.
pub struct Caller<'a> {
    pub notify: mpsc::UnboundedSender<String>,
    pub running: &'a Running,
    /// The HTTP headers as JSON text; `{}` on stdio.
    pub headers: &'a str,
}
