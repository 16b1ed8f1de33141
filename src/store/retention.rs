//! How long ended executions are kept, and of which of them that is said. Deletes nothing: the drivers do.

use crate::model::execution::State;

/// How long things are kept, in milliseconds after the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Payloads.
    pub payloads_ms: i64,
    /// Ended executions with their events; `unknown` is never deleted.
    pub executions_ms: i64,
    /// Executions at most per commit where one commit at a time is made; a driver in which nobody waits may take more.
    pub batch: usize,
}

/// Which ended executions a [`Retention`] is for; by default all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Only those that ended so.
    pub state: Option<State>,
    /// Only those of this namespace.
    pub namespace: Option<String>,
    /// None of these namespaces.
    pub but: Vec<String>,
}

/// What one call of [`super::Store::prune`] deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Executions that are kept, and whose payloads are gone.
    pub payloads: usize,
    /// Executions that are gone.
    pub executions: usize,
    /// Expired keys.
    pub keys: usize,
}

impl std::ops::AddAssign for Pruned {
    fn add_assign(&mut self, more: Pruned) {
        self.payloads += more.payloads;
        self.executions += more.executions;
        self.keys += more.keys;
    }
}
