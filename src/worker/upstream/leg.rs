//! One open conversation with a server, over whichever transport: what the supervisor asks of both.
//! Restarts nothing; a leg that is lost stays lost.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::asides::{Caller, Correlation, Scope};
use super::call::{Answer, Bounds, CallError};
use super::http::HttpLeg;
use super::keeper::Keeper;
use super::levels::Level;
use super::overheard::Overheard;
use super::request::Request;
use super::settings::{EraChoice, LegLimits, Transport, UpstreamSettings};
use super::snapshot::{ServerFacts, Tool};
use super::stdio::StdioLeg;
use crate::model::revision::Revision;

/// Why a leg could not be opened.
#[derive(Debug)]
pub(super) struct StartError {
    pub reason: String,
    /// No other try can work with the same settings.
    pub permanent: bool,
}

impl StartError {
    pub fn passing(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), permanent: false }
    }

    pub fn permanent(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), permanent: true }
    }
}

/// What every leg of an upstream shares.
#[derive(Clone)]
pub(super) struct LegContext {
    pub name: String,
    pub era: EraChoice,
    pub limits: LegLimits,
    pub correlation: Arc<Correlation>,
    pub overheard: Arc<Overheard>,
    /// What is declared to a server of revisions up to 2025-11-25.
    pub declared: Option<Box<RawValue>>,
}

pub(super) struct Leg {
    line: Line,
    scope: Scope,
    /// Its server was told of capabilities of a client.
    pub declared_any: bool,
    /// Who keeps what is made here.
    pub keeper: Keeper,
    told: Mutex<Told>,
}

/// What a legacy server was told, which it knows as long as its session.
#[derive(Default)]
pub(super) struct Told {
    generation: u64,
    pub level: Level,
    /// Resources that it was asked to tell of.
    pub subscribed: BTreeSet<String>,
}

enum Line {
    Stdio(Box<StdioLeg>),
    Http(HttpLeg),
}

impl Leg {
    /// Opens a leg: process or connection, and handshake. Dropping the future undoes what was begun.
    ///
    /// # Errors
    /// Says why the server cannot be talked to.
    pub async fn open(settings: &UpstreamSettings, context: LegContext) -> Result<Self, StartError> {
        let scope = context.correlation.scope;
        let declared_any = context.declared.is_some();
        let (line, keeper) = match &settings.transport {
            Transport::Stdio(stdio) => {
                (Line::Stdio(Box::new(StdioLeg::open(stdio, context).await?)), Keeper::new_child())
            }
            Transport::Http(http) => (Line::Http(HttpLeg::open(http, context).await?), Keeper::ADDRESS),
        };
        Ok(Self { line, scope, declared_any, keeper, told: Mutex::default() })
    }

    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    /// What the server was told in the session that there is now.
    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.generation();
        if told.generation != generation {
            *told = Told { generation, ..Told::default() };
        }
        told
    }

    /// The number of the session.
    pub fn generation(&self) -> u64 {
        match &self.line {
            // A process forgets nothing while it lives.
            Line::Stdio(_) => 0,
            Line::Http(leg) => leg.generation(),
        }
    }

    /// Resolves when there is another session than that of this number.
    pub async fn forgotten(&self, generation: u64) {
        match &self.line {
            Line::Stdio(_) => std::future::pending().await,
            Line::Http(leg) => leg.renewed(generation).await,
        }
    }

    pub fn facts(&self) -> ServerFacts {
        match &self.line {
            Line::Stdio(leg) => leg.facts().clone(),
            Line::Http(leg) => leg.facts(),
        }
    }

    /// Passes one request on and waits for its answer.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn call(&self, request: &Request, bounds: Bounds, caller: &dyn Caller) -> Result<Answer, CallError> {
        self.set_level(request).await;
        match &self.line {
            Line::Stdio(leg) => leg.conversation().call(request, bounds, caller).await,
            Line::Http(leg) => leg.call(request, bounds, caller).await,
        }
    }

    /// The revision a request is sent in.
    pub async fn revision_for(&self, request: &Request) -> Revision {
        match &self.line {
            Line::Stdio(leg) => leg.conversation().revision_for(request).await,
            Line::Http(leg) => leg.facts().revision,
        }
    }

    /// Sends a harmless request of our own and waits for its answer.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn ask(&self, request: &Request) -> Result<Answer, CallError> {
        match &self.line {
            Line::Stdio(leg) => leg.conversation().ask(request).await,
            Line::Http(leg) => leg.ask(request).await,
        }
    }

    /// Sends a notification; it may be lost.
    pub async fn notify(&self, request: &Request) {
        match &self.line {
            Line::Stdio(leg) => leg.conversation().notify(request),
            Line::Http(leg) => leg.notify(request).await,
        }
    }

    /// Listens for what a server of 2026-07-28 tells of these resources.
    pub fn listen(&self, uris: &[String]) {
        match &self.line {
            Line::Stdio(leg) => leg.conversation().listen(uris),
            Line::Http(leg) => leg.listen(uris),
        }
    }

    /// Takes note of what the listed tools want in headers; takes tools out that a client must not offer.
    pub fn learn(&self, tools: &mut Vec<Tool>) {
        if let Line::Http(leg) = &self.line {
            leg.learn(tools);
        }
    }

    /// Ends when the leg is lost.
    pub fn lost(&self) -> CancellationToken {
        match &self.line {
            Line::Stdio(leg) => leg.lost(),
            Line::Http(leg) => leg.lost(),
        }
    }

    /// Says why the leg was lost, once all that belonged to it is gone.
    pub async fn loss(&self) -> String {
        match &self.line {
            Line::Stdio(leg) => leg.end().await,
            Line::Http(leg) => leg.loss(),
        }
    }

    /// Ends the process tree or the session; bounded.
    pub async fn close(&self) {
        match &self.line {
            Line::Stdio(leg) => {
                leg.end().await;
            }
            Line::Http(leg) => leg.close().await,
        }
    }
}
