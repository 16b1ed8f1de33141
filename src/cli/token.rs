//! `token create|list|revoke` over the store of a configuration. The secret is printed once, alone on stdout.

use schemars::JsonSchema;
use serde::Serialize;

use super::args::{CreateArgs, TokenArgs, TokenCommand, TokenStoreArgs};
use super::failure::{Exit, Failure};
use super::output::Output;
use super::stores;
use crate::engine::clock::Clock;
use crate::engine::view::Time;
use crate::http::token::{NewToken, create_token, list_tokens, revoke_token};
use crate::model::principal::DEFAULT_NAMESPACE;
use crate::store::TokenRow;

/// A token as it is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Token")]
pub struct TokenView<'a> {
    /// The public part, by which it is revoked.
    prefix: &'a str,
    /// The token itself; only when it was just made.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    /// Who it stands for.
    principal: &'a str,
    /// The namespace it is good for.
    namespace: &'a str,
    /// What it permits.
    scopes: Vec<&'a str>,
    /// `valid`, `expired` or `revoked`.
    state: &'static str,
    /// When it was made.
    created_at: Time,
    /// When it ends; null: never.
    expires_at: Option<Time>,
    /// When it was revoked; null: it was not.
    revoked_at: Option<Time>,
}

/// Runs the command.
pub async fn run(args: TokenArgs, out: Output) -> Result<Exit, Failure> {
    let now_ms = Clock::System.now_ms();
    match args.command {
        TokenCommand::Create(args) => create(args, out, now_ms).await,
        TokenCommand::List(args) => list(args, out, now_ms).await,
        TokenCommand::Revoke(args) => {
            let store = stores::open(&args.place.configuration.load(|_| {})?).await?;
            let found = revoke_token(&*store, &args.prefix, now_ms).await;
            let rows = list_tokens(&*store).await;
            store.close().await;
            if !found? {
                let error = "there is no token with this prefix";
                return Err(Failure::new(Exit::NotFound, error).next("`durable-mcp token list` shows the prefixes"));
            }
            if let (true, Some(row)) = (args.place.json, rows?.iter().find(|row| row.prefix == args.prefix)) {
                out.line(&json(&view(row, None, now_ms))?)?;
            }
            eprintln!("the token is revoked; running servers refuse it within a second");
            Ok(Exit::Ok)
        }
    }
}

async fn create(args: CreateArgs, out: Output, now_ms: i64) -> Result<Exit, Failure> {
    let loaded = args.place.configuration.load(|_| {})?;
    if args.namespace != DEFAULT_NAMESPACE && !loaded.config.namespaces.contains_key(&args.namespace) {
        let error = format!("the namespace `{}` is not declared", args.namespace);
        return Err(Failure::usage(error).next("declare it in the configuration: [namespaces.NAME]"));
    }
    let expires_at_ms = args.expires_in.map(|span| now_ms.saturating_add(span.0));
    let new = NewToken { principal: args.principal, namespace: args.namespace, scopes: args.scope, expires_at_ms };
    let store = stores::open(&loaded).await?;
    let made = create_token(&*store, new, now_ms).await;
    store.close().await;
    let (token, row) = made?;
    if args.place.json {
        out.line(&json(&view(&row, Some(&token), now_ms))?)?;
    } else {
        out.line(&token)?;
        eprintln!("keep it now: it can not be shown again; `durable-mcp token revoke {}` ends it", row.prefix);
    }
    Ok(Exit::Ok)
}

async fn list(args: TokenStoreArgs, out: Output, now_ms: i64) -> Result<Exit, Failure> {
    let store = stores::open(&args.configuration.load(|_| {})?).await?;
    let rows = list_tokens(&*store).await;
    store.close().await;
    let rows = rows?;
    let views: Vec<TokenView<'_>> = rows.iter().map(|row| view(row, None, now_ms)).collect();
    if args.json {
        for view in &views {
            out.line(&json(view)?)?;
        }
        return Ok(Exit::Ok);
    }
    let cells = |view: &TokenView<'_>| {
        vec![
            view.prefix.to_owned(),
            view.state.to_owned(),
            view.principal.to_owned(),
            view.namespace.to_owned(),
            view.scopes.join(","),
            view.expires_at.map_or("never".to_owned(), |at| at.to_string()),
        ]
    };
    let header = ["PREFIX", "STATE", "PRINCIPAL", "NAMESPACE", "SCOPES", "EXPIRES"];
    out.table(&header, &views.iter().map(cells).collect::<Vec<_>>())?;
    Ok(Exit::Ok)
}

fn view<'a>(row: &'a TokenRow, token: Option<&'a str>, now_ms: i64) -> TokenView<'a> {
    let expired = row.expires_at_ms.is_some_and(|at| at <= now_ms);
    TokenView {
        prefix: &row.prefix,
        token,
        principal: &row.principal,
        namespace: &row.namespace,
        scopes: row.scopes.split(' ').filter(|scope| !scope.is_empty()).collect(),
        state: match (row.revoked_at_ms.is_some(), expired) {
            (true, _) => "revoked",
            (_, true) => "expired",
            _ => "valid",
        },
        created_at: Time(row.created_at_ms),
        expires_at: row.expires_at_ms.map(Time),
        revoked_at: row.revoked_at_ms.map(Time),
    }
}

fn json(view: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(view).map_err(|error| Failure::new(Exit::Failure, error.to_string()))
}
