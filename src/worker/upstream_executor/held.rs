//! Questions of a task of a child: asked while the lease is kept, since nobody but this process can go on with the task.
//! Speaks to no server.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::{pending, select_all};

use crate::engine::asking::{AskError, Asks, Question, Told, turned_away};
use crate::store::Payload;
use crate::worker::executor::Outcome;
use crate::worker::rounds::{not_capable, unanswered};

/// The open questions of a task. Dropping them takes them back.
pub(super) struct Held<'a> {
    asks: &'a Arc<dyn Asks>,
    open: Vec<Open>,
}

struct Open {
    key: String,
    method: String,
    told: Pin<Box<dyn Future<Output = Result<Told, AskError>> + Send>>,
}

impl<'a> Held<'a> {
    pub fn new(asks: &'a Arc<dyn Asks>) -> Held<'a> {
        Held { asks, open: Vec::new() }
    }

    /// Asks what is new among these questions, and takes back what is not among them any more.
    pub fn ask(&mut self, questions: Vec<Question>) {
        self.open.retain(|open| questions.iter().any(|question| question.key == open.key));
        for question in questions {
            if self.open.iter().all(|open| open.key != question.key) {
                let (key, method, asks) = (question.key.clone(), question.method.clone(), self.asks.clone());
                self.open.push(Open { key, method, told: Box::pin(async move { asks.ask(question).await }) });
            }
        }
    }

    /// The next answer, by the key of its question, or what becomes of the call without one. Pending while nothing is open.
    pub async fn response(&mut self) -> Result<(String, Payload), Outcome> {
        loop {
            if self.open.is_empty() {
                return pending().await;
            }
            let (told, at, _) = select_all(self.open.iter_mut().map(|open| &mut open.told)).await;
            let Open { key, method, .. } = self.open.swap_remove(at);
            return match told {
                Ok(Told::Result(result)) => Ok((key, result)),
                Ok(Told::Error(_)) => match turned_away(&method) {
                    Some(response) => Ok((key, response)),
                    None => Err(Outcome::Failed(unanswered(&method, true))),
                },
                Err(AskError::Withdrawn) => Err(Outcome::Failed(unanswered(&method, true))),
                Err(AskError::TimedOut) => Err(Outcome::Failed(unanswered(&method, false))),
                Err(AskError::NotCapable(needs)) => Err(not_capable(needs)),
                Err(AskError::Store(error)) => {
                    // The server shows it again, and then it is asked again.
                    tracing::warn!("a question of a server's task could not be stored: {error}");
                    continue;
                }
            };
        }
    }
}
