//! What the store keeps of questions to clients, and the keys that seal what clients bring back. Decides nothing.

use std::fmt;

use super::{LeaseRef, Payload};
use crate::model::decide::Answer;
use crate::model::execution::Head;
use crate::model::id::{ExecutionId, OperationId};

/// Questions of a running tool, to be stored in one transaction with what they mean for the execution.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The lease; it has to be held.
    pub lease: LeaseRef,
    /// What is asked.
    pub questions: Vec<NewQuestion>,
    /// The lease is given up meanwhile.
    pub parked: bool,
    /// What the tool wants to see again, of a parked round.
    pub state: Option<Payload>,
    /// The write's id.
    pub operation: OperationId,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct NewQuestion {
    /// The tool's own name for it.
    pub name: String,
    /// The method of the protocol.
    pub method: String,
    /// Its parameters, exact.
    pub params: Payload,
    /// Their canonical hash: the same question of a later attempt has the same.
    pub params_hash: String,
}

/// What became of an [`Ask`].
#[derive(Clone, Debug)]
pub enum Asked {
    /// Stored, or found from an earlier attempt: in the order they were asked. With an open one among them the execution
    /// waits.
    Stored {
        /// The row after that.
        head: Box<Head>,
        /// The questions, answered ones included.
        rows: Vec<InputRow>,
    },
    /// The lease is not held; nothing was stored.
    Refused(Answer),
}

/// What closed a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputOutcome {
    /// The client answered with a result.
    Result,
    /// The client answered with a JSON-RPC error.
    Error,
    /// Nobody answered in time.
    Expired,
    /// The tool does not want to know any more.
    Withdrawn,
}

impl InputOutcome {
    /// The stored name.
    pub fn as_str(self) -> &'static str {
        match self {
            InputOutcome::Result => "result",
            InputOutcome::Error => "error",
            InputOutcome::Expired => "expired",
            InputOutcome::Withdrawn => "withdrawn",
        }
    }

    /// Reads a stored name.
    pub fn parse(text: &str) -> Option<InputOutcome> {
        use InputOutcome::{Error, Expired, Result, Withdrawn};
        [Result, Error, Expired, Withdrawn].into_iter().find(|outcome| outcome.as_str() == text)
    }

    /// True for an answer of the client.
    pub fn is_answer(self) -> bool {
        matches!(self, InputOutcome::Result | InputOutcome::Error)
    }
}

/// A stored question. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct InputRow {
    /// 1, 2, 3 … over all rounds and attempts of the execution.
    pub number: u32,
    /// Which round.
    pub round: u32,
    /// The attempt that asked last.
    pub attempt: u32,
    /// The tool gave up its lease with this question.
    pub parked: bool,
    /// What answers name; never used twice in an execution.
    pub key: String,
    /// The tool's own name for it.
    pub name: String,
    /// The method of the protocol.
    pub method: String,
    /// Its parameters, exact.
    pub params: Payload,
    /// What the tool wants to see again, of a parked round.
    pub state: Option<Payload>,
    /// When it was asked.
    pub asked_at_ms: i64,
    /// What closed it; absent while it is open.
    pub outcome: Option<InputOutcome>,
    /// The answer, exact.
    pub answer: Option<Payload>,
}

/// Answers to questions of one execution.
#[derive(Clone, Debug)]
pub struct AnswerInputs {
    /// Which execution.
    pub id: ExecutionId,
    /// What closes which questions.
    pub answers: Vec<NewAnswer>,
    /// Who says so.
    pub by: String,
    /// The write's id.
    pub operation: OperationId,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct NewAnswer {
    /// The question's number.
    pub number: u32,
    /// What closes it.
    pub outcome: InputOutcome,
    /// The answer, exact.
    pub text: Option<Payload>,
    /// Its canonical hash: the same answer again has the same.
    pub hash: Option<String>,
}

/// What became of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It counts.
    Taken,
    /// The question has this answer already.
    Same,
    /// The question has another answer; it stays.
    Other,
    /// There is no such question, or its execution has ended.
    Unknown,
}

/// What became of [`AnswerInputs`].
#[derive(Clone, Debug)]
pub struct AnsweredInputs {
    /// The row after that; it has gone on when nothing is open any more.
    pub head: Box<Head>,
    /// In the order of the answers.
    pub fates: Vec<Fate>,
    /// Every question of the execution.
    pub rows: Vec<InputRow>,
}

/// A key that seals what clients bring back.
#[derive(Clone, PartialEq, Eq)]
pub struct SealingKey {
    /// Which; grows.
    pub generation: i64,
    /// The secret.
    pub key: [u8; 32],
    /// Milliseconds since the epoch.
    pub created_at_ms: i64,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealingKey({})", self.generation)
    }
}

/// A wish for keys.
#[derive(Clone)]
pub struct WantedKeys {
    /// The next key, should one be due.
    pub fresh: [u8; 32],
    /// One is due when the newest was made before then, in milliseconds since the epoch.
    pub due_before_ms: i64,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
}
