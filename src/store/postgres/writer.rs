//! Not there yet.

use std::sync::Arc;

use super::db::Db;
use super::liveness::Liveness;
use super::watch::Watch;
use crate::model::decide::Answer;
use crate::model::id::ExecutionId;
use crate::store::{Applied, Apply, Error, LeaseRef, Mark, Result, Submit, SubmitOutcome};

pub(super) struct Writer {}

impl Writer {
    pub(super) fn start(_db: Arc<Db>, _liveness: Arc<Liveness>, _watch: Arc<Watch>) -> Writer {
        Writer {}
    }
    pub(super) async fn submit(&self, _: Submit) -> Result<SubmitOutcome> {
        Err(Error::Internal("not there yet".into()))
    }
    pub(super) async fn apply(&self, _: Apply) -> Result<Option<Applied>> {
        Err(Error::Internal("not there yet".into()))
    }
    pub(super) fn mark(&self, _: ExecutionId, _: Mark, _: i64) {}
    pub(super) async fn heartbeat(&self, _: Vec<LeaseRef>, _: i64, _: i64) -> Result<Vec<Answer>> {
        Err(Error::Internal("not there yet".into()))
    }
    pub(super) async fn check(&self) -> Result<()> {
        Err(Error::Internal("not there yet".into()))
    }
    pub(super) async fn close(&self) {}
}
