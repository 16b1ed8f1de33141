//! `db backup FILE`: a copy of one store as of one moment, made while calls go on: of the SQLite file as it is, which is
//! quick and opens as a store, or an archive, whose form no database owns. A database is backed up into archives only.

use std::ops::ControlFlow;

use super::place::{Place, StoreFile};
use super::progress::Progress;
use super::{blocking, place, size, verify};
use crate::cli::args::BackupArgs;
use crate::cli::failure::{Exit, Failure};
use crate::store::sqlite::{self, BackUp};
use crate::store::transfer::{self, Source};
use crate::store::{Error, Result as StoreResult};

/// Runs the command.
pub async fn run(args: BackupArgs) -> Result<Exit, Failure> {
    let loaded = args.place.configuration.load(|_| {})?;
    let place = place::one(&args.place, &loaded)?;
    if args.file.exists() && !args.force {
        let error = format!("{} exists already", args.file.display());
        return Err(Failure::new(Exit::Conflict, error).next("name another file, or add --force to replace it"));
    }
    let store = match (place, args.archive) {
        (Place::File(store), false) => store,
        (Place::File(store), true) => return archive(&args, Source::Sqlite(store.path.clone()), &shown(&store)).await,
        (Place::Database(database), true) => {
            let shown = database.shown();
            return archive(&args, Source::Postgres(database.url, database.settings), &shown).await;
        }
        (Place::Database(_), false) => {
            return Err(Failure::usage("this store is a database, and only an SQLite file can be copied as it is").next(
                "add --archive for rows in a form that no database owns, or use the database's own means (pg_dump, WAL \
                 archiving)",
            ));
        }
    };
    let (from, to, replace, check) = (store.path.clone(), args.file.clone(), args.force, !args.no_check);
    let verified = blocking(move || {
        let mut verified = None;
        let bar = Progress::new("pages");
        let mut accept = |copy: &std::path::Path| -> StoreResult<()> {
            if check {
                let mut first = None;
                let done = verify::verify(copy, &mut |finding| {
                    first.get_or_insert_with(|| verify::text("backup", finding));
                    ControlFlow::Continue(())
                })?;
                if let Some(first) = first {
                    let more = done.findings - 1;
                    return Err(Error::Damaged(format!(
                        "the copy does not hold together, as the store: {first}, and {more} more"
                    )));
                }
                verified = Some(done);
            }
            Ok(())
        };
        sqlite::backup(BackUp { from: &from, to: &to, replace }, &mut |done, all| bar.set(done, all), &mut accept)?;
        drop(bar);
        Ok(verified)
    })
    .await
    .map_err(advise)?;
    let bytes = args.file.metadata().map_or(0, |metadata| metadata.len());
    let checked = verified.map_or("not checked".to_owned(), |verified| verify::sentence(&verified));
    eprintln!("{} is a copy of {} ({}): {checked}", args.file.display(), store.path.display(), size(bytes));
    Ok(Exit::Ok)
}

fn shown(store: &StoreFile) -> String {
    store.path.display().to_string()
}

async fn archive(args: &BackupArgs, source: Source, shown: &str) -> Result<Exit, Failure> {
    let carried = transfer::into_archive(&source, &args.file, args.force, !args.no_check).await;
    let carried = carried.map_err(Failure::from).map_err(advise)?;
    let bytes = args.file.metadata().map_or(0, |metadata| metadata.len());
    let checked = carried.verified.map_or("not checked".to_owned(), |verified| verify::sentence(&verified));
    eprintln!("{} is an archive of {shown} ({}): {checked}", args.file.display(), size(bytes));
    Ok(Exit::Ok)
}

fn advise(failure: Failure) -> Failure {
    match failure.error.contains("hold together") {
        true => failure.next("`durable-mcp db verify` lists what is wrong; --no-check copies it as it is"),
        false => failure,
    }
}
