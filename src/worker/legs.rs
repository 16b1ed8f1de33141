//! Which leg to a server a call takes: the shared one, or one of its principal's, session's or its own (design: protocol
//! face, isolation). Bounded; ends legs that nobody uses. Sends nothing and knows no tools.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::upstream::{Declared, EraChoice, Scope, Tell, Upstream, UpstreamSettings};
use crate::engine::Engine;
use crate::engine::client::ClientContext;
use crate::engine::notices::{Addressee, Notice};

/// How often idle legs are looked for.
const SWEEP: Duration = Duration::from_secs(10);
/// How long the one client of a process may take to say who it is before its server is started without knowing.
const CLIENT_WAIT: Duration = Duration::from_millis(500);

/// Who shares a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Everybody.
    #[default]
    Shared,
    /// The calls of one principal.
    Principal,
    /// The calls of one session. A call without a session shares the leg of all where the server speaks 2026-07-28, and has
    /// one of its own where not.
    Session,
    /// Each call has a leg of its own.
    Call,
}

/// How many legs there may be beside the shared one, and how long an unused one stays.
#[derive(Clone, Copy, Debug)]
pub struct LegSettings {
    /// Who shares a leg.
    pub isolation: Isolation,
    /// Legs beside the shared one.
    pub legs_max: usize,
    /// How long an unused leg stays.
    pub idle: Duration,
    /// The process serves one client only (`wrap`): whose leg it is need not be asked.
    pub only_client: bool,
}

impl Default for LegSettings {
    fn default() -> Self {
        Self { isolation: Isolation::Shared, legs_max: 64, idle: Duration::from_secs(300), only_client: false }
    }
}

/// Whose call it is.
#[derive(Clone, Copy, Debug)]
pub struct Whose<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its principal.
    pub principal: &'a str,
    /// Its client.
    pub client: &'a ClientContext,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Principal(String, String),
    /// Namespace, principal, session: an id alone proves nothing about whose session it is.
    Session(String, String, String),
}

/// A leg of its own, with those who use it.
struct Own {
    upstream: Upstream,
    users: AtomicUsize,
    idle_since: Mutex<Instant>,
}

impl Own {
    fn new(upstream: Upstream) -> Arc<Own> {
        Arc::new(Own { upstream, users: AtomicUsize::new(0), idle_since: Mutex::new(Instant::now()) })
    }

    fn idle_since(&self) -> Option<Instant> {
        let since = *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner);
        (self.users.load(Ordering::Acquire) == 0).then_some(since)
    }
}

/// A leg that is being used. One that was ended meanwhile ends with its last use.
pub struct Taken {
    upstream: Upstream,
    own: Option<Arc<Own>>,
}

impl Taken {
    /// The leg.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            *own.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            own.users.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Every leg to one server.
pub struct Legs {
    shared: Upstream,
    settings: LegSettings,
    engine: Weak<Engine>,
    own: Mutex<HashMap<Key, Arc<Own>>>,
}

impl Legs {
    /// Starts the shared leg, by which the server's lists are read, and the watch over the others. Must be called inside
    /// a tokio runtime.
    pub fn start(engine: &Arc<Engine>, mut upstream: UpstreamSettings, settings: LegSettings) -> Arc<Legs> {
        let weak = Arc::downgrade(engine);
        let is_only = settings.only_client && settings.isolation == Isolation::Session;
        if is_only {
            upstream.scope = Scope { is_private: true, can_be_asked: true };
            upstream.declared = Declared::Awaited(engine.follow_only_client(), CLIENT_WAIT);
        }
        upstream.tell = tell(&weak, &upstream.name, Addressee::Everybody);
        Legs::over(&weak, Upstream::start(upstream), settings)
    }

    /// Legs around one that is started already.
    pub fn over(engine: &Weak<Engine>, shared: Upstream, settings: LegSettings) -> Arc<Legs> {
        let legs = Arc::new(Legs { shared, settings, engine: engine.clone(), own: Mutex::default() });
        if let Some(engine) = engine.upgrade().filter(|_| legs.has_own()) {
            engine.spawn(legs.clone().watch(engine.clone()));
        }
        legs
    }

    /// The leg by which the server's lists are read.
    pub fn shared(&self) -> &Upstream {
        &self.shared
    }

    /// The leg for one call; opened where there is none.
    ///
    /// # Errors
    /// Says that there are too many.
    pub async fn of(&self, whose: Whose<'_>) -> Result<Taken, String> {
        if !self.has_own() || self.shared_serves(whose).await {
            return Ok(Taken { upstream: self.shared.clone(), own: None });
        }
        let Some(key) = self.key(whose) else {
            // The call's own leg ends with the last that holds it, which is what is handed out here.
            return Ok(Taken { upstream: self.open(None, whose), own: None });
        };
        let mut all = self.all();
        let own = match all.get(&key) {
            Some(own) => own.clone(),
            None => {
                if all.len() >= self.settings.legs_max && !make_room(&mut all) {
                    let name = self.shared.name();
                    return Err(format!("server {name} has {} legs in use, which is the most", all.len()));
                }
                let own = Own::new(self.open(Some(&key), whose));
                all.insert(key, own.clone());
                own
            }
        };
        own.users.fetch_add(1, Ordering::AcqRel);
        Ok(Taken { upstream: own.upstream.clone(), own: Some(own) })
    }

    /// The leg for what is no call: as for calls, but the shared one where nothing but a call has a leg.
    ///
    /// # Errors
    /// Says that there are too many.
    pub async fn for_request(&self, whose: Whose<'_>) -> Result<Taken, String> {
        match self.has_own() && self.key(whose).is_some() {
            true => self.of(whose).await,
            false => Ok(Taken { upstream: self.shared.clone(), own: None }),
        }
    }

    /// The same, if it is there already.
    pub fn present(&self, whose: Whose<'_>) -> Option<Upstream> {
        match self.key(whose).filter(|_| self.has_own()) {
            Some(key) => self.all().get(&key).map(|own| own.upstream.clone()),
            None => Some(self.shared.clone()),
        }
    }

    /// Ends the legs of a session; what still runs on them ends first.
    pub fn session_ended(&self, session: &str) {
        self.all().retain(|key, _| !matches!(key, Key::Session(.., ended) if ended == session));
    }

    /// How many legs there are beside the shared one.
    pub fn count(&self) -> usize {
        self.all().len()
    }

    fn has_own(&self) -> bool {
        let LegSettings { isolation, only_client, .. } = self.settings;
        isolation != Isolation::Shared && !(only_client && isolation == Isolation::Session)
    }

    /// A client of 2026-07-28 has no session. A server of that revision is told of the client with each request, and asks it
    /// by its answers: nothing has to be kept apart, and what one call began the next can go on with.
    async fn shared_serves(&self, whose: Whose<'_>) -> bool {
        let is_free = self.settings.isolation == Isolation::Session && whose.client.session.is_none();
        is_free && whose.client.is_modern() && self.shared.speaks_modern().await
    }

    fn key(&self, whose: Whose<'_>) -> Option<Key> {
        let namespace = whose.namespace.to_owned();
        match self.settings.isolation {
            Isolation::Principal => Some(Key::Principal(namespace, whose.principal.to_owned())),
            Isolation::Session => {
                let principal = whose.principal.to_owned();
                whose.client.session.clone().map(|session| Key::Session(namespace, principal, session))
            }
            Isolation::Shared | Isolation::Call => None,
        }
    }

    fn open(&self, key: Option<&Key>, whose: Whose<'_>) -> Upstream {
        let template = self.shared.settings();
        let mut settings = template.clone();
        settings.reads_lists = false;
        settings.last_known = Some(self.shared.tools().borrow().as_ref().clone());
        // A principal may have many clients, and nobody knows which of them to ask.
        settings.declared = match &whose.client.capabilities {
            Some(capabilities) if !matches!(key, Some(Key::Principal(..))) => Declared::These(capabilities.clone()),
            _ => Declared::Nothing,
        };
        let can_be_asked = matches!(settings.declared, Declared::These(_));
        settings.scope = Scope { is_private: true, can_be_asked };
        if template.era == EraChoice::Auto && !whose.client.is_modern() {
            settings.era = EraChoice::LegacyFirst;
        }
        settings.tell = match key {
            Some(Key::Session(.., session)) => tell(&self.engine, &template.name, Addressee::Session(session.clone())),
            Some(Key::Principal(namespace, subject)) => {
                let (namespace, subject) = (namespace.clone(), subject.clone());
                tell(&self.engine, &template.name, Addressee::Principal { namespace, subject })
            }
            // All that is told on the leg of one call belongs to that call.
            None => Tell::default(),
        };
        Upstream::start(settings)
    }

    /// Ends what is idle or whose session is over, until the engine stops; then all.
    async fn watch(self: Arc<Self>, engine: Arc<Engine>) {
        let stop = engine.stopping().clone();
        let mut ended = engine.ended_sessions();
        drop(engine);
        let pause = SWEEP.min(self.settings.idle / 2).max(Duration::from_millis(10));
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                session = ended.recv() => match session {
                    Ok(session) => self.session_ended(&session),
                    // Those that were missed end by being idle.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => break,
                },
                () = tokio::time::sleep(pause) => {
                    let idle = self.settings.idle;
                    // A client that listens uses its leg without a call.
                    self.all().retain(|_, own| {
                        own.upstream.has_subscribers() || own.idle_since().is_none_or(|since| since.elapsed() < idle)
                    });
                }
            }
        }
        let all: Vec<_> = self.all().drain().map(|(_, own)| own).collect();
        futures_util::future::join_all(all.iter().map(|own| own.upstream.shutdown())).await;
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, Arc<Own>>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the leg that has been idle the longest; false when all are in use.
fn make_room(all: &mut HashMap<Key, Arc<Own>>) -> bool {
    let idle = all.iter().filter_map(|(key, own)| Some((own.idle_since()?, key)));
    let oldest = idle.min_by_key(|(since, _)| *since).map(|(_, key)| key.clone());
    oldest.is_some_and(|key| all.remove(&key).is_some())
}

/// Passes what a leg's server tells to whom the leg belongs.
fn tell(engine: &Weak<Engine>, upstream: &str, to: Addressee) -> Tell {
    let (engine, upstream) = (engine.clone(), upstream.to_owned());
    Tell::new(move |method: &str, params: Option<&RawValue>| {
        if let Some(engine) = engine.upgrade() {
            let params = params.map(|params| params.get().into());
            engine.tell(Notice { upstream: upstream.clone(), to: to.clone(), method: method.to_owned(), params });
        }
    })
}
