//! The conformance suite on SQLite, and what is true of this driver only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tempfile::TempDir;

use super::{SqliteSettings, SqliteStore};
use crate::store::conformance::{Ground, cases};
use crate::store::{Result, Store};

/// A file in a folder that goes with the test.
struct TempFile {
    folder: TempDir,
    settings: SqliteSettings,
}

impl TempFile {
    fn new() -> TempFile {
        TempFile { folder: tempfile::tempdir().unwrap(), settings: SqliteSettings::for_tests() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }
}

#[async_trait]
impl Ground for TempFile {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(SqliteStore::open(Path::new(&self.path()), &self.settings).await?))
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
        $(mod $theme {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::conforms(stringify!($case)).await;
            })*
        })*
    };
}

crate::store::conformance::store_cases!(stamp_cases);
