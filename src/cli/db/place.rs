//! Which stores a `db` command is about: files and databases. Opens none.

use std::path::PathBuf;

use crate::cli::args::StoreFlags;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stores;
use crate::config::{Loaded, mask_url};
use crate::serve::settings;
use crate::store::{PostgresSettings, is_postgres};

/// A store, there or not.
#[derive(Clone)]
pub enum Place {
    /// An SQLite file.
    File(StoreFile),
    /// A PostgreSQL database.
    Database(Database),
}

/// A store's file, there or not, and what people call it.
#[derive(Clone, Debug)]
pub struct StoreFile {
    /// `default`, or the name of a `wrap`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// A database, there or not, and what people call it.
#[derive(Clone)]
pub struct Database {
    /// `default`, mostly.
    pub name: String,
    /// Where it is; it may hold a password.
    pub url: String,
    /// How to reach it.
    pub settings: Box<PostgresSettings>,
}

impl Database {
    /// For people: without the password.
    pub fn shown(&self) -> String {
        mask_url(&self.url)
    }
}

impl Place {
    /// Of a URL. Errors: no store has it.
    pub fn of(name: &str, url: &str, loaded: &Loaded) -> Result<Place, Failure> {
        if is_postgres(url) {
            let mut settings = Box::new(settings::store(&loaded.config).postgres);
            // What looks after a store changes no schema, unless it is told to.
            settings.migrates = false;
            return Ok(Place::Database(Database { name: name.to_owned(), url: url.to_owned(), settings }));
        }
        match stores::sqlite_path(url) {
            Some(path) if !path.as_os_str().is_empty() => Ok(Place::File(StoreFile { name: name.to_owned(), path })),
            _ => {
                Err(Failure::usage("this is no store").next("name one as sqlite:PATH or postgres://USER@HOST/DATABASE"))
            }
        }
    }

    fn name(&self) -> &str {
        match self {
            Place::File(file) => &file.name,
            Place::Database(database) => &database.name,
        }
    }

    /// A database is there until it turns out that it is not.
    fn exists(&self) -> bool {
        match self {
            Place::File(file) => file.path.exists(),
            Place::Database(_) => true,
        }
    }

    fn missing(&self) -> Failure {
        let shown = match self {
            Place::File(file) => file.path.display().to_string(),
            Place::Database(database) => database.shown(),
        };
        Failure::new(Exit::NotFound, format!("there is no store at {shown}"))
            .next("the first start of `durable-mcp serve` or `wrap` makes it")
    }
}

/// Every store that is meant and there. An explicit one must be there.
pub fn all(flags: &StoreFlags, loaded: &Loaded) -> Result<Vec<Place>, Failure> {
    if flags.name.is_some() {
        return Ok(vec![one(flags, loaded)?]);
    }
    let mut places = Vec::new();
    for (name, url) in stores::urls(&flags.configuration, loaded) {
        places.push(Place::of(&name, &url, loaded)?);
    }
    if flags.configuration.store.is_some()
        && let Some(place) = places.iter().find(|place| !place.exists())
    {
        return Err(place.missing());
    }
    places.retain(Place::exists);
    Ok(places)
}

/// The one store that is meant, which is there. Errors: none, or several and no name.
pub fn one(flags: &StoreFlags, loaded: &Loaded) -> Result<Place, Failure> {
    let place = target(flags, loaded)?;
    if place.exists() { Ok(place) } else { Err(place.missing()) }
}

/// The one store that is meant, there or not.
pub fn target(flags: &StoreFlags, loaded: &Loaded) -> Result<Place, Failure> {
    let urls = stores::urls(&flags.configuration, loaded);
    let Some(wanted) = &flags.name else {
        let places = urls.iter().map(|(name, url)| Place::of(name, url, loaded));
        let mut places = places.collect::<Result<Vec<_>, _>>()?;
        let default = places.remove(0);
        if places.is_empty() || default.exists() && places.iter().all(|place| !place.exists()) {
            return Ok(default);
        }
        let names: Vec<&str> = std::iter::once(&default).chain(&places).map(Place::name).collect();
        return Err(Failure::usage(format!("there are several stores: {}", names.join(", ")))
            .next("name one with --name, --store or --config"));
    };
    // The stores of `wrap` are in the data folder whatever the configuration names.
    let wraps = stores::wraps(&loaded.data_dir);
    match urls.iter().chain(&wraps).find(|(name, _)| name == wanted) {
        Some((name, url)) => Place::of(name, url, loaded),
        None => Err(Failure::new(Exit::NotFound, format!("there is no store named {wanted}"))
            .next("`durable-mcp db status` shows the names")),
    }
}
