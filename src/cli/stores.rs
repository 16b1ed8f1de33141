//! The stores of this user: the one of a configuration, or the default one and those of every `wrap`. Opens files that
//! are there; a look at executions makes none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::ConfigFlags;
use super::failure::Failure;
use crate::config::Loaded;
use crate::serve::settings;
use crate::store::{self, Store, StoreSettings};

/// A store that is open, and what people call it.
pub struct NamedStore {
    /// `default`, or the name of a `wrap`.
    pub name: String,
    /// The store.
    pub store: Arc<dyn Store>,
}

/// Where the store of a `wrap` of this name is.
pub fn wrap_path(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join("wrap").join(format!("{name}.db"))
}

/// The store of a configuration, made if it is not there.
pub async fn open(loaded: &Loaded) -> Result<Arc<dyn Store>, Failure> {
    let url = url_of(loaded);
    if let Some(folder) = sqlite_path(&url).and_then(|path| path.parent().map(Path::to_path_buf)) {
        make_private_folder(&folder)
            .map_err(|error| Failure::usage(format!("the folder {} can not be made: {error}", folder.display())))?;
    }
    open_url(&url, &settings::store(&loaded.config)).await
}

/// The stores to look for executions in: with a configuration or `--store` that one, else all.
pub async fn for_reading(flags: &ConfigFlags) -> Result<Vec<NamedStore>, Failure> {
    let loaded = flags.load(|_| {})?;
    let mut settings = settings::store(&loaded.config);
    // A look changes no schema that servers of another release work with; a file is its user's own.
    settings.postgres.migrates = false;
    let mut stores = Vec::new();
    for (name, url) in urls(flags, &loaded) {
        // Opening would make the file, and an empty answer is the true one.
        if sqlite_path(&url).is_none_or(|path| path.exists()) {
            stores.push(NamedStore { name, store: open_url(&url, &settings).await? });
        }
    }
    Ok(stores)
}

async fn open_url(url: &str, settings: &StoreSettings) -> Result<Arc<dyn Store>, Failure> {
    Ok(store::open(url, settings).await?)
}

/// Names and URLs of the stores that are meant, there or not: with a configuration or `--store` that one, else all.
pub fn urls(flags: &ConfigFlags, loaded: &Loaded) -> Vec<(String, String)> {
    let mut urls = vec![("default".to_owned(), url_of(loaded))];
    if flags.config.is_none() && flags.store.is_none() {
        urls.extend(wraps(&loaded.data_dir));
    }
    urls
}

/// Names and URLs of the stores of every `wrap`.
pub fn wraps(data_dir: &Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(data_dir.join("wrap")) else { return Vec::new() };
    let mut found: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            (path.extension()? == "db").then_some(())?;
            Some((path.file_stem()?.to_str()?.to_owned(), format!("sqlite:{}", path.to_str()?)))
        })
        .collect();
    found.sort();
    found
}

/// The URL of the store of a configuration. It may hold a password.
pub fn url_of(loaded: &Loaded) -> String {
    match &loaded.config.store.url {
        Some(url) => url.expose().to_owned(),
        None => format!("sqlite:{}", loaded.data_dir.join("durable-mcp.db").display()),
    }
}

/// The file of an SQLite store.
pub fn sqlite_path(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:")?;
    Some(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
}

/// Makes a folder that only its user can enter. An existing one stays as it is.
pub fn make_private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
