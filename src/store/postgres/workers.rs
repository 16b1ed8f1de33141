//! Not there yet: see the branch of the rest of the driver.

use super::db::Db;
use crate::model::id::{ExecutionId, ProcessId};
use crate::store::{Error, Keep, KeepOutcome, Progressed, Result, WorkerChange, WorkerRow, WorkersSeen};

pub(super) async fn put_worker(_db: &Db, _row: WorkerRow) -> Result<Option<WorkerRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn change_workers(_db: &Db, _ids: Vec<ProcessId>, _change: WorkerChange, _now_ms: i64) -> Result<usize> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn workers(_db: &Db, _known: Option<i64>) -> Result<Option<WorkersSeen>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn keep(_db: &Db, _keep: Keep) -> Result<KeepOutcome> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn progressed(_db: &Db, _id: ExecutionId) -> Result<Progressed> {
    Err(Error::Internal("not there yet".into()))
}
