//! The policies executions were submitted under: each stored once, under a hash of its text. Remembers what it read,
//! since the hash makes an entry true for ever.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use tokio_postgres::types::Type;

use super::db::Reading;
use super::fault::{Fault, Sql};
use crate::model::policy::Policy;
use crate::store::encoding;

/// Policies remembered before forgetting all of them.
const REMEMBERED_MAX: usize = 1_024;

/// Policies by id, for every connection.
#[derive(Default)]
pub(super) struct Policies {
    by_id: RwLock<HashMap<String, Policy>>,
    stored: RwLock<Vec<(Policy, Arc<str>)>>,
}

impl Policies {
    fn known(&self, id: &str) -> Option<Policy> {
        self.by_id.read().expect("no thread panics with this lock").get(id).cloned()
    }

    fn remember(&self, id: &str, policy: &Policy) {
        let mut by_id = self.by_id.write().expect("no thread panics with this lock");
        if by_id.len() >= REMEMBERED_MAX {
            by_id.clear();
        }
        by_id.insert(id.to_owned(), policy.clone());
    }

    /// The id of a policy known to be stored.
    pub(super) fn stored_id(&self, policy: &Policy) -> Option<Arc<str>> {
        let stored = self.stored.read().expect("no thread panics with this lock");
        stored.iter().find(|(known, _)| known == policy).map(|(_, id)| Arc::clone(id))
    }

    /// The policy was committed under this id.
    pub(super) fn note_stored(&self, policy: &Policy, id: &Arc<str>) {
        let mut stored = self.stored.write().expect("no thread panics with this lock");
        if stored.len() >= REMEMBERED_MAX {
            stored.clear();
        }
        stored.push((policy.clone(), Arc::clone(id)));
    }
}

/// Policies, and a connection to read those not known yet.
#[derive(Clone, Copy)]
pub(super) struct PolicyReader<'a> {
    policies: &'a Policies,
    reading: &'a Reading<'a>,
}

impl<'a> PolicyReader<'a> {
    pub(super) fn new(policies: &'a Policies, reading: &'a Reading<'_>) -> PolicyReader<'a> {
        PolicyReader { policies, reading }
    }
}

const SELECT: &str = "SELECT policy FROM policies WHERE id = $1";

const INSERT: &str = "INSERT INTO policies (id, policy) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";

impl PolicyReader<'_> {
    /// The policy stored under `id`.
    pub(super) async fn read(self, id: &str) -> Sql<Policy> {
        if let Some(policy) = self.policies.known(id) {
            return Ok(policy);
        }
        let row = self.reading.query_opt(SELECT, &[(&id, Type::TEXT)]).await?;
        let row = row.ok_or_else(|| Fault::damaged(format!("policy {id} is missing")))?;
        let text: &str = row.try_get(0)?;
        let policy: Policy =
            serde_json::from_str(text).map_err(|error| Fault::damaged(format!("policy {id}: {error}")))?;
        self.policies.remember(id, &policy);
        Ok(policy)
    }

    /// Stores `policy`, unless it is there; its id. Whoever commits it says so with [`Policies::note_stored`].
    pub(super) async fn insert(self, policy: &Policy) -> Sql<Arc<str>> {
        let text = serde_json::to_string(policy).map_err(|error| Fault::internal(format!("policy: {error}")))?;
        let id: Arc<str> = encoding::policy_id(&text).into();
        self.reading.execute(INSERT, &[(&&*id, Type::TEXT), (&text, Type::TEXT)]).await?;
        Ok(id)
    }
}
