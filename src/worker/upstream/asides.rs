//! What a server says beside its answers: progress, log messages, its own requests to the client, changed lists. Finds out
//! whose each is; what belongs to nobody for certain goes to nobody. Answers no request itself.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc};

use super::call::{Answer, Progress};
use super::message;

/// How many asides of one request may wait for a slow receiver.
pub(super) const QUEUE: usize = 64;
/// Requests of a server that wait for a call to belong to.
const UNCLAIMED_MAX: usize = 16;

/// A request of a server to the client behind us.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    pub(super) id: Box<RawValue>,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its `params`, byte for byte.
    pub params: Option<Box<RawValue>>,
}

/// The methods that a client can be asked by.
pub(super) fn can_be_asked(method: &str) -> bool {
    matches!(method, "elicitation/create" | "sampling/createMessage" | "roots/list")
}

/// Whoever waits for the answer to a request, as far as a server can talk to it meanwhile.
#[async_trait]
pub trait Caller: Send + Sync {
    /// The request goes on.
    fn progress(&self, progress: Progress);

    /// The server told something that belongs to the request: `notifications/message`.
    fn notice(&self, method: &str, params: Option<&RawValue>) {
        let _ = (method, params);
    }

    /// The server asks the client. Dropped when the request ends before, or the server takes its question back.
    async fn ask(&self, request: &ServerRequest) -> Answer {
        message::unsupported(&request.method)
    }
}

/// A caller that only wants to know how far it is.
pub(super) struct Watcher<F>(pub F);

impl<F: Fn(Progress) + Send + Sync> Caller for Watcher<F> {
    fn progress(&self, progress: Progress) {
        (self.0)(progress);
    }
}

/// One thing said beside the answer to a request.
#[derive(Debug)]
pub(super) enum Aside {
    Progress(Progress),
    Notice {
        method: String,
        params: Option<Box<RawValue>>,
    },
    Request(ServerRequest),
    /// The server takes back the request of this id.
    Withdrawn(Box<RawValue>),
}

/// Where a leg drops asides of one exchange; a full sink drops, since they may be lost and answers may not.
pub(super) type Sink = mpsc::Sender<Aside>;

/// Where notifications go that belong to no request.
#[derive(Clone, Default)]
pub struct Tell(Option<Told>);

type Told = Arc<dyn Fn(&str, Option<&RawValue>) + Send + Sync>;

impl Tell {
    /// Hands method and `params` to `told`.
    pub fn new(told: impl Fn(&str, Option<&RawValue>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    pub(super) fn tell(&self, method: &str, params: Option<&RawValue>) {
        if let Some(told) = &self.0 {
            told(method, params);
        }
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

/// Lists of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    pub tools: bool,
    /// Resources and their templates.
    pub resources: bool,
    pub prompts: bool,
}

impl Lists {
    /// All of them.
    pub const ALL: Self = Self { tools: true, resources: true, prompts: true };

    /// The list that a notification says has changed.
    pub(super) fn changed_by(method: &str) -> Option<Self> {
        let none = Self::default();
        Some(match method {
            "notifications/tools/list_changed" => Self { tools: true, ..none },
            "notifications/resources/list_changed" => Self { resources: true, ..none },
            "notifications/prompts/list_changed" => Self { prompts: true, ..none },
            _ => return None,
        })
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            resources: self.resources || other.resources,
            prompts: self.prompts || other.prompts,
        }
    }
}

/// Lists that have changed and were not read again yet.
#[derive(Debug, Default)]
pub(super) struct Changes {
    lists: Mutex<Lists>,
    told: Notify,
}

impl Changes {
    pub fn add(&self, lists: Lists) {
        let mut all = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        *all = all.and(lists);
        drop(all);
        self.told.notify_one();
    }

    /// Takes what has changed until now.
    pub fn take(&self) -> Lists {
        std::mem::take(&mut *self.lists.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Resolves once something has changed.
    pub async fn changed(&self) {
        loop {
            let told = self.told.notified();
            if *self.lists.lock().unwrap_or_else(PoisonError::into_inner) != Lists::default() {
                return;
            }
            told.await;
        }
    }
}

/// Whose a leg is, so far as it matters for what its server says beside its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// All requests on the leg are of one party, which may be told what belongs to no request.
    pub is_private: bool,
    /// The party's capabilities were declared, so that it can be asked.
    pub can_be_asked: bool,
}

/// Finds out to whom belongs what names no request: on stdio, on a stream that answers no request.
pub(super) struct Correlation {
    pub scope: Scope,
    pub tell: Tell,
    pub changes: Arc<Changes>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    sinks: BTreeMap<u64, Sink>,
    /// Questions that came while no call was under way: the next one is asked.
    unclaimed: VecDeque<ServerRequest>,
}

/// A request under way; ends with it.
pub(super) struct Entered {
    id: u64,
    correlation: Arc<Correlation>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.correlation.open().sinks.remove(&self.id);
    }
}

impl Correlation {
    pub fn new(scope: Scope, tell: Tell, changes: Arc<Changes>) -> Arc<Self> {
        Arc::new(Self { scope, tell, changes, open: Mutex::default() })
    }

    /// Takes note of a request of ours that is under way.
    pub fn enter(self: &Arc<Self>, id: u64, sink: Sink) -> Entered {
        let mut open = self.open();
        while let Some(request) = open.unclaimed.pop_front() {
            // The sink is new: it has room for as many.
            let _ = sink.try_send(Aside::Request(request));
        }
        open.sinks.insert(id, sink);
        drop(open);
        Entered { id, correlation: self.clone() }
    }

    /// Takes progress of one of our requests.
    pub fn progress(&self, token: u64, progress: Progress) {
        if let Some(sink) = self.open().sinks.get(&token) {
            let _ = sink.try_send(Aside::Progress(progress));
        }
    }

    /// Takes a request of the server; returns it when it cannot be anybody's.
    pub fn request(&self, request: ServerRequest) -> Option<ServerRequest> {
        if !self.scope.can_be_asked || !can_be_asked(&request.method) {
            return Some(request);
        }
        let mut open = self.open();
        match open.sinks.last_key_value() {
            Some((_, newest)) => refused(newest.try_send(Aside::Request(request))),
            None if open.unclaimed.len() < UNCLAIMED_MAX => {
                open.unclaimed.push_back(request);
                None
            }
            None => Some(request),
        }
    }

    /// Takes a notification that is no progress.
    pub fn notice(&self, method: &str, params: Option<&RawValue>) {
        if let Some(lists) = Lists::changed_by(method) {
            self.changes.add(lists);
            return;
        }
        match method {
            "notifications/message" if self.scope.is_private => {
                let newest = self.open().sinks.last_key_value().map(|(_, newest)| newest.clone());
                match newest {
                    Some(newest) => drop(newest.try_send(aside(method, params))),
                    None => self.tell.tell(method, params),
                }
            }
            "notifications/resources/updated" => self.tell.tell(method, params),
            "notifications/elicitation/complete" if self.scope.is_private => self.tell.tell(method, params),
            "notifications/cancelled" => {
                if let Some(id) = params.and_then(message::cancelled_id) {
                    let mut open = self.open();
                    open.unclaimed.retain(|request| request.id.get() != id.get());
                    for sink in open.sinks.values() {
                        let _ = sink.try_send(Aside::Withdrawn(id.to_owned()));
                    }
                }
            }
            _ => {}
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Both collections are whole at every moment.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A notification as an aside.
pub(super) fn aside(method: &str, params: Option<&RawValue>) -> Aside {
    Aside::Notice { method: method.to_owned(), params: params.map(ToOwned::to_owned) }
}

/// The request that a sink did not take.
pub(super) fn refused(sent: Result<(), mpsc::error::TrySendError<Aside>>) -> Option<ServerRequest> {
    match sent {
        Err(
            mpsc::error::TrySendError::Full(Aside::Request(request))
            | mpsc::error::TrySendError::Closed(Aside::Request(request)),
        ) => Some(request),
        _ => None,
    }
}
