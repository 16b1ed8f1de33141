//! News of tasks for `subscriptions/listen` and for sessions: what the reader sees, told whenever it changed, wherever
//! the work runs. Speaks no transport.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, PoisonError};

use tokio::sync::mpsc;

use super::projection::{Form, Status};
use crate::engine::notices::{Addressee, Notice, TASK_STATUS};
use crate::mcp::face::Face;
use crate::model::id::ExecutionId;
use crate::model::principal::Principal;
use crate::model::revision::Era;
use crate::store::TaskVariant;

/// News that wait for a client that does not read.
const WAITING_MAX: usize = 16;

/// Tasks that are followed until this is dropped.
#[derive(Debug)]
pub struct Followed {
    /// Which of those that were asked for: the reader's own.
    pub ids: Vec<String>,
    /// The parameters of each `notifications/tasks`: first how each task stands, then each change. Ends with the last task.
    pub news: mpsc::Receiver<String>,
}

impl Face {
    /// Follows those of the tasks that are the principal's own.
    ///
    /// # Errors
    ///
    /// The store can not be read.
    pub async fn follow_tasks(
        self: &Arc<Self>,
        ids: &[String],
        principal: &Principal,
    ) -> crate::engine::Result<Followed> {
        let mut own: Vec<ExecutionId> = Vec::new();
        for id in ids.iter().filter_map(|id| ExecutionId::from_str(id).ok()) {
            if !own.contains(&id) && self.engine.task(id, principal).await?.is_some() {
                own.push(id);
            }
        }
        let (sender, news) = mpsc::channel(WAITING_MAX);
        let teller = Teller { face: self.clone(), principal: principal.clone(), told: HashMap::new() };
        self.engine.spawn(teller.tell(own.clone(), sender));
        Ok(Followed { ids: own.iter().map(ToString::to_string).collect(), news })
    }
}

impl Face {
    /// Tells a session of 2025-11-25 of each change of its task's status, from the one that it knows on. A session that
    /// listens nowhere in this process is told nothing, and asks.
    pub(in crate::mcp) fn tell_of_task(
        self: &Arc<Self>,
        id: ExecutionId,
        (principal, session): (&Principal, Option<&str>),
        known: Status,
    ) {
        let Some(session) = session else { return };
        let is_heard = self.sessions.named(session).is_none_or(|session| session.is_listened_to());
        let mark = (session.to_owned(), id);
        if known.is_final() || !is_heard {
            return;
        }
        let Ok(place) = self.listeners.clone().try_acquire_owned() else { return };
        if !self.told_tasks.lock().unwrap_or_else(PoisonError::into_inner).insert(mark.clone()) {
            return;
        }
        let (face, principal) = (self.clone(), principal.clone());
        self.engine.spawn(async move {
            face.tell_statuses(id, &principal, (&mark.0, known)).await;
            face.told_tasks.lock().unwrap_or_else(PoisonError::into_inner).remove(&mark);
            drop(place);
        });
    }

    async fn tell_statuses(&self, id: ExecutionId, principal: &Principal, (session, mut told): (&str, Status)) {
        let following = self.engine.follow(vec![id]);
        while !told.is_final() {
            // What cannot be read now is looked at again.
            if let Ok(task) = self.engine.task(id, principal).await {
                let Some(task) = task else { return };
                if let Ok(shown) = self.dressed(task, Era::Legacy).await {
                    let status = shown.status(TaskVariant::Experimental);
                    if status != told {
                        told = status;
                        self.engine.tell(Notice {
                            upstream: String::new(),
                            to: Addressee::Session(session.to_owned()),
                            method: TASK_STATUS.to_owned(),
                            params: Some(shown.seen().experimental().into()),
                        });
                        continue;
                    }
                }
            }
            tokio::select! {
                () = self.engine.stopping().cancelled() => return,
                () = following.change() => {}
            }
        }
    }
}

struct Teller {
    face: Arc<Face>,
    principal: Principal,
    /// What was told last of each task, apart from what only time changes.
    told: HashMap<ExecutionId, String>,
}

impl Teller {
    async fn tell(mut self, mut ids: Vec<ExecutionId>, sender: mpsc::Sender<String>) {
        let engine = self.face.engine.clone();
        // Entered before the first look, so that nothing falls between.
        let mut following = engine.follow(ids.clone());
        while !ids.is_empty() {
            for id in ids.clone() {
                match self.look(id).await {
                    Ok(Some((params, last))) => {
                        if sender.send(params).await.is_err() {
                            return;
                        }
                        if last {
                            ids.retain(|known| *known != id);
                            following.leave(id);
                        }
                    }
                    Ok(None) => {}
                    // Its time is over, or the store can not be read now.
                    Err(gone) if gone => {
                        ids.retain(|known| *known != id);
                        following.leave(id);
                    }
                    Err(_) => {}
                }
            }
            tokio::select! {
                () = sender.closed() => return,
                () = engine.stopping().cancelled() => return,
                () = following.change() => {}
            }
        }
    }

    /// What is new of a task, and whether nothing follows. The error says whether the task is gone.
    async fn look(&mut self, id: ExecutionId) -> Result<Option<(String, bool)>, bool> {
        let task = self.face.engine.task(id, &self.principal).await.map_err(|_| false)?.ok_or(true)?;
        let mut shown = self.face.dressed(task, Era::Modern).await.map_err(|_| false)?;
        let poll_ms = std::mem::take(&mut shown.poll_ms);
        let timeless = shown.seen().extension(Form::Notified);
        if self.told.get(&id) == Some(&timeless) {
            return Ok(None);
        }
        shown.poll_ms = poll_ms;
        let last = shown.status(TaskVariant::Extension).is_final();
        // What is last is told with the whole result, and not looked at again.
        match last {
            true => self.told.remove(&id),
            false => self.told.insert(id, timeless),
        };
        Ok(Some((shown.seen().extension(Form::Notified), last)))
    }
}
