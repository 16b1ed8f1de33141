//! What upstreams tell unasked: log messages, changed resources, changed lists. Stores nothing; whoever is not there
//! misses it.

use crate::model::id::ExecutionId;
use crate::store::Payload;

/// A notification of an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Whose it is.
    pub upstream: String,
    /// Who may see it.
    pub to: Addressee,
    /// Its method, such as `notifications/message`.
    pub method: String,
    /// Its parameters, as written.
    pub params: Option<Payload>,
}

/// Who may see a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressee {
    /// Every client.
    Everybody,
    /// The clients of one session.
    Session(String),
    /// The clients of one principal.
    Principal {
        /// Its namespace.
        namespace: String,
        /// Its subject.
        subject: String,
    },
    /// Whoever waits for one execution.
    Execution(ExecutionId),
}
