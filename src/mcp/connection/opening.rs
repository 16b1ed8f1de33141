//! What `initialize` settles on a connection, and who asks from then on. The session of a pair of pipes is nobody else's and
//! is not kept; any other is a row like every session.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::super::hearing::{Ear, LegacyHearing};
use super::super::id::Id;
use super::super::meta::{Meta, Params};
use super::super::method::{self, Hello};
use super::super::reject::RpcError;
use super::super::requests::Asker;
use super::super::session::{Listener, Session};
use super::super::wishes::Wishes;
use super::super::{answer, frame};
use super::Connection;
use crate::engine::client::ClientContext;
use crate::engine::sessions::NewSession;
use crate::model::revision::Revision;

/// What `initialize` settled.
#[derive(Clone, Debug, Default)]
pub(super) struct Opened {
    pub revision: Option<Revision>,
    pub client_name: Option<String>,
    client: Arc<ClientContext>,
    kept: Option<Kept>,
}

/// A session that is a row.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    id: String,
    session: Arc<Session>,
    /// It is not idle as long as its stream is open.
    _listener: Arc<Listener>,
}

impl Connection {
    /// Answers `initialize`.
    pub(super) async fn open(&self, id: &Id<'_>, params: &Params<'_>) {
        let hello = match Hello::read(params) {
            Ok(hello) => hello,
            Err(error) => return self.send_error(Some(id), &error).await,
        };
        let _one = self.opening_now.lock().await;
        let revision = hello.revision;
        let mut opened = self.opened();
        if self.is_pipe {
            opened = self.opened_by(&hello);
            // Before anything that waits for the server, which may wait for this.
            self.face.engine.only_client(opened.client.clone());
        }
        let marks = self.face.offering(&self.principal.namespace).await.marks;
        let result = self.face.initialize_result(revision, &self.principal).await;
        // A repeated `initialize` opens no second session.
        if !self.is_pipe && opened.kept.is_none() {
            match self.kept(hello).await {
                Ok(kept) => opened = kept,
                Err(error) => return self.send_error(Some(id), &error).await,
            }
        }
        let wishes = self.wishes_of(&opened);
        let name = opened.kept.as_ref().map_or(self.id.clone(), |kept| kept.session.key.to_string());
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = opened;
        wishes.set_told(marks);
        // What is told from here on is heard, and passed on once the answer is.
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner).take();
        let opening = opening.map(|opening| {
            let ear = Ear { principal: self.principal.clone(), session: Some(name) };
            (opening, LegacyHearing::new(&self.face, ear, &wishes))
        });
        let mut message = String::new();
        frame::result(&mut message, id, &result);
        self.send(&message, None).await;
        if let Some((opening, hearing)) = opening {
            let _ = opening.send(hearing);
        }
    }

    fn opened_by(&self, hello: &Hello) -> Opened {
        let capabilities = hello.capabilities.as_ref();
        let client = ClientContext {
            revision: Some(hello.revision.name().to_owned()),
            session: Some(self.id.clone()),
            capabilities: capabilities.and_then(|text| RawValue::from_string(text.to_string()).ok()),
            log_level: None,
        };
        Opened {
            revision: Some(hello.revision),
            client_name: hello.client_name.clone(),
            client: Arc::new(client),
            kept: None,
        }
    }

    /// Opens a session that is kept, within the bounds of all of them.
    async fn kept(&self, hello: Hello) -> Result<Opened, RpcError> {
        let now_ms = self.face.engine.clock().now_ms();
        if self.face.opening.lock().unwrap_or_else(PoisonError::into_inner).take(now_ms).is_err() {
            return Err(answer::overload("sessions are being opened too fast; try again later".into()));
        }
        let (revision, client_name) = (hello.revision, hello.client_name.clone());
        let new = NewSession {
            revision,
            client_name: hello.client_name,
            client_info: hello.client_info,
            capabilities: hello.capabilities,
        };
        let opened = self.face.open_session(new, &self.principal).await.map_err(|error| answer::refused(&error))?;
        let (id, session) = opened.ok_or_else(|| {
            answer::overload("too many sessions of this caller are open; close some, or try again later".into())
        })?;
        let listener = session.listen();
        let kept = Kept { id, session, _listener: listener };
        Ok(Opened { revision: Some(revision), client_name, client: Arc::default(), kept: Some(kept) })
    }

    /// Resolves when the session that is kept has ended; never without one.
    pub async fn ended(&self) {
        let kept = self.opened().kept;
        match kept {
            Some(kept) => kept.session.closed.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// True once the client has sent `initialize`.
    pub fn is_opened(&self) -> bool {
        self.opened().revision.is_some()
    }

    /// Ends the session that is kept, as the client has gone.
    pub async fn close(&self) {
        let kept = std::mem::take(&mut *self.session.lock().unwrap_or_else(PoisonError::into_inner)).kept;
        if let Some(kept) = kept
            && let Err(error) = self.face.close_session(&kept.id, &self.principal).await
        {
            // It ends by being idle.
            tracing::debug!(code = error.code(), "a session could not be closed: {error}");
        }
    }

    fn wishes_of(&self, opened: &Opened) -> Arc<Wishes> {
        opened.kept.as_ref().map_or_else(|| self.wishes.clone(), |kept| kept.session.wishes.clone())
    }

    /// The client that `initialize` told of, with what it has asked for since.
    pub(super) fn legacy_client(&self, opened: &Opened) -> Arc<ClientContext> {
        if let Some(kept) = &opened.kept {
            return kept.session.context();
        }
        match self.wishes.level() {
            None => opened.client.clone(),
            Some(level) => {
                let log_level = Some(level.as_str().to_owned());
                Arc::new(ClientContext { log_level, ..(*opened.client).clone() })
            }
        }
    }

    /// The client of a request.
    pub(super) fn client(&self, opened: &Opened, (revision, meta): (Revision, &Meta<'_>)) -> Arc<ClientContext> {
        if !revision.is_modern() {
            return self.legacy_client(opened);
        }
        let client = method::modern_client(meta, Some(&self.id));
        // Nobody else is served over this pipe; the first request says as much of it as any.
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.face.engine.only_client(client.clone());
        }
        client
    }

    pub(super) fn asker(
        &self,
        opened: &Opened,
        (revision, meta): (Revision, &Meta<'_>),
        withdrawn: CancellationToken,
    ) -> Asker {
        if let Some(kept) = &opened.kept {
            return kept.session.asker(self.principal.clone(), withdrawn);
        }
        let client = self.client(opened, (revision, meta));
        let wishes = (!revision.is_modern()).then(|| self.wishes.clone());
        Asker { principal: self.principal.clone(), revision, client, wishes, session: None, withdrawn }
    }

    pub(super) fn opened(&self) -> Opened {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
