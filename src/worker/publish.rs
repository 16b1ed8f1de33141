//! What the upstreams offer, brought to the catalog: at start as it was last known, then as each server lists it. Keeps
//! the last known picture in the store. Names no tool and reads no configuration: both come in as functions.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::demo;
use super::rules::{Rules, name_of, offered};
use super::upstream::{Items, Keeping, ServerFacts, Snapshot, Status, Tool, Upstream};
use crate::engine::Engine;
use crate::engine::catalog::{self, CacheHint, Listed, Offer};
use crate::engine::notices::{Addressee, Notice, PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED};
use crate::model::revision::Revision;
use crate::store::{self, UpstreamRow};

/// The operator's rules for a tool, by upstream and the tool's own name.
pub type RulesOf = Arc<dyn Fn(&str, &str) -> Rules + Send + Sync>;
/// The name clients call a tool by, from upstream and the tool's own name.
pub type ExposedName = Arc<dyn Fn(&str, &str) -> String + Send + Sync>;

/// A picture of an upstream as it is stored.
#[derive(Deserialize, Serialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    tools: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_info: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    resources: Arc<[Box<RawValue>]>,
    #[serde(default, skip_serializing_if = "is_empty")]
    templates: Arc<[Box<RawValue>]>,
    #[serde(default, skip_serializing_if = "is_empty")]
    prompts: Arc<[Box<RawValue>]>,
}

fn is_empty(list: &Arc<[Box<RawValue>]>) -> bool {
    list.is_empty()
}

/// A stored picture, for `UpstreamSettings::last_known`; `None` when it cannot be read, which costs a slow start and
/// nothing else.
pub fn last_known(snapshot: &str) -> Option<Snapshot> {
    let stored: Stored = serde_json::from_str(snapshot).ok()?;
    let facts = stored.revision.as_deref().and_then(Revision::find).map(|revision| ServerFacts {
        revision,
        server_info: stored.server_info,
        capabilities: stored.capabilities,
        instructions: stored.instructions,
    });
    let tools = stored.tools.into_iter().filter_map(|raw| Some(Tool { name: name_of(&raw)?, raw }));
    // How long the server let its lists be kept is not stored: what it said of them then is over.
    let items = |items| Items { items, keeping: None };
    Some(Snapshot {
        facts,
        tools: tools.collect(),
        resources: items(stored.resources),
        templates: items(stored.templates),
        prompts: items(stored.prompts),
        ..Snapshot::default()
    })
}

/// Brings offers to the catalog of an engine.
pub struct Publisher {
    engine: Arc<Engine>,
    rules: RulesOf,
    exposed: ExposedName,
}

impl Publisher {
    /// A publisher for the catalog of `engine`.
    pub fn new(engine: Arc<Engine>, rules: RulesOf, exposed: ExposedName) -> Arc<Publisher> {
        Arc::new(Publisher { engine, rules, exposed })
    }

    /// Offers tools of our own: commands, demo tools.
    pub fn offer_own(&self, upstream: &str, definitions: &[Box<RawValue>]) {
        self.publish(upstream, definitions.iter().map(|raw| &**raw), Offer { known: true, ..Offer::default() });
        self.tell(upstream);
    }

    /// Offers what is known of `upstream` now, and from then on each change, until the engine stops.
    pub fn follow(self: &Arc<Self>, upstream: Upstream) {
        let name = upstream.name().to_owned();
        let mut follower = Follower { publisher: self.clone(), name, last: None, told: [0; 3] };
        let mut tools = upstream.tools();
        let mut status = upstream.status();
        let first = tools.borrow_and_update().clone();
        follower.show(&first, &status.borrow_and_update());
        self.engine.spawn(async move {
            let stop = follower.publisher.engine.stopping().clone();
            loop {
                let gone = tokio::select! {
                    () = stop.cancelled() => return,
                    changed = tools.changed() => changed.is_err(),
                    changed = status.changed() => changed.is_err(),
                };
                let snapshot = tools.borrow_and_update().clone();
                let standing = status.borrow_and_update().clone();
                if let Some(text) = follower.show(&snapshot, &standing) {
                    follower.keep(text).await;
                }
                // The upstream has ended; what it said last was shown.
                if gone {
                    return;
                }
            }
        });
    }

    /// Offers `upstreams`, which other processes run, as they are stored now, and from then on each change, until the engine
    /// stops. After `patience` one of which nothing is stored counts as known to offer nothing.
    pub async fn follow_stored(self: &Arc<Self>, upstreams: Vec<String>, patience: Duration) -> store::Result<()> {
        let follower = |name| Follower { publisher: self.clone(), name, last: None, told: [0; 3] };
        let mut stored = Elsewhere { all: upstreams.into_iter().map(follower).collect(), waits: true };
        if stored.all.is_empty() {
            return Ok(());
        }
        stored.show(self.engine.store().upstreams().await?);
        let (engine, until) = (self.engine.clone(), Instant::now() + patience);
        self.engine.spawn_until_stopped(async move {
            let mut peers = engine.peers_read();
            loop {
                let pause = if stored.is_whole() { LOOK_PAUSE } else { FIRST_LOOK_PAUSE };
                // Who came or went changes what can be called; the end of the pause means to look all the same.
                let _ = tokio::time::timeout(pause, peers.changed()).await;
                if Instant::now() >= until {
                    stored.waits = false;
                }
                match engine.store().upstreams().await {
                    Ok(rows) => stored.show(rows),
                    Err(error) => tracing::warn!(code = error.code(), "lists of tools could not be read: {error}"),
                }
            }
        });
        Ok(())
    }

    fn publish<'a>(&self, upstream: &str, definitions: impl Iterator<Item = &'a RawValue>, offer: Offer) {
        let mut tools = Vec::new();
        for definition in definitions {
            let Some(name) = name_of(definition) else {
                tracing::warn!(upstream, "a tool was left out: its object has no readable name");
                continue;
            };
            let rules = (self.rules)(upstream, &name);
            let wants_client = offer.revision.is_some() || (upstream == demo::UPSTREAM && name == demo::ASK);
            let tool = offered(definition, upstream, (self.exposed)(upstream, &name), &rules);
            tools.extend(tool.map(|tool| Arc::new(catalog::Tool { wants_client, ..tool })));
        }
        for exposed in self.engine.catalog().publish(upstream, Offer { tools, ..offer }) {
            tracing::warn!(upstream, tool = exposed, "a tool was left out: another one is called by that name");
        }
    }

    /// One line per set of tools: what may happen to a lost call, and who said so.
    fn tell(&self, upstream: &str) {
        let listing = self.engine.catalog().listing();
        let mut kinds: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for tool in listing.tools.iter().filter(|tool| tool.upstream == upstream) {
            let policy = &tool.policy;
            kinds.entry((policy.delivery.as_str(), policy.delivery_source.as_str())).or_default().push(&tool.exposed);
        }
        let kinds =
            kinds.iter().map(|((delivery, source), tools)| format!("{delivery} ({source}): {}", tools.join(", ")));
        let kinds: Vec<_> = kinds.collect();
        let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join("; ") };
        tracing::info!(upstream, "tools of {upstream}: {kinds}");
    }
}

/// How often the stored pictures of servers that other processes run are looked at.
const LOOK_PAUSE: Duration = Duration::from_secs(5);
/// The same while one of them is missing.
const FIRST_LOOK_PAUSE: Duration = Duration::from_millis(500);

/// Servers that other processes run.
struct Elsewhere {
    all: Vec<Follower>,
    /// What is missing may come: whoever asks for lists does better to wait.
    waits: bool,
}

impl Elsewhere {
    fn is_whole(&self) -> bool {
        self.all.iter().all(|follower| follower.last.is_some())
    }

    fn show(&mut self, rows: Vec<UpstreamRow>) {
        for follower in &mut self.all {
            let row = rows.iter().find(|row| row.name == follower.name);
            let snapshot = row.and_then(|row| last_known(&row.snapshot));
            let is_run = follower.publisher.engine.is_run_anywhere(&follower.name);
            if snapshot.is_none() && self.waits {
                continue;
            }
            let down = |reason: &str| Status::Failed { reason: reason.to_owned() };
            let status = match (is_run, &snapshot) {
                (false, _) => down(RUN_BY_NOBODY),
                (true, None) => down("the worker that runs it has not brought it up yet"),
                (true, Some(_)) => Status::Starting,
            };
            follower.show_stored(&snapshot.unwrap_or_default(), &status);
        }
    }
}

/// Why a server is down of which no worker is known.
const RUN_BY_NOBODY: &str =
    "no living worker runs it; start a process with the role `worker` that has it in its configuration";

/// What was last shown of one upstream.
struct Follower {
    publisher: Arc<Publisher>,
    name: String,
    last: Option<(String, Option<String>, [Option<Keeping>; 4])>,
    /// How many changes of each list were passed on.
    told: [u64; 3],
}

impl Follower {
    /// Publishes what differs from what was shown last; returns the picture's text when the server itself gave a new one.
    fn show(&mut self, snapshot: &Snapshot, status: &Status) -> Option<String> {
        let text = write(snapshot);
        let problem = problem(status);
        // Nothing was heard of it yet: whoever asks for its tools does better to wait.
        if snapshot.facts.is_none() && snapshot.tools.is_empty() && problem.is_none() {
            return None;
        }
        let keeping =
            [snapshot.tools_keeping, snapshot.resources.keeping, snapshot.templates.keeping, snapshot.prompts.keeping];
        let (new_text, differs) = match &self.last {
            Some((last_text, last_problem, last_keeping)) => {
                (*last_text != text, *last_problem != problem || *last_keeping != keeping)
            }
            None => (true, true),
        };
        if !new_text && !differs {
            self.pass_changes_on(snapshot);
            return None;
        }
        let offer = Offer { problem: problem.clone(), ..self.offer(snapshot) };
        let offer = Offer { known: offer.known || problem.is_some(), ..offer };
        self.publisher.publish(&self.name, snapshot.tools.iter().map(|tool| &*tool.raw), offer);
        self.pass_changes_on(snapshot);
        if new_text && !snapshot.tools.is_empty() {
            self.publisher.tell(&self.name);
        }
        self.last = Some((text.clone(), problem, keeping));
        (new_text && snapshot.generation > 0).then_some(text)
    }

    /// Publishes a stored picture, and tells everybody which of its lists are new.
    fn show_stored(&mut self, snapshot: &Snapshot, status: &Status) {
        let lists = |text: &str| -> Option<[String; 3]> {
            let Stored { tools, resources, templates, prompts, .. } = serde_json::from_str(text).ok()?;
            let texts = |list: &[Box<RawValue>]| list.iter().map(|raw| raw.get()).collect::<Vec<_>>().join(",");
            Some([texts(&tools), texts(&resources) + "|" + &texts(&templates), texts(&prompts)])
        };
        let before = self.last.as_ref().and_then(|(text, ..)| lists(text));
        let mut snapshot = snapshot.clone();
        snapshot.told = self.told;
        if let (Some(before), Some(after)) = (before, lists(&write(&snapshot))) {
            for (n, (before, after)) in before.iter().zip(&after).enumerate() {
                snapshot.told[n] += u64::from(before != after);
            }
        }
        // What is stored is not written again.
        let _ = self.show(&snapshot, status);
    }

    /// What a picture offers beside its tools.
    fn offer(&self, snapshot: &Snapshot) -> Offer {
        let facts = snapshot.facts.as_ref();
        let read_at_ms = self.publisher.engine.clock().now_ms();
        let cache = |keeping: Option<Keeping>| {
            keeping.map(|Keeping { ttl_ms, is_private }| CacheHint { ttl_ms, is_private, read_at_ms })
        };
        let listed = |list: &Items| Listed { items: list.items.clone(), cache: cache(list.keeping) };
        Offer {
            known: snapshot.facts.is_some() || !snapshot.tools.is_empty(),
            instructions: facts.and_then(|facts| facts.instructions.clone()),
            server_info: facts.and_then(|facts| facts.server_info.clone()).map(Arc::from),
            revision: facts.map(|facts| facts.revision),
            capabilities: facts.and_then(|facts| facts.capabilities.clone()).map(Arc::from),
            tools_cache: cache(snapshot.tools_keeping),
            resources: listed(&snapshot.resources),
            templates: listed(&snapshot.templates),
            prompts: listed(&snapshot.prompts),
            ..Offer::default()
        }
    }

    /// Tells everybody what the server has told, once the catalog has it: also of a list that reads as before.
    fn pass_changes_on(&mut self, snapshot: &Snapshot) {
        for (n, method) in [TOOLS_CHANGED, RESOURCES_CHANGED, PROMPTS_CHANGED].into_iter().enumerate() {
            if std::mem::replace(&mut self.told[n], snapshot.told[n]) != snapshot.told[n] {
                let (upstream, method) = (self.name.clone(), method.to_owned());
                self.publisher.engine.tell(Notice { upstream, to: Addressee::Everybody, method, params: None });
            }
        }
    }

    async fn keep(&self, text: String) {
        let engine = &self.publisher.engine;
        let updated_at_ms = engine.clock().now_ms();
        let row = UpstreamRow { name: self.name.clone(), snapshot: text.into(), updated_at_ms };
        if let Err(error) = engine.store().put_upstream(row).await {
            tracing::warn!(upstream = self.name, code = error.code(), "a list of tools could not be stored: {error}");
        }
    }
}

fn problem(status: &Status) -> Option<String> {
    match status {
        Status::Starting | Status::Ready(_) => None,
        Status::Down { reason, .. } | Status::Failed { reason } => Some(reason.clone()),
        Status::Stopped => Some("it is stopped".to_owned()),
    }
}

fn write(snapshot: &Snapshot) -> String {
    let facts = snapshot.facts.as_ref();
    let stored = Stored {
        revision: facts.map(|facts| facts.revision.name().to_owned()),
        tools: snapshot.tools.iter().map(|tool| tool.raw.clone()).collect(),
        instructions: facts.and_then(|facts| facts.instructions.clone()),
        server_info: facts.and_then(|facts| facts.server_info.clone()),
        capabilities: facts.and_then(|facts| facts.capabilities.clone()),
        resources: snapshot.resources.items.clone(),
        templates: snapshot.templates.items.clone(),
        prompts: snapshot.prompts.items.clone(),
    };
    // Strings and raw JSON always serialise.
    serde_json::to_string(&stored).expect("a picture of tools is always JSON")
}
