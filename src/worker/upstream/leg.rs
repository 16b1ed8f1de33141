//! One open conversation with a server, over whichever transport: what the supervisor asks of both.
//! Restarts nothing; a leg that is lost stays lost.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::call::{Answer, Bounds, Call, CallError, Progress};
use super::handshake;
use super::http::HttpLeg;
use super::message;
use super::overheard::Overheard;
use super::peer::Notice;
use super::settings::{EraChoice, LegLimits, Transport, UpstreamSettings};
use super::snapshot::{ServerFacts, Tool};
use super::stdio::StdioLeg;

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
    pub notices: mpsc::Sender<Notice>,
    pub overheard: Arc<Overheard>,
}

pub(super) enum Leg {
    Stdio(Box<StdioLeg>),
    Http(HttpLeg),
}

impl Leg {
    /// Opens a leg: process or connection, and handshake. Dropping the future undoes what was begun.
    ///
    /// # Errors
    /// Says why the server cannot be talked to.
    pub async fn open(settings: &UpstreamSettings, context: LegContext) -> Result<Self, StartError> {
        match &settings.transport {
            Transport::Stdio(stdio) => StdioLeg::open(stdio, context).await.map(|leg| Self::Stdio(Box::new(leg))),
            Transport::Http(http) => HttpLeg::open(http, context).await.map(Self::Http),
        }
    }

    pub fn facts(&self) -> ServerFacts {
        match self {
            Self::Stdio(leg) => leg.facts().clone(),
            Self::Http(leg) => leg.facts(),
        }
    }

    /// Runs one tool call.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn call(&self, call: &Call, bounds: Bounds, on_progress: impl Fn(Progress)) -> Result<Answer, CallError> {
        match self {
            Self::Stdio(leg) => leg.call(call, bounds, on_progress).await,
            Self::Http(leg) => leg.call(call, bounds, on_progress).await,
        }
    }

    /// Reads the whole list of tools, page by page.
    ///
    /// # Errors
    /// Says what went wrong; a server that declared no tools and refuses the list has none.
    pub async fn list_tools(&self, limits: &LegLimits) -> Result<Vec<Tool>, String> {
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..limits.max_pages {
            let answer = match self {
                Self::Stdio(leg) => leg.list_page(cursor.as_deref()).await,
                Self::Http(leg) => leg.list_page(cursor.as_deref()).await,
            };
            let page = match answer.map_err(|error| format!("its list of tools was not read: {error}"))? {
                Answer::Result(page) => page,
                Answer::Error(_) if !handshake::declares(&self.facts(), &["tools"]) => return Ok(Vec::new()),
                Answer::Error(error) => {
                    let (code, text) = message::error_parts(&error);
                    let code = code.map(|code| code.to_string()).unwrap_or_default();
                    return Err(format!("it refused to list its tools: {code} {}", handshake::bounded(&text)));
                }
            };
            let (more, next) = handshake::read_tools_page(&page)?;
            tools.extend(more);
            if tools.len() > limits.max_tools {
                return Err(format!("it lists more than {} tools", limits.max_tools));
            }
            match next {
                None => {
                    if let Self::Http(leg) = self {
                        leg.learn(&mut tools);
                    }
                    return Ok(tools);
                }
                next if next == cursor => return Err("its list of tools repeats a cursor".to_owned()),
                next => cursor = next,
            }
        }
        Err(format!("its list of tools has more than {} pages", limits.max_pages))
    }

    /// Ends when the leg is lost.
    pub fn lost(&self) -> CancellationToken {
        match self {
            Self::Stdio(leg) => leg.lost(),
            Self::Http(leg) => leg.lost(),
        }
    }

    /// Says why the leg was lost, once all that belonged to it is gone.
    pub async fn loss(&self) -> String {
        match self {
            Self::Stdio(leg) => leg.end().await,
            Self::Http(leg) => leg.loss(),
        }
    }

    /// Ends the process tree or the session; bounded.
    pub async fn close(&self) {
        match self {
            Self::Stdio(leg) => {
                leg.end().await;
            }
            Self::Http(leg) => leg.close().await,
        }
    }
}
