//! The flags of `token`.

use clap::{Args, Subcommand};

use super::{ConfigFlags, duration};
use crate::config::units::Millis;
use crate::model::principal::Scope;

/// `token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// The commands of `token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; it is printed once and can not be read again.
    #[command(after_help = "Example:\n  durable-mcp token create --principal ci --scope call,read --expires-in 90d")]
    Create(CreateArgs),
    /// List tokens, without their secrets.
    #[command(after_help = "Example:\n  durable-mcp token list --json")]
    List(TokenStoreArgs),
    /// End a token; running servers refuse it within a second.
    #[command(after_help = "Example:\n  durable-mcp token revoke 3f9a1c0b77de")]
    Revoke(RevokeArgs),
}

/// The store of the tokens.
#[derive(Debug, Args)]
pub struct TokenStoreArgs {
    #[command(flatten)]
    pub configuration: ConfigFlags,
    /// JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

/// `token create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Who the token stands for.
    #[arg(long, value_name = "NAME")]
    pub principal: String,
    /// The namespace it is good for.
    #[arg(long, default_value = "default")]
    pub namespace: String,
    /// What it permits: call, read, cancel, work, operate, admin.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', default_value = "call,read,cancel", value_parser = scope)]
    pub scope: Vec<Scope>,
    /// When it ends, from now (90d); without it never.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub expires_in: Option<Millis>,
    #[command(flatten)]
    pub place: TokenStoreArgs,
}

/// `token revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// The token's prefix, as `token list` shows it.
    pub prefix: String,
    #[command(flatten)]
    pub place: TokenStoreArgs,
}

fn scope(text: &str) -> Result<Scope, String> {
    let names: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    Scope::parse(text).ok_or_else(|| format!("the scopes are {}", names.join(", ")))
}
