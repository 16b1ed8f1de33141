//! Questions of a running tool to the client that called it: elicitation, sampling, roots. What is asked and answered is
//! stored, so that any process may take the answer. Speaks no protocol.

use std::fmt::Debug;

use async_trait::async_trait;

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
#[derive(Clone, Debug, thiserror::Error)]
pub enum AskError {
    /// The client did not declare what the question needs.
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
    /// Asks and waits for the answer; meanwhile the lease is kept and the call's time does not run. Dropping the future
    /// withdraws the question.
    async fn ask(&self, question: Question) -> Result<Told, AskError>;
}

/// Asks nobody: every question is refused at once.
#[derive(Clone, Copy, Debug)]
pub struct AsksNobody;

#[async_trait]
impl Asks for AsksNobody {
    async fn ask(&self, question: Question) -> Result<Told, AskError> {
        Err(AskError::NotCapable(Needs::of(&question.method).name()))
    }
}

/// The capability of the client that a question needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Forms and links for the user.
    Elicitation,
    /// The client's model.
    Sampling,
    /// The client's folders.
    Roots,
    /// Something that no client can.
    Unknown,
}

impl Needs {
    /// What a question of this method needs.
    pub fn of(method: &str) -> Needs {
        match method {
            "elicitation/create" => Needs::Elicitation,
            "sampling/createMessage" => Needs::Sampling,
            "roots/list" => Needs::Roots,
            _ => Needs::Unknown,
        }
    }

    /// The capability's name.
    pub fn name(self) -> &'static str {
        match self {
            Needs::Elicitation => "elicitation",
            Needs::Sampling => "sampling",
            Needs::Roots => "roots",
            Needs::Unknown => "this request",
        }
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
