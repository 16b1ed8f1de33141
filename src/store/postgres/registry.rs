//! Not there yet: see the branch of the rest of the driver.

use super::db::Db;
use crate::store::{Error, Result, TokenRow, UpstreamRow};

pub(super) async fn put_token(_db: &Db, _token: TokenRow) -> Result<()> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn revoke_token(_db: &Db, _prefix: &str, _now_ms: i64) -> Result<bool> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn tokens(_db: &Db) -> Result<Vec<TokenRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn put_upstream(_db: &Db, _row: UpstreamRow) -> Result<()> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn upstreams(_db: &Db) -> Result<Vec<UpstreamRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn clock_ms(_db: &Db) -> Result<i64> {
    Err(Error::Internal("not there yet".into()))
}
