//! The policies executions were submitted under: each stored once, under a hash of its text. Remembers what it read,
//! since the hash makes an entry true for ever.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, RwLock};

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::{Fault, Sql};
use crate::model::policy::Policy;
use crate::store::encoding;

/// Policies remembered before forgetting all of them.
const REMEMBERED_MAX: usize = 1_024;

/// Policies by id, for every connection.
#[derive(Default)]
pub(super) struct Policies {
    by_id: RwLock<HashMap<String, Policy>>,
}

impl Policies {
    const SELECT: &str = "SELECT policy FROM policies WHERE id = ?1";

    /// The policy stored under `id`.
    pub(super) fn read(&self, connection: &Connection, id: &str) -> Sql<Policy> {
        if let Some(policy) = self.by_id.read().expect("no thread panics with this lock").get(id) {
            return Ok(policy.clone());
        }
        let text: Option<String> =
            connection.prepare_cached(Self::SELECT)?.query_row([id], |row| row.get(0)).optional()?;
        let text = text.ok_or_else(|| Fault::damaged(format!("policy {id} is missing")))?;
        let policy: Policy =
            serde_json::from_str(&text).map_err(|error| Fault::damaged(format!("policy {id}: {error}")))?;
        let mut by_id = self.by_id.write().expect("no thread panics with this lock");
        if by_id.len() >= REMEMBERED_MAX {
            by_id.clear();
        }
        by_id.insert(id.to_owned(), policy.clone());
        Ok(policy)
    }
}

/// The writer's view: which policies are known to be stored.
#[derive(Default)]
pub(super) struct StoredPolicies {
    named: Vec<(Policy, Arc<str>)>,
    stored: HashSet<Arc<str>>,
}

impl StoredPolicies {
    const INSERT: &str = "INSERT INTO policies (id, policy) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING";

    /// The id of `policy`, which is stored if it was not.
    pub(super) fn id(&mut self, connection: &Connection, policy: &Policy) -> Sql<Arc<str>> {
        if let Some((_, id)) = self.named.iter().find(|(known, _)| known == policy)
            && self.stored.contains(id)
        {
            return Ok(Arc::clone(id));
        }
        let text = serde_json::to_string(policy).map_err(|error| Fault::internal(format!("policy: {error}")))?;
        let id: Arc<str> = encoding::policy_id(&text).into();
        connection.prepare_cached(Self::INSERT)?.execute(params![id, text])?;
        if self.named.len() >= REMEMBERED_MAX {
            self.named.clear();
            self.stored.clear();
        }
        if !self.named.iter().any(|(known, _)| known == policy) {
            self.named.push((policy.clone(), Arc::clone(&id)));
        }
        self.stored.insert(Arc::clone(&id));
        Ok(id)
    }

    /// What was stored may have been rolled back.
    pub(super) fn forget(&mut self) {
        self.stored.clear();
    }
}
