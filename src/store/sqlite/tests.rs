//! The conformance suite on SQLite, and what is true of this driver only, by theme.

mod append_only;
mod checkpoints;
mod copies;
mod faults;
mod opening;
mod parts;
mod plans;
mod questions;
mod sharing;
mod turns;
mod verifying;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{SqliteSettings, SqliteStore};
use crate::store::conformance::{Ground, Scene, cases};
use crate::store::{Result, Store};

/// A file in a folder that goes with the test.
struct TempFile {
    folder: TempDir,
    settings: SqliteSettings,
}

impl TempFile {
    fn new() -> TempFile {
        TempFile::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut SqliteSettings)) -> TempFile {
        let mut settings = SqliteSettings::for_tests();
        change(&mut settings);
        TempFile { folder: tempfile::tempdir().unwrap(), settings }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    async fn store(&self) -> Result<SqliteStore> {
        SqliteStore::open(&self.path(), &self.settings).await
    }

    async fn scene(&self) -> Scene {
        Scene::open(self, "sqlite").await.unwrap()
    }

    /// A connection of another program.
    fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

#[async_trait]
impl Ground for TempFile {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.store().await?))
    }
}

async fn conforms(name: &str) {
    let case = cases().into_iter().find(|case| case.name == name).unwrap();
    if let Err(failure) = case.run(&TempFile::new()).await {
        panic!("{name}: {failure}");
    }
}

macro_rules! stamp_cases {
    ($($theme:ident: [$($case:ident,)*],)*) => {
        mod conformance {
            $(mod $theme {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::super::conforms(stringify!($case)).await;
                })*
            })*
        }
    };
}

crate::store::conformance::store_cases!(stamp_cases);
