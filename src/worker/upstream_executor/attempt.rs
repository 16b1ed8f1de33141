//! One attempt as its server sees it: where the server's progress, log messages and questions go. Decides nothing about
//! the outcome.

use std::sync::Weak;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use serde_json::value::RawValue;

use super::super::executor::{Job, Report};
use super::super::upstream::message::{failed, unsupported};
use super::super::upstream::{self, Answer, Caller, Keeper, ServerRequest, Upstream, rank};
use crate::engine::Engine;
use crate::engine::asking::{AskError, Question, Told};
use crate::engine::client::string_member;
use crate::engine::notices::{Addressee, MESSAGE, Notice};
use crate::engine::waiters::Progress;
use crate::model::json::one_line;

/// See the module.
pub(super) struct Attempt<'a> {
    pub job: &'a Job,
    pub report: Report<'a>,
    pub leg: &'a Upstream,
    engine: Weak<Engine>,
    asked: AtomicU32,
}

impl<'a> Attempt<'a> {
    pub fn new(job: &'a Job, report: Report<'a>, leg: &'a Upstream, engine: &Weak<Engine>) -> Self {
        Self { job, report, leg, engine: engine.clone(), asked: AtomicU32::new(0) }
    }

    /// The call ends because this process does.
    pub fn is_shutdown(&self) -> bool {
        self.engine.upgrade().is_some_and(|engine| engine.halting().is_cancelled())
    }

    /// A newer lease goes on with what the server works on.
    pub async fn is_passed_on(&self, keeper: Keeper) -> bool {
        let Some(engine) = self.engine.upgrade() else { return false };
        let heads = engine.store().heads(&[self.job.id]).await.unwrap_or_default();
        let newer = heads.first().filter(|head| head.fencing_token != self.job.fencing_token);
        let process = newer.and_then(|head| Some(head.lease.as_ref()?.process));
        process.is_some_and(|process| !keeper.is_child() || process == engine.process())
    }

    /// A client of 2026-07-28 gets no log messages unless it asked for them; every client none below its level.
    fn wants(&self, params: Option<&RawValue>) -> bool {
        let client = &self.job.client;
        let Some(wanted) = client.log_level.as_deref().and_then(rank) else { return !client.is_modern() };
        let level = params.and_then(|params| string_member(params.get(), "level"));
        level.as_deref().and_then(rank).is_none_or(|level| level >= wanted)
    }
}

#[async_trait]
impl Caller for Attempt<'_> {
    fn progress(&self, progress: upstream::Progress) {
        let upstream::Progress { progress, total, message } = progress;
        (self.report)(Progress { progress, total, message });
    }

    fn notice(&self, method: &str, params: Option<&RawValue>) {
        if method == MESSAGE && !self.wants(params) {
            return;
        }
        if let Some(engine) = self.engine.upgrade() {
            engine.tell(Notice {
                upstream: self.leg.name().to_owned(),
                to: Addressee::Execution(self.job.id),
                method: method.to_owned(),
                params: params.map(|params| one_line(params.get()).into()),
            });
        }
    }

    async fn ask(&self, request: &ServerRequest) -> Answer {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let params = request.params.as_ref().map_or("{}", |params| params.get());
        let question =
            Question { key: format!("q{number}"), method: request.method.clone(), params: one_line(params).into() };
        let told = match self.job.asks.ask(question).await {
            Ok(Told::Result(result)) => {
                serde_json::from_str::<&RawValue>(&result).map(|_| Answer::Result(result.clone()))
            }
            Ok(Told::Error(error)) => RawValue::from_string(error.to_string()).map(Answer::Error),
            Err(AskError::NotCapable(_)) => return unsupported(&request.method),
            Err(error) => return failed(&error.to_string()),
        };
        told.unwrap_or_else(|_| failed("the client's answer cannot be read"))
    }
}
