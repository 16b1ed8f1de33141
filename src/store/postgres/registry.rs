//! The small tables: tokens, the last known pictures of upstreams, and the clock of the database.

use tokio_postgres::Row;

use super::bind::{int, text};
use super::db::{Db, Tx};
use super::fault::{Fault, Sql};
use crate::store::{Result, TokenRow, UpstreamRow};

const PUT_TOKEN: &str = "INSERT INTO tokens (prefix, sha256, principal, namespace, scopes, created_at_ms, \
    expires_at_ms, revoked_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (prefix) DO NOTHING";

const HASH: &str = "SELECT sha256 FROM tokens WHERE prefix = $1";

/// Adds a token; its prefix has to be new.
pub(super) async fn put_token(db: &Db, token: TokenRow) -> Result<()> {
    let token = &token;
    db.transaction(move |tx| Box::pin(put(tx, token))).await
}

async fn put(tx: &Tx<'_>, token: &TokenRow) -> Sql<()> {
    let values = [
        text(&token.prefix),
        text(&token.sha256),
        text(&token.principal),
        text(&token.namespace),
        text(&token.scopes),
        int(&token.created_at_ms),
        int(&token.expires_at_ms),
        int(&token.revoked_at_ms),
    ];
    if tx.execute(PUT_TOKEN, &values).await? == 1 {
        return Ok(());
    }
    // Its own row, after a commit of which nothing was heard; or another token.
    let row = tx.query_opt(HASH, &[text(&token.prefix)]).await?;
    match row.map(|row| row.try_get::<_, String>(0)).transpose()? {
        Some(hash) if tx.may_be_there && hash == token.sha256 => Ok(()),
        Some(_) => Err(Fault::refused("another token has this prefix; make one more")),
        None => Err(Fault::again("the token was removed meanwhile; try again")),
    }
}

const REVOKE_TOKEN: &str = "UPDATE tokens SET revoked_at_ms = coalesce(revoked_at_ms, $2) WHERE prefix = $1";

/// Revokes a token; a second time changes nothing. False when there is none.
pub(super) async fn revoke_token(db: &Db, prefix: &str, now_ms: i64) -> Result<bool> {
    db.transaction(move |tx| {
        Box::pin(async move { Ok(tx.execute(REVOKE_TOKEN, &[text(&prefix), int(&now_ms)]).await? > 0) })
    })
    .await
}

const TOKENS: &str = "SELECT prefix, sha256, principal, namespace, scopes, created_at_ms, expires_at_ms, \
    revoked_at_ms FROM tokens ORDER BY created_at_ms, prefix";

/// Every token, oldest first.
pub(super) async fn tokens(db: &Db) -> Result<Vec<TokenRow>> {
    let read = |row: &Row| -> Sql<TokenRow> {
        Ok(TokenRow {
            prefix: row.try_get(0)?,
            sha256: row.try_get(1)?,
            principal: row.try_get(2)?,
            namespace: row.try_get(3)?,
            scopes: row.try_get(4)?,
            created_at_ms: row.try_get(5)?,
            expires_at_ms: row.try_get(6)?,
            revoked_at_ms: row.try_get(7)?,
        })
    };
    db.read(move |reading| Box::pin(async move { reading.query(TOKENS, &[]).await?.iter().map(read).collect() })).await
}

const CHANGE_UPSTREAM: &str = "UPDATE upstreams SET snapshot = $2, updated_at_ms = $3 WHERE name = $1";

const PUT_UPSTREAM: &str = "INSERT INTO upstreams (name, snapshot, updated_at_ms) VALUES ($1, $2, $3) \
    ON CONFLICT (name) DO NOTHING";

/// Keeps the picture of an upstream.
pub(super) async fn put_upstream(db: &Db, row: UpstreamRow) -> Result<()> {
    let row = &row;
    db.transaction(move |tx| {
        Box::pin(async move {
            let snapshot: &str = &row.snapshot;
            let values = [text(&row.name), text(&snapshot), int(&row.updated_at_ms)];
            for sql in [CHANGE_UPSTREAM, PUT_UPSTREAM] {
                if tx.execute(sql, &values).await? == 1 {
                    return Ok(());
                }
            }
            Err(Fault::again("another process keeps the same picture; try again"))
        })
    })
    .await
}

const UPSTREAMS: &str = "SELECT name, snapshot, updated_at_ms FROM upstreams ORDER BY name";

/// The pictures of all upstreams, by name.
pub(super) async fn upstreams(db: &Db) -> Result<Vec<UpstreamRow>> {
    let read = |row: &Row| -> Sql<UpstreamRow> {
        Ok(UpstreamRow {
            name: row.try_get(0)?,
            snapshot: row.try_get::<_, String>(1)?.into(),
            updated_at_ms: row.try_get(2)?,
        })
    };
    db.read(move |reading| Box::pin(async move { reading.query(UPSTREAMS, &[]).await?.iter().map(read).collect() }))
        .await
}

/// The clock of the database, in milliseconds since the epoch.
macro_rules! clock {
    () => {
        "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}
pub(super) use clock;

const CLOCK: &str = concat!("SELECT ", clock!());

/// The clock of the database: all processes align theirs with it.
pub(super) async fn clock_ms(db: &Db) -> Result<i64> {
    db.read(move |reading| {
        Box::pin(async move {
            let row = reading.query_opt(CLOCK, &[]).await?;
            Ok(row.ok_or_else(|| Fault::internal("the database told no time"))?.try_get(0)?)
        })
    })
    .await
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[(HASH, "text"), (REVOKE_TOKEN, "text, bigint")];
