//! Questions of a running tool to the client that called it: elicitation, sampling, roots. What they are, what a client
//! has to be capable of, and the clock that stands still while one is open. The verbs are in `inputs.rs`.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::Instant;

use super::client::{ClientContext, string_member};
use crate::model::json::{is_null, members};
use crate::store::Payload;

/// A question of a tool to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The tool's own name for it, unique among the questions of one round.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters, as written.
    pub params: Payload,
}

/// The client's answer, byte for byte.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A result object.
    Result(Payload),
    /// A JSON-RPC error object.
    Error(Payload),
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The client did not declare what the question needs; the capability's name, such as `elicitation.url`.
    #[error("the client does not support {0}")]
    NotCapable(&'static str),
    /// The client did not answer in time.
    #[error("the client did not answer in time")]
    TimedOut,
    /// The call has ended or lost its lease.
    #[error("the call that asked has ended")]
    Withdrawn,
    /// The question could not be stored.
    #[error("the question could not be stored: {0}")]
    Store(String),
}

/// Where a running tool asks the client.
#[async_trait]
pub trait Asks: Send + Sync + Debug {
    /// Asks and waits for the answer; meanwhile the lease is kept and the call's time does not run. A form or a link that
    /// nobody answers in time counts as cancelled by the user. Dropping the future withdraws the question.
    async fn ask(&self, question: Question) -> Result<Told, AskError>;
}

/// Asks nobody: every question is refused at once.
#[derive(Clone, Copy, Debug)]
pub struct AsksNobody;

#[async_trait]
impl Asks for AsksNobody {
    async fn ask(&self, question: Question) -> Result<Told, AskError> {
        Err(AskError::NotCapable(needs(&question.method, &question.params)))
    }
}

/// Every open question of an execution, as its waiting callers see them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// In the order they were asked.
    pub questions: Vec<OpenQuestion>,
}

/// A question without an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// Which question of the execution, from 1.
    pub number: u32,
    /// Which round of questions, from 1.
    pub round: u32,
    /// Unique among all questions of the execution; what answers name.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters, as written.
    pub params: Payload,
    /// Milliseconds since the epoch.
    pub asked_at_ms: i64,
}

/// The method of forms and links.
pub const ELICITATION: &str = "elicitation/create";
/// What the user's turning away is, towards a tool.
const CANCELLED: &str = r#"{"action":"cancel"}"#;

/// What a tool is told of a question that the client did not answer with a result: for a form or a link the protocol has a
/// word, for others there is nothing.
pub fn turned_away(method: &str) -> Option<Payload> {
    (method == ELICITATION).then(|| CANCELLED.into())
}

/// The capability that a question needs, as a path with dots; what no client can is `this request`.
pub fn needs(method: &str, params: &str) -> &'static str {
    let has = |name: &str| {
        members(params).unwrap_or_default().iter().any(|(member, value)| member == name && !is_null(value))
    };
    match method {
        ELICITATION if string_member(params, "mode").as_deref() == Some("url") => "elicitation.url",
        ELICITATION => "elicitation",
        "sampling/createMessage" if has("tools") || has("toolChoice") => "sampling.tools",
        "sampling/createMessage" => "sampling",
        "roots/list" => "roots",
        _ => "this request",
    }
}

/// True when the client declared what [`needs`] says. Elicitation without a mode is the form.
pub fn is_capable(client: &ClientContext, needs: &str) -> bool {
    match needs {
        "elicitation" => {
            let only_links = client.declares(&["elicitation", "url"]) && !client.declares(&["elicitation", "form"]);
            client.declares(&["elicitation"]) && !only_links
        }
        "this request" => false,
        path => client.declares(&path.split('.').collect::<Vec<_>>()),
    }
}

/// A capabilities object that has what [`needs`] says, for the error of a client that lacks it.
pub fn required_capabilities(needs: &str) -> String {
    match needs {
        "elicitation" => r#"{"elicitation":{"form":{}}}"#.to_owned(),
        path => match path.split_once('.') {
            Some((outer, inner)) => format!(r#"{{"{outer}":{{"{inner}":{{}}}}}}"#),
            None => format!(r#"{{"{path}":{{}}}}"#),
        },
    }
}

/// The time for which an attempt waited for the client: it does not count as run time.
#[derive(Debug)]
pub struct Pauses(watch::Sender<Paused>);

/// What [`Pauses`] come to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paused {
    open: u32,
    since: Option<Instant>,
    total: Duration,
}

impl Paused {
    /// A question is open.
    pub fn is_on(&self) -> bool {
        self.open > 0
    }

    /// How long the finished pauses lasted.
    pub fn total(&self) -> Duration {
        self.total
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Pauses(watch::Sender::new(Paused::default()))
    }
}

impl Pauses {
    /// Follows them.
    pub fn follow(&self) -> watch::Receiver<Paused> {
        self.0.subscribe()
    }

    /// A pause begins; it lasts until the guard is dropped.
    pub fn begin(&self) -> Pause<'_> {
        self.0.send_modify(|paused| {
            paused.open += 1;
            paused.since.get_or_insert_with(Instant::now);
        });
        Pause(self)
    }
}

/// A pause that lasts.
#[derive(Debug)]
pub struct Pause<'a>(&'a Pauses);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|paused| {
            paused.open -= 1;
            if paused.open == 0
                && let Some(since) = paused.since.take()
            {
                paused.total += since.elapsed();
            }
        });
    }
}
