//! `db migrate`: brings the schema of a store to the one this program works with, and ends. For installations whose
//! servers only check it (`store.migrate = "check"`). With `--role` it also makes the role that serves. What is done is the
//! driver's affair.

use crate::cli::args::MigrateArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stores;
use crate::serve::settings;
use crate::store::{self, Error, is_postgres, postgres};

/// Names that mean something else to a database, and lengths it would cut.
const ROLE_MAX: usize = 63;

/// Runs the command.
pub async fn run(args: MigrateArgs) -> Result<Exit, Failure> {
    let loaded = args.configuration.load(|_| {})?;
    let url = stores::url_of(&loaded);
    if let Some(role) = &args.role {
        check(role, &url)?;
    }
    if let Some(folder) = stores::sqlite_path(&url).as_deref().and_then(std::path::Path::parent) {
        stores::make_private_folder(folder)
            .map_err(|error| Failure::usage(format!("the folder {} can not be made: {error}", folder.display())))?;
    }
    // Whatever the configuration says: this is the command that may.
    let mut settings = settings::store(&loaded.config);
    settings.migrates(true);
    store::open(&url, &settings).await?.close().await;
    eprintln!("the schema is the one that this program works with");
    let Some(role) = &args.role else { return Ok(Exit::Ok) };
    let granted = postgres::grant(&url, &settings.postgres, role).await.map_err(|error| match error {
        Error::CannotWrite(told) => Failure::new(Exit::Auth, told),
        error => error.into(),
    })?;
    eprintln!("{role} can serve in the schema {}: it reads and writes rows, and only adds to the log", granted.schema);
    if granted.created {
        eprintln!("it was made without a password: ALTER ROLE \"{}\" PASSWORD '…'", role.replace('"', "\"\""));
    }
    match granted.prunes {
        true => eprintln!("retention works under it; run this again after an upgrade, for tables that are new then"),
        false => {
            eprintln!("it can not delete events: let the owner of the tables run `durable-mcp db prune` now and then")
        }
    }
    Ok(Exit::Ok)
}

fn check(role: &str, url: &str) -> Result<(), Failure> {
    if !is_postgres(url) {
        return Err(Failure::usage(
            "--role is for a PostgreSQL store: a file belongs to its user, whose rights it has",
        )
        .next("leave it out, or name a database with --store"));
    }
    let reserved = ["public", "none", "current_user", "session_user"].contains(&role.to_lowercase().as_str());
    if role.is_empty() || role.len() > ROLE_MAX || role.contains('\0') || reserved || role.starts_with("pg_") {
        return Err(Failure::usage(format!("{role:?} can not be the name of a role"))
            .next("choose one of 1 to 63 bytes, such as durable_mcp_serve"));
    }
    Ok(())
}
