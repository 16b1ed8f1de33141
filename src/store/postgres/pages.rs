//! Not there yet: see the branch of the rest of the driver.

use super::db::Db;
use crate::model::execution::Head;
use crate::store::{Error, ListQuery, Result, TouchedQuery};

pub(super) async fn list(_db: &Db, _query: ListQuery) -> Result<Vec<Head>> {
    Err(Error::Internal("not there yet".into()))
}

pub(super) async fn touched(_db: &Db, _query: TouchedQuery) -> Result<Vec<Head>> {
    Err(Error::Internal("not there yet".into()))
}
