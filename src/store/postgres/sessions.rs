//! Not there yet: see the branch of the rest of the driver.

use super::db::Db;
use crate::store::{Error, Result, SessionCap, SessionChange, SessionChanged, SessionKey, SessionQuery, SessionRetention, SessionRow, StreamMessage, StreamRow, StreamSeen};

pub(super) async fn open_session(_db: &Db, _row: SessionRow, _cap: SessionCap) -> Result<bool> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn session(_db: &Db, _key: SessionKey) -> Result<Option<SessionRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn session_is_busy(_db: &Db, _key: SessionKey) -> Result<bool> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn change_session(_db: &Db, _key: SessionKey, _change: SessionChange, _now_ms: i64) -> Result<SessionChanged> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn touch_sessions(_db: &Db, _seen: Vec<(SessionKey, i64)>) -> Result<()> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn closed_sessions(_db: &Db, _since_ms: i64) -> Result<Vec<SessionKey>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn sessions(_db: &Db, _query: SessionQuery) -> Result<Vec<SessionRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn open_stream(_db: &Db, _row: StreamRow) -> Result<()> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn push_message(_db: &Db, _message: StreamMessage) -> Result<i64> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn stream(_db: &Db, _session: SessionKey, _stream: &str, _after: i64, _limit: usize) -> Result<StreamSeen> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn prune_sessions(_db: &Db, _retention: SessionRetention) -> Result<usize> {
    Err(Error::Internal("not there yet".into()))
}
