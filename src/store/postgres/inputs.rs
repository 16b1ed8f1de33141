//! Not there yet: see the branch of the rest of the driver.

use super::db::Db;
use crate::model::id::ExecutionId;
use crate::store::{AnswerInputs, AnsweredInputs, Ask, Asked, Error, InputRow, Result, SealingKey, WantedKeys};

pub(super) async fn ask(_db: &Db, _ask: Ask) -> Result<Asked> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn answer(_db: &Db, _answers: AnswerInputs) -> Result<Option<AnsweredInputs>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn inputs(_db: &Db, _id: ExecutionId) -> Result<Vec<InputRow>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn inputs_due(_db: &Db, _until_ms: i64, _limit: usize) -> Result<Vec<(ExecutionId, u32)>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn sealing_keys(_db: &Db, _wanted: WantedKeys) -> Result<Vec<SealingKey>> {
    Err(Error::Internal("not there yet".into()))
}
