//! Not there yet: see the branch of the rest of the driver.

use std::collections::BTreeMap;

use super::db::Db;
use crate::model::execution::{Head, State};
use crate::model::id::ProcessId;
use crate::store::{CandidateQuery, Due, Error, Result};

pub(super) async fn candidates(_db: &Db, _query: CandidateQuery) -> Result<Vec<Head>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn due(_db: &Db, _dead: &[ProcessId], _now_ms: i64, _limit: usize) -> Result<Due> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn totals(_db: &Db) -> Result<BTreeMap<State, u64>> {
    Err(Error::Internal("not there yet".into()))
}
