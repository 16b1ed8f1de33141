//! The flags of `db`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ConfigFlags, duration};
use crate::config::units::Millis;

/// `db`.
#[derive(Debug, Args)]
pub struct DbArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DbCommand,
}

/// The commands of `db`.
#[derive(Debug, Subcommand)]
pub enum DbCommand {
    /// Bring the schema of the store to the one this program works with, for servers that only check it.
    #[command(after_help = "Examples:\n  durable-mcp db migrate\n\n\
                            On PostgreSQL, as the owner of the tables:\n  \
                            $ durable-mcp db migrate --role durable_mcp_serve")]
    Migrate(MigrateArgs),
    /// Show size, schema, executions per state and processes of every store; also while a server runs.
    #[command(after_help = "Example:\n  durable-mcp db status")]
    Status(DbReadArgs),
    /// Copy a store into one file while calls go on; the copy is checked before it gets its name.
    #[command(after_help = "Examples:\n  durable-mcp db backup durable-mcp.backup.db\n  \
                            durable-mcp db backup durable-mcp.archive --archive")]
    Backup(BackupArgs),
    /// Put a backup, a copy or an archive, in the place of a file that no process uses, or into an empty database.
    #[command(after_help = "Example:\n  durable-mcp db restore durable-mcp.backup.db --into sqlite:restored.db")]
    Restore(RestoreArgs),
    /// Delete what retention no longer keeps, now; executions whose outcome is unknown stay.
    #[command(after_help = "Example:\n  durable-mcp db prune --older-than 90d --dry-run")]
    Prune(PruneArgs),
    /// Check every execution against its events, payloads and keys, and the file itself.
    #[command(after_help = "Example:\n  durable-mcp db verify")]
    Verify(DbReadArgs),
    /// Prove that a PostgreSQL database, or one that speaks its protocol, keeps what a store promises: every case of the
    /// suite in a schema of its own, which is dropped after it.
    #[command(after_help = "Example:\n  durable-mcp db conformance --url postgres://admin@db.example/durable --json")]
    Conformance(ConformanceArgs),
}

/// `db conformance`.
#[derive(Debug, Args)]
pub struct ConformanceArgs {
    /// The database. Its user has to be allowed to make schemas there; nothing outside of them is touched.
    #[arg(long, value_name = "URL", env = "DURABLE_MCP_CONFORMANCE_URL", hide_env_values = true)]
    pub url: String,
    /// How far transactions are kept apart.
    #[arg(long, value_enum, default_value_t = IsolationFlag::Serializable)]
    pub isolation: IsolationFlag,
    /// The URL leads to a pooler in transaction mode.
    #[arg(long)]
    pub pooled: bool,
    /// Only cases whose name holds this text.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// How long a case may take.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub timeout: Millis,
    /// The report as JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

/// An isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum IsolationFlag {
    /// The default of the store.
    Serializable,
    /// Each statement sees what was committed before it.
    ReadCommitted,
}

/// `db migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// PostgreSQL: make this role, or grant it, what a process that serves needs: no change of the schema, and a log it can
    /// only add to.
    #[arg(long, value_name = "NAME")]
    pub role: Option<String>,
    #[command(flatten)]
    pub configuration: ConfigFlags,
}

/// A look at all stores that are meant.
#[derive(Debug, Args)]
pub struct DbReadArgs {
    #[command(flatten)]
    pub place: StoreFlags,
    /// JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

/// Which store.
#[derive(Clone, Debug, Default, Args)]
pub struct StoreFlags {
    #[command(flatten)]
    pub configuration: ConfigFlags,
    /// Name of the store: that of a `wrap`, or `default`.
    #[arg(long, value_name = "NAME", conflicts_with = "store")]
    pub name: Option<String>,
}

/// `db backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The file to make; only its owner can read it.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write an archive, rows of all tables in a form that no database owns, instead of a copy of the SQLite file.
    #[arg(long)]
    pub archive: bool,
    /// Replace a file that is there.
    #[arg(long)]
    pub force: bool,
    /// Keep the copy without checking it, as for a store that is damaged.
    #[arg(long)]
    pub no_check: bool,
    #[command(flatten)]
    pub place: StoreFlags,
}

/// `db restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The store to make of it, such as sqlite:PATH; without it that of the configuration.
    #[arg(long, value_name = "STORE", conflicts_with_all = ["store", "name"])]
    pub into: Option<String>,
    /// Put a store that holds executions aside instead of refusing.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub place: StoreFlags,
}

/// `db prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Only count.
    #[arg(long)]
    pub dry_run: bool,
    /// What ended so long ago (90d); without it as the configuration's retention says.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub older_than: Option<Millis>,
    /// Delete arguments and results only, and keep what happened.
    #[arg(long)]
    pub payloads_only: bool,
    /// The counts as one JSON object.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: StoreFlags,
}
