//! What every transport of the protocol face shares: the engine, the settings, the lists. Speaks no transport.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::envelope;
use super::exposure::Exposure;
use super::input::Keys;
use super::listing::Pages;
use super::offering::Offerings;
use super::rate::Bucket;
use super::sealed_state;
use super::session::Sessions;
use crate::engine::Engine;
use crate::engine::catalog::{Listing, ResponseMode, Tool};
use crate::model::id::ExecutionId;

/// How clients are served. Durations in milliseconds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bounds on one message.
    pub envelope: envelope::Limits,
    /// How long the body of a request may take to come.
    pub body_timeout_ms: u64,
    /// How answers are written over HTTP, where a tool says nothing else.
    pub response: ResponseMode,
    /// A call that ends within this time, and has nothing else to say, is answered as JSON.
    pub json_within_ms: u64,
    /// A waiting stream says something at least so often.
    pub keep_alive_ms: u64,
    /// How often a client is told to look at a young task.
    pub task_poll_min_ms: i64,
    /// How often a client is told to look at a task that runs for long.
    pub task_poll_max_ms: i64,
    /// Entries in one page of a list.
    pub page_size: usize,
    /// Legacy sessions that stay in memory while nobody uses them; the others come back from the store.
    pub sessions_cached: usize,
    /// A stream that can be resumed is closed after so long, for its client to ask again.
    pub poll_after_ms: Option<u64>,
    /// How long a client is asked to wait before it takes up a stream again.
    pub retry_ms: u64,
    /// Legacy sessions opened a second, in the long run.
    pub initialize_rate: u32,
    /// Legacy sessions that may be opened at once before the rate counts.
    pub initialize_burst: u32,
    /// Bytes of the arguments of a call.
    pub argument_bytes_max: usize,
    /// Calls in flight at once in one session or connection.
    pub in_flight_max: usize,
    /// Messages that wait for a client that does not read, on one connection.
    pub outbox_max: usize,
    /// How long discovery and lists wait for an upstream that was never heard of.
    pub first_list_wait_ms: u64,
    /// How long `durable_result` waits when it is not told.
    pub result_wait_ms: i64,
    /// Which built-in tools are offered besides `durable_result`.
    pub builtins: Builtins,
    /// How long the lists may be cached by clients (2026-07-28).
    pub list_ttl_ms: u64,
    /// What is shown of the upstreams to whom, besides tools.
    pub exposure: Exposure,
    /// Streams of `subscriptions/listen` at once (2026-07-28).
    pub listeners_max: usize,
    /// True when nobody has to prove who they are, so that callers are told apart by client name.
    pub anonymous: bool,
}

/// The opt-in built-in tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Builtins {
    /// `durable_cancel`
    pub cancel: bool,
    /// `durable_list`
    pub list: bool,
    /// `durable_retry`
    pub retry: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            envelope: envelope::Limits::default(),
            body_timeout_ms: 60_000,
            response: ResponseMode::Auto,
            json_within_ms: 1_000,
            keep_alive_ms: 10_000,
            task_poll_min_ms: 500,
            task_poll_max_ms: 5_000,
            page_size: 200,
            sessions_cached: 1_000,
            poll_after_ms: None,
            retry_ms: 1_000,
            initialize_rate: 100,
            initialize_burst: 1_000,
            argument_bytes_max: 4 << 20,
            in_flight_max: 1_000,
            outbox_max: 1_024,
            first_list_wait_ms: 10_000,
            result_wait_ms: 50_000,
            builtins: Builtins::default(),
            list_ttl_ms: 60_000,
            exposure: Exposure::default(),
            listeners_max: 10_000,
            anonymous: true,
        }
    }
}

/// The protocol face of one process.
pub struct Face {
    /// The verbs.
    pub engine: Arc<Engine>,
    /// How clients are served.
    pub settings: Settings,
    /// Legacy sessions.
    pub sessions: Sessions,
    /// How often sessions may be opened.
    pub(in crate::mcp) opening: Mutex<Bucket>,
    /// Rendered pages of the tool list.
    pub(super) pages: Pages,
    /// Resources and prompts as each namespace sees them.
    pub(super) offerings: Offerings,
    /// Seals what clients hand back of prompts and resources; the same keys as `keys`, once these were read.
    pub state_keys: sealed_state::Keys,
    /// Places for streams of `subscriptions/listen`.
    pub(super) listeners: Arc<Semaphore>,
    /// Tasks of 2025-11-25 whose sessions are told of them, with the session's name.
    pub(super) told_tasks: Mutex<HashSet<(String, ExecutionId)>>,
    /// Authenticates cursors; the same for the life of the process, a stale cursor is a clear error.
    pub(super) cursor_key: [u8; 32],
    /// Seal what clients bring back.
    pub(super) keys: Mutex<Keys>,
    /// Ends when clients should be told to leave.
    pub draining: CancellationToken,
    /// Ends when whoever waits for a call gets what lets it go on elsewhere: a handle, or the wish to come back.
    pub handing_over: CancellationToken,
}

/// Our own `serverInfo`, as JSON.
pub const SERVER_INFO: &str =
    concat!("{\"name\":\"durable-mcp\",\"title\":\"DurableMCP\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");

impl Face {
    /// A face of `engine`.
    pub fn new(engine: Arc<Engine>, settings: Settings) -> Arc<Face> {
        let mut cursor_key = [0; 32];
        getrandom::fill(&mut cursor_key).expect("the system's random generator works");
        let opening = Bucket::new(settings.initialize_rate, settings.initialize_burst, engine.clock().now_ms());
        Arc::new(Face {
            sessions: Sessions::default(),
            opening: Mutex::new(opening),
            pages: Pages::default(),
            offerings: Offerings::default(),
            state_keys: sealed_state::Keys::random(),
            listeners: Arc::new(Semaphore::new(settings.listeners_max)),
            told_tasks: Mutex::default(),
            cursor_key,
            keys: Mutex::default(),
            draining: CancellationToken::new(),
            handing_over: CancellationToken::new(),
            engine,
            settings,
        })
    }

    /// The tool that callers in `namespace` call by this name; where it is not known, once the tools are there.
    pub async fn tool(&self, name: &str, namespace: &str) -> Option<Arc<Tool>> {
        if let Some(tool) = self.engine.catalog().listing().find(name, namespace) {
            return Some(tool.clone());
        }
        Box::pin(self.listing()).await.find(name, namespace).cloned()
    }

    /// The tools, once something was heard of every upstream or the patience for it is spent. What an earlier life of
    /// this process stored counts, so a slow child delays nobody but its very first client.
    pub async fn listing(&self) -> Arc<Listing> {
        let listing = self.engine.catalog().listing();
        if listing.is_whole() {
            return listing;
        }
        let mut changes = self.engine.catalog().changes();
        let whole = async {
            loop {
                changes.borrow_and_update();
                if self.engine.catalog().listing().is_whole() || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        let patience = Duration::from_millis(self.settings.first_list_wait_ms);
        // Either way the newest picture is the answer.
        let _ = tokio::time::timeout(patience, whole).await;
        self.engine.catalog().listing()
    }

    /// The upstreams' instructions for models: one as it is, several under their names.
    pub fn instructions(&self, listing: &Listing) -> Option<String> {
        let told: Vec<_> =
            listing.upstreams.iter().filter_map(|(name, offer)| Some((name, offer.instructions.as_deref()?))).collect();
        match told.as_slice() {
            [] => None,
            [(_, only)] if listing.upstreams.len() == 1 => Some((*only).to_owned()),
            several => {
                Some(several.iter().map(|(name, text)| format!("## {name}\n\n{text}")).collect::<Vec<_>>().join("\n\n"))
            }
        }
    }
}
