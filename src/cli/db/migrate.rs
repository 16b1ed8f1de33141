//! `db migrate`: brings the schema of a store to the one this program works with, and ends. For installations whose
//! servers only check it (`store.migrate = "check"`). What is done is the driver's affair.

use crate::cli::args::MigrateArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stores;
use crate::serve::settings;
use crate::store;

/// Runs the command.
pub async fn run(args: MigrateArgs) -> Result<Exit, Failure> {
    let loaded = args.configuration.load(|_| {})?;
    let url = stores::url_of(&loaded);
    if let Some(folder) = stores::sqlite_path(&url).as_deref().and_then(std::path::Path::parent) {
        stores::make_private_folder(folder)
            .map_err(|error| Failure::usage(format!("the folder {} can not be made: {error}", folder.display())))?;
    }
    // Whatever the configuration says: this is the command that may.
    let mut settings = settings::store(&loaded.config);
    settings.migrates(true);
    store::open(&url, &settings).await?.close().await;
    eprintln!("the schema is the one that this program works with");
    Ok(Exit::Ok)
}
