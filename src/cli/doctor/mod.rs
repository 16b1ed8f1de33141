//! `doctor`: looks at everything around the program that can be wrong and says, for each, what to do. Silent when all is
//! well. Repairs nothing, writes nothing into a store, and leaves no process behind.

mod check;
mod clients;
mod clock;
mod command;
mod database;
mod disk;
mod port;
mod ready;
mod servers;
mod store;
#[cfg(test)]
mod tests;

pub use check::{Check, Status};

use super::args::DoctorArgs;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::stores;
use crate::config::Loaded;
use crate::engine::clock::Clock;
use crate::serve::settings;
use crate::store::is_postgres;

/// Runs the command.
pub async fn run(args: DoctorArgs, out: Output) -> Result<Exit, Failure> {
    let mut checks = Vec::new();
    match args.configuration.load(|_| {}) {
        Ok(loaded) if args.ready => checks.push(ready::check(&loaded).await),
        Ok(loaded) => {
            checks.push(configuration(&loaded));
            // Servers need seconds, all else needs none: they wait for each other only here.
            let (servers, port) = tokio::join!(servers::check(&loaded, args.client.is_some()), port::check(&loaded));
            checks.extend(servers);
            checks.push(port);
            checks.extend(around_the_store(&args, &loaded).await?);
            checks.extend(clients::check(args.client, &loaded.data_dir).await?);
        }
        Err(failure) => checks.push(
            Check::of("configuration", None)
                .fail(failure.error.replace("\nerror: ", "; "), "`durable-mcp config check` shows it line by line"),
        ),
    }
    tell(&checks, &args, &out)?;
    let failed = checks.iter().any(|check| check.status == Status::Fail);
    Ok(if failed { Exit::Failure } else { Exit::Ok })
}

fn configuration(loaded: &Loaded) -> Check {
    let what = loaded.file.as_ref().map_or("the defaults, no file".to_owned(), |file| file.display().to_string());
    let check = Check::ok("configuration", None, what);
    match loaded.warnings.first() {
        None => check,
        Some(first) => {
            let more = loaded.warnings.len() - 1;
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            check.warn(format!("{first}{more}"), "`durable-mcp config check` shows all")
        }
    }
}

async fn around_the_store(args: &DoctorArgs, loaded: &Loaded) -> Result<Vec<Check>, Failure> {
    let (mut files, mut of_databases) = (Vec::new(), Vec::new());
    for (name, url) in stores::urls(&args.configuration, loaded) {
        if let Some(path) = stores::sqlite_path(&url) {
            files.push((name, path));
        } else if is_postgres(&url) {
            let settings = settings::store(&loaded.config).postgres;
            of_databases.extend(database::check(&name, &url, &settings).await);
        }
    }
    let data_dir = loaded.data_dir.clone();
    let now_ms = Clock::System.now_ms();
    let work = move || {
        let mut checks = Vec::new();
        let mut newest_ms = None;
        for (name, path) in &files {
            let (more, newest) = store::check(name, path, now_ms);
            checks.extend(more);
            newest_ms = newest_ms.max(newest);
        }
        let folders: std::collections::BTreeSet<_> =
            files.iter().map(|(_, path)| disk::place_of(path)).chain([disk::place_of(&data_dir)]).collect();
        for folder in &folders {
            checks.extend(disk::check(folder));
        }
        checks.push(clock::check(folders.iter().next().map(|folder| folder.as_path()), (now_ms, newest_ms)));
        checks
    };
    let done = tokio::task::spawn_blocking(work).await;
    let around = done.map_err(|error| Failure::new(Exit::Failure, format!("the check was lost: {error}")))?;
    of_databases.extend(around);
    Ok(of_databases)
}

fn tell(checks: &[Check], args: &DoctorArgs, out: &Output) -> Result<(), Failure> {
    for check in checks {
        if args.json {
            let line = serde_json::to_string(check).map_err(|error| Failure::new(Exit::Failure, error.to_string()))?;
            out.line(&line)?;
        } else if args.verbose || check.status != Status::Ok {
            out.line(&check.line())?;
        }
    }
    Ok(())
}
