//! From a URL to a driver. The one place that knows which drivers there are.

use std::path::Path;
use std::sync::Arc;

use super::sqlite::{SqliteSettings, SqliteStore};
use super::{Error, Result, Store};

/// Opens the store at `url`: `sqlite:PATH`.
///
/// # Errors
///
/// [`Error::Unavailable`] for a URL no driver takes; else what the driver says.
pub async fn open(url: &str, settings: &SqliteSettings) -> Result<Arc<dyn Store>> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(Error::Unavailable(format!("{url:?} is no store URL; write sqlite:PATH")));
    };
    match scheme {
        "sqlite" => {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            Ok(Arc::new(SqliteStore::open(Path::new(path), settings).await?))
        }
        // The rest of the URL may hold a password.
        "postgres" | "postgresql" => Err(Error::Unavailable(
            "this version stores in SQLite only; write sqlite:PATH instead of a PostgreSQL URL".into(),
        )),
        _ => Err(Error::Unavailable(format!("no store has the scheme {scheme:?}; write sqlite:PATH"))),
    }
}
