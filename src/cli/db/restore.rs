//! `db restore FILE`: checks the backup, puts it in the place of a store that nobody uses, and says what becomes of the
//! calls that had not ended when the backup was made.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::place::{self, Database, Place, StoreFile};
use super::progress::Progress;
use super::{blocking, scratch, verify};
use crate::cli::args::RestoreArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stores::make_private_folder;
use crate::engine::clock::Clock;
use crate::model::execution::State;
use crate::store::postgres;
use crate::store::sqlite::{self, Restore, Restored, Verified};
use crate::store::transfer::{self, Source};

/// Runs the command.
pub async fn run(args: RestoreArgs) -> Result<Exit, Failure> {
    let loaded = args.place.configuration.load(|_| {})?;
    let place = match &args.into {
        Some(text) => Place::of("restored", &url(text), &loaded)?,
        None => place::target(&args.place, &loaded)?,
    };
    if !args.file.exists() {
        return Err(Failure::new(Exit::NotFound, format!("there is no backup at {}", args.file.display())));
    }
    let store = match place {
        Place::File(store) => store,
        Place::Database(database) => return into_database(&args, &database).await,
    };
    make_folder(&store)?;
    let (restored, verified) = match Source::of_file(&args.file) {
        Source::Sqlite(_) => copy(&args, &store).await?,
        archive => {
            let done = transfer::into_sqlite(&archive, &store.path, args.force, Clock::System.now_ms()).await;
            let (restored, carried) = done.map_err(Failure::from).map_err(advise)?;
            (restored, carried.verified.unwrap_or_default())
        }
    };
    let path = store.path.clone();
    let status = blocking(move || sqlite::status(&path, Clock::System.now_ms())).await?;
    eprintln!("{} holds the backup: {}", store.path.display(), verify::sentence(&verified));
    if let Some(old) = restored.old {
        eprintln!("the store that was there is now {}", old.display());
    }
    in_flight(&status.states).iter().for_each(|line| eprintln!("{line}"));
    Ok(Exit::Ok)
}

/// Rows of a file or an archive into an empty database.
async fn into_database(args: &RestoreArgs, database: &Database) -> Result<Exit, Failure> {
    if args.force {
        return Err(Failure::usage("--force puts a file aside, and the store to make is a database")
            .next("restore into an empty database, or into a schema of its own (store.schema)"));
    }
    let scratch = scratch()?;
    let (source, to) = (Source::of_file(&args.file), (database.url.as_str(), &*database.settings));
    let carried = transfer::into_postgres(&source, to, &scratch.path().join("checked.db")).await;
    let carried = carried.map_err(Failure::from).map_err(advise)?;
    let verified = carried.verified.unwrap_or_default();
    eprintln!("{} holds the backup: {}", database.shown(), verify::sentence(&verified));
    let status = postgres::status(&database.url, &database.settings, Clock::System.now_ms()).await?;
    in_flight(&status.states).iter().for_each(|line| eprintln!("{line}"));
    Ok(Exit::Ok)
}

fn make_folder(store: &StoreFile) -> Result<(), Failure> {
    if let Some(folder) = store.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_private_folder(folder)
            .map_err(|error| Failure::usage(format!("the folder {} can not be made: {error}", folder.display())))?;
    }
    Ok(())
}

/// A copy of a file is checked first, then put in the place of the store.
async fn copy(args: &RestoreArgs, store: &StoreFile) -> Result<(Restored, Verified), Failure> {
    let backup = args.file.clone();
    let verified = blocking(move || {
        verify::verify(&backup, &mut |finding| {
            eprintln!("{}", verify::text("backup", finding));
            ControlFlow::Continue(())
        })
    })
    .await?;
    if verified.findings > 0 {
        let error = format!("the backup {} does not hold together", args.file.display());
        return Err(Failure::new(Exit::Failure, error).next("the store was left as it is; restore another backup"));
    }
    let (from, to, force) = (args.file.clone(), store.path.clone(), args.force);
    let restored = blocking(move || {
        let bar = Progress::new("pages");
        let what = Restore { from: &from, to: &to, put_aside: force, now_ms: Clock::System.now_ms() };
        sqlite::restore(what, &mut |done, all| bar.set(done, all))
    });
    Ok((restored.await.map_err(advise)?, verified))
}

/// A store by its URL, or by its path alone.
fn url(text: &str) -> String {
    if text.contains(':') { text.to_owned() } else { format!("sqlite:{text}") }
}

fn advise(failure: Failure) -> Failure {
    let next = match &failure.error {
        error if error.contains("the database holds") => {
            return Failure { exit: Exit::Conflict as u8, ..failure }.next("the database was left as it is");
        }
        error if error.contains("is in use") => "stop the processes that use it first; --force does not help here",
        error if error.contains("holds executions") || error.ends_with("is damaged") => {
            "add --force to put it aside, or name another store with --into"
        }
        error if error.contains("the archive") || error.contains("hold together") => {
            return failure.next("the store was left as it is; restore another backup");
        }
        _ => return failure,
    };
    Failure { exit: Exit::Conflict as u8, ..failure }.next(next)
}

/// What the next start does with what had not ended.
fn in_flight(counts: &BTreeMap<State, u64>) -> Vec<String> {
    let count = |states: &[State]| states.iter().filter_map(|state| counts.get(state)).sum::<u64>();
    let (leased, waiting) = (count(&[State::Leased, State::Waiting]), count(&[State::Ready, State::Scheduled]));
    let mut lines = Vec::new();
    if leased > 0 {
        lines.push(format!(
            "{leased} executions ran when the backup was made: the next start settles them as those of a dead process \
             (at_least_once runs again, at_most_once becomes unknown)"
        ));
    }
    if waiting > 0 {
        lines.push(format!(
            "{waiting} executions waited to run when the backup was made: the next start runs them, also if they ran since; \
             `durable-mcp executions cancel` before it prevents that"
        ));
    }
    lines
}
