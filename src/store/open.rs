//! From a URL to a driver. The one place that knows which drivers there are.

use std::path::Path;
use std::sync::Arc;

use super::postgres::{PostgresSettings, PostgresStore};
use super::sqlite::{SqliteSettings, SqliteStore};
use super::{Error, Result, Store};

/// The limits of every driver; the URL says whose count.
#[derive(Clone, Debug, Default)]
pub struct StoreSettings {
    /// Of a file.
    pub sqlite: SqliteSettings,
    /// Of a database.
    pub postgres: PostgresSettings,
}

impl StoreSettings {
    /// Settings for tests.
    pub fn for_tests() -> Self {
        Self { sqlite: SqliteSettings::for_tests(), postgres: PostgresSettings::for_tests() }
    }

    /// Whether opening brings an older or new schema to the present one; else it only checks that it is there.
    pub fn migrates(&mut self, migrates: bool) {
        (self.sqlite.migrates, self.postgres.migrates) = (migrates, migrates);
    }
}

/// Whether a URL leads to a PostgreSQL database, or to one that speaks its protocol.
pub fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// Opens the store at `url`: `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
///
/// # Errors
///
/// [`Error::Unavailable`] for a URL no driver takes; else what the driver says.
pub async fn open(url: &str, settings: &StoreSettings) -> Result<Arc<dyn Store>> {
    const FORMS: &str = "write sqlite:PATH or postgres://USER@HOST/DATABASE";
    if is_postgres(url) {
        return Ok(Arc::new(PostgresStore::open(url, &settings.postgres).await?));
    }
    // What follows the scheme may hold a password.
    match url.split_once(':') {
        Some(("sqlite", rest)) => {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            Ok(Arc::new(SqliteStore::open(Path::new(path), &settings.sqlite).await?))
        }
        Some((scheme, _)) => Err(Error::Unavailable(format!("no store has the scheme {scheme:?}; {FORMS}"))),
        None => Err(Error::Unavailable(format!("this is no store URL; {FORMS}"))),
    }
}
