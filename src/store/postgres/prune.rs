//! Not there yet: see the branch of the rest of the driver.

use super::db::Db;
use crate::store::{Error, Pruned, Result, Retention};

pub(super) async fn prune(_db: &Db, _retention: Retention, _now_ms: i64) -> Result<Pruned> {
    Err(Error::Internal("not there yet".into()))
}
