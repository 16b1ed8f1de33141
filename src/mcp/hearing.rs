//! What one listener hears of the upstreams unasked: changed lists, updated resources, log notices; each only if it is
//! for that listener. Decides nothing about which of these a client wants, and writes no message but for legacy clients.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};

use super::face::Face;
use super::frame;
use super::listen::SUBSCRIPTION_MEMBER;
use super::log_level;
use super::offering::Marks;
use super::splice::{self, Edit};
use super::wishes::Wishes;
use crate::engine::client::string_member;
use crate::engine::notices::{self, Addressee, Notice};
use crate::model::json;
use crate::model::payload::Payload;
use crate::model::principal::Principal;

/// A list that clients follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Tools,
    Resources,
    Prompts,
}

impl List {
    /// All of them.
    pub const ALL: [List; 3] = [List::Tools, List::Resources, List::Prompts];

    /// The notification that says that it has changed.
    pub fn method(self) -> &'static str {
        match self {
            List::Tools => notices::TOOLS_CHANGED,
            List::Resources => notices::RESOURCES_CHANGED,
            List::Prompts => notices::PROMPTS_CHANGED,
        }
    }
}

/// Something heard.
#[derive(Clone, Debug)]
pub enum Heard {
    /// A list has changed, or its upstream says so.
    Changed(List),
    /// A resource has changed.
    Updated {
        /// Whose it is.
        upstream: String,
        /// Which.
        uri: String,
        /// The notification's parameters.
        params: Payload,
    },
    /// A log notice, by its parameters.
    Message(Payload),
    /// A task of the session has another status, by the parameters that say so.
    Task(Payload),
    /// Something was missed, and nobody knows what.
    Missed,
}

/// Who listens.
#[derive(Clone, Debug)]
pub struct Ear {
    /// For whom.
    pub principal: Principal,
    /// The session or connection, if it is one.
    pub session: Option<String>,
}

/// A listener.
pub struct Hearing {
    face: Arc<Face>,
    ear: Ear,
    notices: broadcast::Receiver<Notice>,
    changes: watch::Receiver<u64>,
    marks: Marks,
    heard: VecDeque<Heard>,
}

impl Hearing {
    /// Listens from now on. A list that is not as in `known` is news at once.
    pub fn new(face: &Arc<Face>, ear: Ear, known: Option<Marks>) -> Hearing {
        let notices = face.engine.notices();
        let mut changes = face.engine.catalog().changes();
        changes.borrow_and_update();
        let marks = face.offering_now(&ear.principal.namespace).marks;
        let mut hearing = Hearing {
            face: face.clone(),
            ear,
            notices,
            changes,
            marks: known.unwrap_or(marks),
            heard: VecDeque::new(),
        };
        hearing.compare();
        hearing
    }

    /// The lists as they were when this listener was last told of a change.
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// What is heard next; pending for ever once the engine is gone. Cancel safe.
    pub async fn next(&mut self) -> Heard {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return heard;
            }
            tokio::select! {
                notice = self.notices.recv() => match notice {
                    Ok(notice) => self.take(notice),
                    Err(RecvError::Lagged(_)) => self.heard.push_back(Heard::Missed),
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                changed = self.changes.changed() => match changed {
                    Ok(()) => self.compare(),
                    Err(_) => std::future::pending().await,
                },
            }
            self.gather();
        }
    }

    /// Takes in what is there besides, so that one change of a list is told once, whoever told it.
    fn gather(&mut self) {
        loop {
            match self.notices.try_recv() {
                Ok(notice) => self.take(notice),
                Err(TryRecvError::Lagged(_)) => self.heard.push_back(Heard::Missed),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if self.changes.has_changed().unwrap_or(false) {
            self.changes.borrow_and_update();
            self.compare();
        }
    }

    fn take(&mut self, notice: Notice) {
        if !self.is_for_this(&notice) {
            return;
        }
        match notice.method.as_str() {
            notices::TOOLS_CHANGED => self.changed(List::Tools),
            notices::RESOURCES_CHANGED => self.changed(List::Resources),
            notices::PROMPTS_CHANGED => self.changed(List::Prompts),
            notices::RESOURCE_UPDATED => {
                let Some(params) = notice.params else { return };
                let Some(uri) = string_member(&params, "uri") else { return };
                self.heard.push_back(Heard::Updated { upstream: notice.upstream, uri, params });
            }
            notices::MESSAGE => self.heard.extend(notice.params.map(Heard::Message)),
            // Of our own only: what an upstream says of its tasks is not about ours.
            notices::TASK_STATUS if notice.upstream.is_empty() => self.heard.extend(notice.params.map(Heard::Task)),
            // Whatever else upstreams tell is not for clients.
            _ => {}
        }
    }

    fn is_for_this(&self, notice: &Notice) -> bool {
        let principal = &self.ear.principal;
        let addressed = match &notice.to {
            Addressee::Everybody => true,
            Addressee::Session(session) => self.ear.session.as_ref() == Some(session),
            Addressee::Principal { namespace, subject } => {
                *namespace == principal.namespace && *subject == principal.subject
            }
            Addressee::Execution(_) => false,
        };
        // A namespace hears nothing of an upstream that it sees nothing of.
        addressed && (notice.upstream.is_empty() || self.face.sees(&principal.namespace, &notice.upstream))
    }

    /// Notes what has changed in the catalog since this listener was told.
    fn compare(&mut self) {
        let marks = self.face.offering_now(&self.ear.principal.namespace).marks;
        let old = std::mem::replace(&mut self.marks, marks);
        for (list, is_news) in [
            (List::Tools, old.tools != marks.tools),
            (List::Resources, old.resources != marks.resources),
            (List::Prompts, old.prompts != marks.prompts),
        ] {
            if is_news {
                self.changed(list);
            }
        }
    }

    fn changed(&mut self, list: List) {
        let waits = self.heard.iter().any(|heard| matches!(heard, Heard::Changed(other) if *other == list));
        if !waits {
            self.heard.push_back(Heard::Changed(list));
        }
    }
}

impl Face {
    /// True when callers in `namespace` see anything of an upstream.
    fn sees(&self, namespace: &str, upstream: &str) -> bool {
        let offering = self.offering_now(namespace);
        offering.sources.iter().any(|source| source.name == upstream)
            || self
                .engine
                .catalog()
                .listing()
                .tools
                .iter()
                .any(|tool| tool.upstream == upstream && tool.service.is_offered_in(namespace))
    }
}

/// What a legacy session or connection is told, message by message.
pub struct LegacyHearing {
    hearing: Hearing,
    wishes: Arc<Wishes>,
    messages: VecDeque<String>,
}

impl LegacyHearing {
    /// Listens for a client with these wishes. Lists that changed since it was last told are news at once.
    pub fn new(face: &Arc<Face>, ear: Ear, wishes: &Arc<Wishes>) -> LegacyHearing {
        let hearing = Hearing::new(face, ear, wishes.told());
        wishes.set_told(hearing.marks());
        LegacyHearing { hearing, wishes: wishes.clone(), messages: VecDeque::new() }
    }

    /// The next notification, a whole JSON-RPC message. Cancel safe.
    pub async fn next(&mut self) -> String {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return message;
            }
            let heard = self.hearing.next().await;
            self.wishes.set_told(self.hearing.marks());
            match heard {
                Heard::Changed(list) => self.push(list.method(), None),
                Heard::Updated { upstream, uri, params } if self.wishes.cover(&upstream, &uri) => {
                    self.push(notices::RESOURCE_UPDATED, Some(&params));
                }
                Heard::Message(params) if log_level::passes(&params, self.wishes.level()) => {
                    self.push(notices::MESSAGE, Some(&params));
                }
                Heard::Task(params) => self.push(notices::TASK_STATUS, Some(&params)),
                Heard::Updated { .. } | Heard::Message(_) => {}
                Heard::Missed => {
                    // Looking again where nothing changed does no harm.
                    for list in List::ALL {
                        self.push(list.method(), None);
                    }
                    for uri in self.wishes.uris() {
                        let params = serde_json::json!({ "uri": uri }).to_string();
                        self.push(notices::RESOURCE_UPDATED, Some(&params));
                    }
                }
            }
        }
    }

    fn push(&mut self, method: &str, params: Option<&str>) {
        let mut message = String::new();
        let params = params.map(without_subscription);
        frame::notification(&mut message, method, params.as_deref());
        self.messages.push_back(message);
    }
}

/// A notice's parameters without the id of our own subscription at its upstream (2026-07-28), which says nothing to
/// anybody else.
fn without_subscription(params: &str) -> Cow<'_, str> {
    if !params.contains(SUBSCRIPTION_MEMBER) {
        return Cow::Borrowed(params);
    }
    let meta = json::members(params).and_then(|members| members.into_iter().rev().find(|(name, _)| name == "_meta"));
    let stripped = meta.and_then(|(_, meta)| splice::without(meta.get(), &[SUBSCRIPTION_MEMBER]));
    let edited = match stripped.as_deref() {
        Some("{}") => splice::without(params, &["_meta"]),
        Some(meta) => splice::edited(params, &[Edit::Set("_meta", meta.into())]),
        None => None,
    };
    edited.map_or(Cow::Borrowed(params), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::without_subscription;

    #[test]
    fn the_id_of_our_own_subscription_is_told_to_nobody() {
        let told = r#"{"uri":"x:1","_meta":{"io.modelcontextprotocol/subscriptionId":3}}"#;
        assert_eq!(without_subscription(told), r#"{"uri":"x:1"}"#);
        let told = r#"{"uri":"x:1","_meta":{"a":1.0,"io.modelcontextprotocol/subscriptionId":"s"}}"#;
        assert_eq!(without_subscription(told), r#"{"uri":"x:1","_meta":{"a":1.0}}"#);
        assert_eq!(without_subscription(r#"{"uri":"x:1","_meta":{}}"#), r#"{"uri":"x:1","_meta":{}}"#);
    }
}
