//! From copies of bytes to calls and answers: lines, then messages as `wrap` would read them (strict towards the client,
//! tolerant towards the server), then the ledger. Writes nothing to anybody.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ledger::{Answered, Called, Ledger, Limits};
use super::lines::{Line, Lines};
use super::relay::{Direction, Piece};
use super::report::{End, Missed, Report, Wire};
use crate::config::Config;
use crate::engine::catalog::Tool;
use crate::mcp::admit::{self, Admitted, Body, Entered};
use crate::mcp::call_params::CallParams;
use crate::mcp::envelope::{self, Message};
use crate::mcp::era::Ruling;
use crate::mcp::id::Id;
use crate::mcp::session::{InFlight, Place};
use crate::mcp::{keys, method};
use crate::model::arguments;
use crate::model::revision::Revision;
use crate::serve::settings;
use crate::worker::rules;
use crate::worker::upstream::{self, wires};

/// Observations that are told one by one.
const FINDINGS_MAX: usize = 200;
/// Room for what surrounds a result.
const ENVELOPE_BYTES: usize = 64 << 10;
/// Lists that are waited for at once, and tools that are known.
const LISTS_MAX: usize = 64;
const TOOLS_MAX: usize = 10_000;

/// What is known of one conversation.
pub struct Watch {
    server: String,
    config: Arc<Config>,
    envelope: envelope::Limits,
    argument_bytes_max: usize,
    started_at_ms: i64,
    from_client: Lines,
    from_server: Lines,
    ledger: Ledger,
    tools: HashMap<String, Arc<Tool>>,
    /// Ids of lists that are waited for.
    lists: Vec<String>,
    in_flight: InFlight,
    places: HashMap<String, Vec<Place>>,
    revision: Option<Revision>,
    shown_revision: Option<Revision>,
    client: Option<String>,
    wire: Wire,
}

impl Watch {
    /// Watches a conversation with the server that the configuration knows under `server`.
    pub fn new(server: &str, config: Arc<Config>, now_ms: i64) -> Watch {
        let face = settings::face(&config, true);
        let limits = Limits {
            calls: config.wrap.shadow_calls as usize,
            findings: FINDINGS_MAX,
            departure_grace_ms: settings::engine(&config, true).departure_grace_ms.min(i64::MAX as u64) as i64,
        };
        Watch {
            server: server.to_owned(),
            envelope: face.envelope,
            argument_bytes_max: face.argument_bytes_max,
            started_at_ms: now_ms,
            from_client: Lines::new(face.envelope.bytes_max),
            from_server: Lines::new(config.limits.result_bytes.len().saturating_add(ENVELOPE_BYTES)),
            ledger: Ledger::new(limits, now_ms),
            tools: HashMap::new(),
            lists: Vec::new(),
            in_flight: InFlight::default(),
            places: HashMap::new(),
            revision: None,
            shown_revision: None,
            client: None,
            wire: Wire::default(),
            config,
        }
    }

    /// Takes a copy of bytes in.
    pub fn take(&mut self, piece: &Piece) {
        let Piece::Bytes { direction, at_ms, bytes, after_gap } = piece else {
            if let Piece::Closed(direction, at_ms) = piece {
                let rest = self.lines(*direction).rest();
                rest.into_iter().for_each(|line| self.line(*direction, &line, *at_ms));
            }
            return;
        };
        let mut lines = Vec::new();
        self.lines(*direction).feed(bytes, *after_gap, |line| lines.push(line));
        lines.iter().for_each(|line| self.line(*direction, line, *at_ms));
    }

    fn lines(&mut self, direction: Direction) -> &mut Lines {
        match direction {
            Direction::ToServer => &mut self.from_client,
            Direction::ToClient => &mut self.from_server,
        }
    }

    fn line(&mut self, direction: Direction, line: &Line, at_ms: i64) {
        match (direction, line) {
            (_, Line::Whole(text)) if text.iter().all(u8::is_ascii_whitespace) => {}
            (Direction::ToServer, Line::Whole(text)) => self.asked(text, at_ms),
            (Direction::ToServer, Line::TooLong(_)) => self.wire.refused_messages += 1,
            (Direction::ToClient, Line::Whole(text)) => self.told(text, at_ms),
            (Direction::ToClient, Line::TooLong(id)) => {
                self.wire.oversized_results += 1;
                if let Some(id) = id {
                    self.answered(&id.to_string(), Answered::RpcError, at_ms);
                }
            }
        }
    }

    /// A line of the client.
    fn asked(&mut self, text: &[u8], at_ms: i64) {
        let revision = self.revision;
        match admit::stdio(text, &self.envelope, revision) {
            Ok(Entered::One(admitted)) => self.admitted(&admitted, at_ms),
            Ok(Entered::Batch(items)) => {
                for item in items {
                    match admit::batch_element(item, revision.unwrap_or(Revision::ASSUMED)) {
                        Ok(admitted) => self.admitted(&admitted, at_ms),
                        Err(_) => self.wire.refused_messages += 1,
                    }
                }
            }
            Err(_) => self.wire.refused_messages += 1,
        }
    }

    fn admitted(&mut self, admitted: &Admitted<'_>, at_ms: i64) {
        match (&admitted.message, &admitted.body) {
            (Message::Request { id, .. }, Body::Call(call)) => {
                if let Ruling::Modern { revision } = admitted.ruling {
                    self.shown_revision = Some(revision);
                }
                self.called(id, call, at_ms);
            }
            (Message::Request { id, method, .. }, Body::Other { params, .. }) => match method.as_ref() {
                "initialize" => {
                    if let Ok(hello) = method::Hello::read(params) {
                        (self.revision, self.client) = (Some(hello.revision), hello.client_name);
                        self.shown_revision = self.revision;
                    }
                }
                "tools/list" if self.lists.len() < LISTS_MAX => self.lists.push(id.canonical().to_owned()),
                _ => {}
            },
            (Message::Notification { method, .. }, Body::Other { params, .. }) => {
                method::notified(&self.in_flight, method, params);
                self.ledger.withdrawn(at_ms);
            }
            _ => {}
        }
    }

    fn called(&mut self, id: &Id<'_>, call: &CallParams<'_>, at_ms: i64) {
        let Some(place) = self.in_flight.enter(id, self.config.wrap.shadow_calls as usize) else {
            self.ledger.forgotten += 1;
            return;
        };
        let named = call.meta.protocol.client_info.and_then(method::client_name);
        let caller = named.or_else(|| self.client.clone()).unwrap_or_default();
        if self.client.is_none() && !caller.is_empty() {
            self.client = Some(caller.clone());
        }
        let tool = self.tool(&call.name);
        let arguments = call.arguments.map_or("{}", RawValue::get);
        let key_argument = tool.service.key_argument.as_deref();
        let key = keys::resolve(call, std::iter::empty(), key_argument).ok();
        let hash = arguments::hash(arguments, key_argument).ok().filter(|_| arguments.len() <= self.argument_bytes_max);
        let identity = key.zip(hash).map(|(key, hash)| (key.map(|key| key.into_owned()), hash));
        let called = Called {
            id: id.canonical().to_owned(),
            tool: tool.clone(),
            flight: place.flight.clone(),
            caller,
            wait_ms: call.meta.wait_ms,
            identity,
        };
        self.places.entry(called.id.clone()).or_default().push(place);
        self.ledger.called(called, at_ms);
    }

    /// The tool as `wrap` would offer it; one that was not listed yet has nothing that speaks for it.
    fn tool(&mut self, name: &str) -> Arc<Tool> {
        if let Some(tool) = self.tools.get(name) {
            return tool.clone();
        }
        let bare = serde_json::json!({ "name": name });
        let bare = serde_json::value::to_raw_value(&bare).expect("a name is always JSON");
        let rules = self.rules(name);
        // A tool that is switched off is called all the same here.
        let rules = rules::Rules { enabled: true, ..rules };
        Arc::new(rules::offered(&bare, &self.server, name.to_owned(), &rules).expect("the object has a name"))
    }

    fn rules(&self, tool: &str) -> rules::Rules {
        settings::rules(&self.config.server_policy(&self.server, tool), None)
    }

    /// A line of the server.
    fn told(&mut self, text: &[u8], at_ms: i64) {
        let Some(messages) = wires(text) else {
            self.wire.stdout_pollution += 1;
            return;
        };
        for message in messages {
            self.message(&message, at_ms);
        }
    }

    fn message(&mut self, message: &upstream::Wire<'_>, at_ms: i64) {
        if message.method.is_some() {
            return;
        }
        let Some(Ok(id)) = message.id.map(Id::parse) else { return };
        let id = id.canonical();
        if let Some(at) = self.lists.iter().position(|list| list == id) {
            self.lists.remove(at);
            message.result.into_iter().for_each(|page| self.learn(page));
            return;
        }
        let answer = match (message.result, message.error) {
            (Some(result), None) => Answered::Result { is_error: is_error(result) },
            _ => Answered::RpcError,
        };
        // Some servers send numbers back as strings.
        if !self.answered(id, answer, at_ms) {
            self.answered(id.trim_matches('"'), answer, at_ms);
        }
    }

    fn answered(&mut self, id: &str, answer: Answered, at_ms: i64) -> bool {
        if !self.ledger.answered(id, answer, at_ms) {
            return false;
        }
        if let Some(places) = self.places.get_mut(id) {
            // The ledger takes the oldest of an id first, too.
            self.in_flight.leave(&places.remove(0));
            if places.is_empty() {
                self.places.remove(id);
            }
        }
        true
    }

    fn learn(&mut self, page: &RawValue) {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
        }
        let Ok(page) = serde_json::from_str::<Page<'_>>(page.get()) else { return };
        for definition in page.tools {
            let Some(name) = rules::name_of(definition) else { continue };
            let rules = rules::Rules { enabled: true, ..self.rules(&name) };
            let Some(tool) = rules::offered(definition, &self.server, name.clone(), &rules) else { continue };
            self.ledger.learned(&tool);
            if self.tools.len() < TOOLS_MAX || self.tools.contains_key(&name) {
                self.tools.insert(name, Arc::new(tool));
            }
        }
    }

    /// Nothing more comes.
    pub fn end(&mut self, end: End, now_ms: i64) {
        self.ledger.ended(end, now_ms);
    }

    /// What is known at `now_ms`; `end`: why it ended.
    pub fn report(&self, end: End, now_ms: i64, unwatched_bytes: u64) -> Report {
        let (mut total, tools, findings) = self.ledger.counted();
        total.unanswered += self.ledger.unanswered();
        let started = jiff::Timestamp::from_millisecond(self.started_at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        Report {
            version: 1,
            interim: end == End::None,
            server: self.server.clone(),
            started_at: started.to_string(),
            duration_ms: now_ms - self.started_at_ms,
            end,
            client: self.client.clone(),
            revision: self.shown_revision.map(|revision| revision.name().to_owned()),
            total,
            tools,
            wire: self.wire.clone(),
            findings,
            missed: Missed {
                forgotten_calls: self.ledger.forgotten,
                unwatched_bytes,
                findings: self.ledger.findings_missed,
            },
        }
    }
}

fn is_error(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Peek {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    serde_json::from_str::<Peek>(result.get()).is_ok_and(|peek| peek.is_error)
}
