//! Not there yet: see the branch of the rest of the driver.

use super::db::Db;
use crate::model::id::ExecutionId;
use crate::store::{Error, Result, TaskQuery, TaskRow};

pub(super) async fn open_task(_db: &Db, _row: TaskRow) -> Result<TaskRow> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn task(_db: &Db, _id: ExecutionId) -> Result<Option<TaskRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn show_task(_db: &Db, _id: ExecutionId, _seq: i64) -> Result<Option<TaskRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn tasks(_db: &Db, _query: TaskQuery) -> Result<Vec<TaskRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn expired_tasks(_db: &Db, _now_ms: i64, _limit: usize) -> Result<Vec<TaskRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn close_task(_db: &Db, _id: ExecutionId, _now_ms: i64) -> Result<bool> {
    Err(Error::Internal("not there yet".into()))
}
