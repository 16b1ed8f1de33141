//! The tools that can be called, with their effective policy: published by workers, read by the protocol face.
//! Runs nothing and knows no protocol beyond the raw tool object it carries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::value::RawValue;
use tokio::sync::watch;

use super::client::declared;
use crate::model::policy::{Identity, OnDisconnect, OnTaskExpiry, Policy, Tasks};
use crate::model::redact;
use crate::model::revision::Revision;

/// One tool as it is offered and run.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The name clients call it by.
    pub exposed: String,
    /// Whose tool.
    pub upstream: String,
    /// Its own name there.
    pub name: String,
    /// The tool object as its server gave it, byte for byte.
    pub definition: Box<RawValue>,
    /// True when the object has an `outputSchema`.
    pub has_output_schema: bool,
    /// True when whoever runs it may have to know the client: to ask it something, or to tell a server what it can. Only
    /// then is that kept with the call.
    pub wants_client: bool,
    /// Delivery, retries and time-outs.
    pub policy: Policy,
    /// How repeats are recognised.
    pub identity: Identity,
    /// How the caller is served.
    pub service: Service,
    /// What is struck out of its calls before anything of them is kept.
    pub redact: Arc<redact::Rules>,
}

/// How a tool's callers are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// How long a caller waits before it gets a handle, in milliseconds; 0: it gets the id at once.
    pub wait_ms: i64,
    /// An argument that carries the idempotency key.
    pub key_argument: Option<String>,
    /// What a client's leaving means.
    pub on_disconnect: OnDisconnect,
    /// How answers are written over HTTP; absent: as the server is configured.
    pub response: Option<ResponseMode>,
    /// When its calls become tasks.
    pub task: TaskService,
    /// The namespaces that may call it; absent: all.
    pub namespaces: Option<Vec<String>>,
    /// The most bytes of a result that a caller is sent; absent: all.
    pub answer_bytes_max: Option<usize>,
}

/// When calls of a tool become tasks. Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskService {
    /// Whether, for clients that know tasks.
    pub tasks: Tasks,
    /// How long a call runs before it becomes one, with `auto`.
    pub after_ms: i64,
    /// How long a task can be read, from its creation.
    pub ttl_ms: i64,
    /// What the end of that time means for work that still runs.
    pub on_expiry: OnTaskExpiry,
}

impl Default for TaskService {
    fn default() -> Self {
        Self { tasks: Tasks::Auto, after_ms: 1_000, ttl_ms: 86_400_000, on_expiry: OnTaskExpiry::Cancel }
    }
}

impl Service {
    /// True when callers in this namespace may call the tool.
    pub fn is_offered_in(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == namespace))
    }

    /// True when some caller may call both tools.
    fn meets(&self, other: &Service) -> bool {
        match &self.namespaces {
            Some(namespaces) => namespaces.iter().any(|namespace| other.is_offered_in(namespace)),
            None => other.namespaces.as_ref().is_none_or(|namespaces| !namespaces.is_empty()),
        }
    }
}

impl Default for Service {
    fn default() -> Self {
        Self {
            wait_ms: 50_000,
            key_argument: None,
            on_disconnect: OnDisconnect::Detach,
            response: None,
            task: TaskService::default(),
            namespaces: None,
            answer_bytes_max: None,
        }
    }
}

/// How an answer is written over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseMode {
    /// JSON when it comes soon and alone, else a stream.
    #[default]
    Auto,
    /// Always JSON.
    Json,
    /// Always a stream.
    Sse,
}

/// What an upstream offers.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// False until something was heard of it, now or in an earlier life of this process.
    pub known: bool,
    /// Its tools, in its own order.
    pub tools: Vec<Arc<Tool>>,
    /// Its instructions for models.
    pub instructions: Option<String>,
    /// Its own name and version object, as it gave it.
    pub server_info: Option<Arc<RawValue>>,
    /// The revision it speaks; absent before it was ever up, and for what is no MCP server.
    pub revision: Option<Revision>,
    /// Its `capabilities` object, as it gave it.
    pub capabilities: Option<Arc<RawValue>>,
    /// How long its list of tools holds, where it said so.
    pub tools_cache: Option<CacheHint>,
    /// Its resources.
    pub resources: Listed,
    /// Its resource templates.
    pub templates: Listed,
    /// Its prompts.
    pub prompts: Listed,
    /// Why it offers nothing, when it is down.
    pub problem: Option<String>,
}

impl Offer {
    /// True when the upstream declared a capability, given as a path of member names.
    pub fn declares(&self, path: &[&str]) -> bool {
        self.capabilities.as_ref().is_some_and(|capabilities| declared(capabilities, path))
    }
}

/// A list of an upstream other than that of its tools.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Whole objects byte for byte, in the upstream's order.
    pub items: Arc<[Box<RawValue>]>,
    /// How long the list holds, where the upstream said so.
    pub cache: Option<CacheHint>,
}

/// What an upstream of revision 2026-07-28 says about how long a list may be kept and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHint {
    /// So long, in milliseconds, from when it was read.
    pub ttl_ms: i64,
    /// It is for whoever asked only.
    pub is_private: bool,
    /// When it was read, in milliseconds since the epoch.
    pub read_at_ms: i64,
}

impl CacheHint {
    /// What is left of the time at `now_ms`, in milliseconds.
    pub fn left_ms(&self, now_ms: i64) -> i64 {
        self.read_at_ms.saturating_add(self.ttl_ms).saturating_sub(now_ms).max(0)
    }
}

/// A picture of every tool at one moment.
#[derive(Debug, Default)]
pub struct Listing {
    /// In the order of configuration, then of each upstream.
    pub tools: Vec<Arc<Tool>>,
    /// Tools of one name are offered in namespaces that do not meet.
    by_name: HashMap<String, Vec<Arc<Tool>>>,
    /// Each upstream with its offer, in the order of configuration.
    pub upstreams: Vec<(String, Offer)>,
    /// Grows with each change.
    pub version: u64,
}

impl Listing {
    /// The tool that callers in `namespace` call by `exposed`.
    pub fn find(&self, exposed: &str, namespace: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(exposed)?.iter().find(|tool| tool.service.is_offered_in(namespace))
    }

    /// True when something was heard of every upstream.
    pub fn is_whole(&self) -> bool {
        self.upstreams.iter().all(|(_, offer)| offer.known)
    }

    /// What `upstream` offers.
    pub fn offer(&self, upstream: &str) -> Option<&Offer> {
        self.upstreams.iter().find(|(name, _)| name == upstream).map(|(_, offer)| offer)
    }

    /// Every resource with its upstream's name, in the order of configuration, then of each upstream.
    pub fn resources(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.listed(|offer| &offer.resources)
    }

    /// Every resource template, likewise.
    pub fn templates(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.listed(|offer| &offer.templates)
    }

    /// Every prompt, likewise.
    pub fn prompts(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.listed(|offer| &offer.prompts)
    }

    fn listed(&self, list: fn(&Offer) -> &Listed) -> impl Iterator<Item = (&str, &RawValue)> {
        self.upstreams
            .iter()
            .flat_map(move |(name, offer)| list(offer).items.iter().map(move |item| (&**name, &**item)))
    }

    /// The tool `name` of `upstream`.
    pub fn of_upstream(&self, upstream: &str, name: &str) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|tool| tool.upstream == upstream && tool.name == name)
    }
}

/// Every tool of this process.
#[derive(Debug)]
pub struct Catalog {
    current: RwLock<Arc<Listing>>,
    offers: Mutex<Vec<(String, Offer)>>,
    changed: watch::Sender<u64>,
}

impl Catalog {
    /// A catalog whose upstreams are listed in this order.
    pub fn new(upstreams: &[String]) -> Catalog {
        let offers: Vec<_> = upstreams.iter().map(|name| (name.clone(), Offer::default())).collect();
        let listing = Listing { upstreams: offers.clone(), ..Listing::default() };
        Catalog { current: RwLock::new(Arc::new(listing)), offers: Mutex::new(offers), changed: watch::channel(0).0 }
    }

    /// Replaces what one upstream offers. Tools whose exposed name another one has already are left out and returned.
    pub fn publish(&self, upstream: &str, offer: Offer) -> Vec<String> {
        let mut offers = self.offers();
        match offers.iter_mut().find(|(name, _)| name == upstream) {
            Some((_, old)) => *old = offer,
            None => offers.push((upstream.to_owned(), offer)),
        }
        let mut listing = Listing { upstreams: offers.clone(), ..Listing::default() };
        let mut collisions = Vec::new();
        for tool in offers.iter().flat_map(|(_, offer)| &offer.tools) {
            let namesakes = listing.by_name.entry(tool.exposed.clone()).or_default();
            if namesakes.iter().any(|other| other.service.meets(&tool.service)) {
                collisions.push(tool.exposed.clone());
                continue;
            }
            namesakes.push(tool.clone());
            listing.tools.push(tool.clone());
        }
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        listing.version = current.version + 1;
        let version = listing.version;
        *current = Arc::new(listing);
        drop(current);
        self.changed.send_replace(version);
        collisions
    }

    /// The picture of now.
    pub fn listing(&self) -> Arc<Listing> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Follows changes by version.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn offers(&self) -> MutexGuard<'_, Vec<(String, Offer)>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
