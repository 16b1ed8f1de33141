//! From where to where: any source into an archive or a store. What arrives is checked by the rules of a store before it
//! gets its name, and what is refused leaves nothing behind.

use std::fs::{self, OpenOptions};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::{Parts, Sums, archive};
use crate::store::postgres::{self, PostgresSettings};
use crate::store::sqlite::{self, Replace, Restored, Told, Verified};
use crate::store::{Error, Result};

/// Where rows come from.
#[derive(Clone)]
pub enum Source {
    /// An archive.
    Archive(PathBuf),
    /// A store in an SQLite file, also while it is used.
    Sqlite(PathBuf),
    /// A store in a PostgreSQL database, also while it is used: its URL, which may hold a password, and how to reach it.
    Postgres(String, Box<PostgresSettings>),
}

impl Source {
    /// What is in this file.
    pub fn of_file(path: &Path) -> Source {
        match archive::is_archive(path) {
            true => Source::Archive(path.to_owned()),
            false => Source::Sqlite(path.to_owned()),
        }
    }

    fn rows(&self) -> Parts {
        match self {
            Source::Archive(path) => archive::read(path),
            Source::Sqlite(path) => sqlite::rows_of(path),
            Source::Postgres(url, settings) => postgres::rows_of(url, settings),
        }
    }
}

/// What arrived.
#[derive(Clone, Debug)]
pub struct Carried {
    /// Rows, table by table.
    pub sums: Sums,
    /// What was checked, unless nobody wanted to.
    pub verified: Option<Verified>,
}

/// Writes an archive at `to`, which gets its name once it was read again and holds together. `check` may be left out for a
/// store that is damaged.
///
/// # Errors
///
/// [`Error::CannotWrite`] when a file is there that may not be replaced, [`Error::Damaged`] when a rule does not hold, and
/// what the source says.
pub async fn into_archive(source: &Source, to: &Path, replace: bool, check: bool) -> Result<Carried> {
    if to.is_dir() || to.exists() && !replace {
        let what = if to.is_dir() { "is a folder" } else { "exists already" };
        return Err(Error::CannotWrite(format!("{} {what}", to.display())));
    }
    let (part, scratch, to) = (with_suffix(to, ".part"), with_suffix(to, ".checking"), to.to_owned());
    let rows = source.rows();
    blocking(move || {
        let made = make_archive(rows, &part, check.then_some(&*scratch));
        let made = made.and_then(|carried| sqlite::name_copy(&part, &to, replace).map(|()| carried));
        if made.is_err() {
            // What is left of an archive is of no use; its being there says nothing new.
            let _ = fs::remove_file(&part);
        }
        made
    })
    .await
}

fn make_archive(mut rows: Parts, part: &Path, scratch: Option<&Path>) -> Result<Carried> {
    let failed = |error: std::io::Error| Error::CannotWrite(format!("{}: {error}", part.display()));
    sqlite::create_private(part).map_err(failed)?;
    let file = OpenOptions::new().write(true).truncate(true).open(part).map_err(failed)?;
    let sums = archive::write(file, part, &mut rows)?;
    let verified = match scratch {
        None => None,
        Some(scratch) => {
            let checked = fill_checked(archive::read(part), scratch);
            let _ = fs::remove_file(scratch);
            let (read, verified) = checked?;
            if let Some(table) = read.differs(&sums) {
                return Err(Error::Damaged(format!("{}: {table} reads back differently", part.display())));
            }
            Some(verified)
        }
    };
    Ok(Carried { sums, verified })
}

/// Puts what the source holds in the place of the store in a file, which nobody may use.
///
/// # Errors
///
/// As of [`sqlite::restore`], [`Error::Damaged`] when what came does not hold together, and what the source says. The
/// store is then as it was.
pub async fn into_sqlite(source: &Source, to: &Path, put_aside: bool, now_ms: i64) -> Result<(Restored, Carried)> {
    let (source, to) = (source.clone(), to.to_owned());
    blocking(move || {
        let mut carried = None;
        let restored = sqlite::replace(Replace { to: &to, put_aside, now_ms }, &mut |fresh| {
            let (sums, verified) = fill_checked(source.rows(), fresh)?;
            carried = Some(Carried { sums, verified: Some(verified) });
            Ok(())
        })?;
        let carried = carried.ok_or_else(|| Error::Internal("a store was replaced by nothing".into()))?;
        Ok((restored, carried))
    })
    .await
}

/// Puts what the source holds into the empty store at `url`, which nobody may use. What comes is held against every rule
/// first, in a file below `scratch` that is gone afterwards.
///
/// # Errors
///
/// As of [`postgres::load`], [`Error::Damaged`] when what came does not hold together, and what the source says. The
/// database is then as it was, but for its schema.
pub async fn into_postgres(
    source: &Source,
    (url, settings): (&str, &PostgresSettings),
    scratch: &Path,
) -> Result<Carried> {
    let (checked, scratch) = (source.rows(), scratch.to_owned());
    let (sums, verified) = blocking(move || {
        let checked = fill_checked(checked, &scratch);
        let _ = fs::remove_file(&scratch);
        checked
    })
    .await?;
    let written = postgres::load(url, settings, &mut source.rows()).await?;
    match written.differs(&sums) {
        None => Ok(Carried { sums: written, verified: Some(verified) }),
        // Both were read whole: the source is one that goes on.
        Some(table) => Err(Error::Unavailable(format!(
            "{table} changed while it was copied; the store that was made is one moment, but not the one that was checked: \
             run `durable-mcp db verify` on it"
        ))),
    }
}

/// Holds what the source has against every rule, in a file at `scratch` that is gone afterwards. For stores that are
/// reached over a network: each row is read once, in one moment. What guards the rows of a database is looked at there.
///
/// # Errors
///
/// What the source says.
pub async fn verify(
    source: &Source,
    scratch: &Path,
    mut tell: impl FnMut(Told) -> ControlFlow<()> + Send + 'static,
) -> Result<Verified> {
    let unguarded = match source {
        Source::Postgres(url, settings) => postgres::guards(url, settings).await?,
        Source::Archive(_) | Source::Sqlite(_) => Vec::new(),
    };
    let findings = unguarded.len() as u64;
    for finding in unguarded {
        if tell(Told::Found(finding)).is_break() {
            return Ok(Verified { findings, ..Verified::default() });
        }
    }
    let (mut rows, scratch) = (source.rows(), scratch.to_owned());
    blocking(move || {
        let verified = sqlite::fill(&scratch, &mut rows).and_then(|_| sqlite::verify(&scratch, &mut tell));
        let _ = fs::remove_file(&scratch);
        verified.map(|verified| Verified { findings: verified.findings + findings, ..verified })
    })
    .await
}

/// A fresh file of rows, held against every rule.
fn fill_checked(mut rows: Parts, path: &Path) -> Result<(Sums, Verified)> {
    let sums = sqlite::fill(path, &mut rows)?;
    let mut first = None;
    let verified = sqlite::verify(path, &mut |told| {
        if let Told::Found(finding) = told {
            first.get_or_insert(finding);
        }
        ControlFlow::Continue(())
    })?;
    match first {
        None => Ok((sums, verified)),
        Some(first) => {
            let about = first.execution.map_or(String::new(), |id| format!(" {id}:"));
            let more = verified.findings - 1;
            let rule = first.rule.as_str();
            Err(Error::Damaged(format!(
                "what came does not hold together: {rule}:{about} {}, and {more} more",
                first.what
            )))
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::Internal(format!("the work was lost: {error}")))?
}
