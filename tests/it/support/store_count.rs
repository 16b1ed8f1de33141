//! How many executions a store holds, asked of the file itself: a second process beside the program. Changes nothing.

use std::path::Path;
use std::sync::Arc;

use durable_mcp::store::{self, ListQuery, Store, StoreSettings};

/// More than any test here stores.
const ALL: usize = 100_000;

pub struct StoreCount {
    store: Arc<dyn Store>,
}

impl StoreCount {
    /// Of a database that the program has made already.
    pub async fn of(database: &Path) -> StoreCount {
        assert!(database.exists(), "{} is not there yet", database.display());
        let url = format!("sqlite:{}", database.display());
        StoreCount { store: store::open(&url, &StoreSettings::default()).await.unwrap() }
    }

    pub async fn now(&self) -> usize {
        self.store.list(ListQuery { limit: ALL, ..ListQuery::default() }).await.unwrap().len()
    }
}
