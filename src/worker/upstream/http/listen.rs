//! Listening for what an HTTP server tells unasked: the GET stream of a legacy session, `subscriptions/listen` in
//! 2026-07-28. Both are optional; without them the list of tools is read again with each new session only.

use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use tokio::time::{Instant, sleep};

use super::super::handshake;
use super::super::message;
use super::exchange::is_event_stream;
use super::headers::{self, Labels};
use super::{Session, Shared};
use crate::model::revision::Revision;
use crate::worker::http_client::describe;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Listens until the leg is stopped or lost, in whatever session there is.
pub(super) async fn listen(shared: Arc<Shared>) {
    let mut sessions = shared.session.subscribe();
    let mut wanted = shared.uris.subscribe();
    loop {
        let session = sessions.borrow_and_update().clone();
        wanted.borrow_and_update();
        let listening = async {
            shared.listen_in(&session).await;
            // This session has nothing to tell; the next one may.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = shared.lost.cancelled() => return,
            changed = sessions.changed() => if changed.is_err() { return },
            _ = wanted.changed(), if session.revision.is_some_and(Revision::is_modern) => {}
            () = listening => {}
        }
    }
}

impl Shared {
    /// Waits until whatever the server tells unasked in this session would be heard, or it says that it tells nothing:
    /// what a server tells nobody listens to yet is lost. A server that says neither is not waited for long.
    pub(super) async fn listens_in(&self, generation: u64) {
        let mut listening = self.listening.subscribe();
        let settled = listening.wait_for(|newest| *newest >= generation);
        tokio::select! {
            _ = settled => {}
            () = self.lost.cancelled() => {}
            () = self.stop.cancelled() => {}
            () = sleep(self.settings.listen_patience) => {}
        }
    }

    async fn listen_in(&self, session: &Session) {
        self.hear_in(session).await;
        // Also where there is nothing to hear.
        self.settle(session.generation);
    }

    /// Whether the server of this session tells anything is known.
    fn settle(&self, generation: u64) {
        self.listening.send_if_modified(|newest| {
            let is_newer = *newest < generation;
            *newest = generation.max(*newest);
            is_newer
        });
    }

    async fn hear_in(&self, session: &Session) {
        let modern = session.revision.is_some_and(Revision::is_modern);
        let uris = self.uris.borrow().clone();
        let params = session.facts.as_ref().filter(|_| modern).and_then(|facts| handshake::listen_params(facts, &uris));
        if modern && params.is_none() {
            return;
        }
        let mut pause = FIRST_PAUSE;
        let mut last_event_id = None;
        loop {
            let opened = Instant::now();
            let response = match &params {
                Some(params) => self.post_listen(session, params.clone()).await,
                None => self.open_stream(session, last_event_id.take()).await,
            };
            self.settle(session.generation);
            match response {
                Ok(response) if response.status().is_success() && is_event_stream(&response) => {
                    last_event_id = self.read_notices(response).await;
                    if opened.elapsed() > LONGEST_PAUSE {
                        pause = FIRST_PAUSE;
                    }
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND && session.given.id.is_some() => {
                    // The server forgot the session, most likely because it was started anew.
                    let _ = self.reopen(session.generation).await;
                    return;
                }
                Ok(response) if response.status().is_server_error() => {}
                Ok(_) => return,
                Err(error) if error.is_connect() => {
                    self.mark_lost(&format!("it cannot be reached: {}", describe(error)));
                    return;
                }
                Err(_) => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn post_listen(&self, session: &Session, params: String) -> reqwest::Result<reqwest::Response> {
        let method = "subscriptions/listen";
        let outgoing = self.own(method, params);
        let labels = Labels { method, name: None, revision: session.revision, session: None };
        self.client
            .post(self.url.clone())
            .headers(headers::for_post(&self.configured, labels))
            .body(message::request(outgoing.id, method, &outgoing.params))
            .send()
            .await
    }
}
