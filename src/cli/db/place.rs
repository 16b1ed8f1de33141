//! Which store files a `db` command is about. Opens none.

use std::path::PathBuf;

use crate::cli::args::StoreFlags;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stores;
use crate::config::Loaded;

/// A store's file, there or not, and what people call it.
#[derive(Clone, Debug)]
pub struct StoreFile {
    /// `default`, or the name of a `wrap`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

impl StoreFile {
    /// Of a URL. Errors: it is no file.
    pub fn of(name: &str, url: &str) -> Result<StoreFile, Failure> {
        match stores::sqlite_path(url) {
            Some(path) if !path.as_os_str().is_empty() => Ok(StoreFile { name: name.to_owned(), path }),
            _ => Err(Failure::usage("this store is no SQLite file").next("name one as sqlite:PATH")),
        }
    }
}

/// Every store that is meant and there. An explicit one must be there.
pub fn all(flags: &StoreFlags, loaded: &Loaded) -> Result<Vec<StoreFile>, Failure> {
    if flags.name.is_some() {
        return Ok(vec![one(flags, loaded)?]);
    }
    let mut files = Vec::new();
    for (name, url) in stores::urls(&flags.configuration, loaded) {
        files.push(StoreFile::of(&name, &url)?);
    }
    if flags.configuration.store.is_some()
        && let Some(file) = files.iter().find(|file| !file.path.exists())
    {
        return Err(missing(file));
    }
    files.retain(|file| file.path.exists());
    Ok(files)
}

/// The one store that is meant, which is there. Errors: none, or several and no name.
pub fn one(flags: &StoreFlags, loaded: &Loaded) -> Result<StoreFile, Failure> {
    let file = target(flags, loaded)?;
    if file.path.exists() { Ok(file) } else { Err(missing(&file)) }
}

/// The one store that is meant, there or not.
pub fn target(flags: &StoreFlags, loaded: &Loaded) -> Result<StoreFile, Failure> {
    let urls = stores::urls(&flags.configuration, loaded);
    let Some(wanted) = &flags.name else {
        let mut files = urls.iter().map(|(name, url)| StoreFile::of(name, url)).collect::<Result<Vec<_>, _>>()?;
        let default = files.remove(0);
        if files.is_empty() || default.path.exists() && files.iter().all(|file| !file.path.exists()) {
            return Ok(default);
        }
        let names: Vec<&str> = urls.iter().map(|(name, _)| name.as_str()).collect();
        return Err(Failure::usage(format!("there are several stores: {}", names.join(", ")))
            .next("name one with --name, --store or --config"));
    };
    // The stores of `wrap` are in the data folder whatever the configuration names.
    let wraps = stores::wraps(&loaded.data_dir);
    match urls.iter().chain(&wraps).find(|(name, _)| name == wanted) {
        Some((name, url)) => StoreFile::of(name, url),
        None => Err(Failure::new(Exit::NotFound, format!("there is no store named {wanted}"))
            .next("`durable-mcp db status` shows the names")),
    }
}

fn missing(file: &StoreFile) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no store at {}", file.path.display()))
        .next("the first start of `durable-mcp serve` or `wrap` makes it")
}
