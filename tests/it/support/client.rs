//! One face for every real client: the official TypeScript SDK 1.x, TypeScript client 2.x, Python and Rust SDKs, each in
//! its modes. Hides how a client is driven, nothing of how it behaves: no retry, no clean-up of answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use super::DEADLINE;
use super::driver::Driver;
use super::rmcp_client::Rmcp;

/// A client as it is sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// npm `@modelcontextprotocol/sdk` 1.x.
    Sdk1,
    /// npm `@modelcontextprotocol/client` 2.x.
    Client2(Mode),
    /// PyPI `mcp` 2.x.
    Python(Mode),
    /// crate `rmcp`: `Initialize`, `Auto`, `Discover`.
    Rmcp(Mode),
}

/// How a client finds its protocol revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Legacy,
    Auto,
    /// Pinned to 2026-07-28.
    Modern,
}

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Sdk1,
        Kind::Client2(Mode::Legacy),
        Kind::Client2(Mode::Auto),
        Kind::Client2(Mode::Modern),
        Kind::Python(Mode::Legacy),
        Kind::Python(Mode::Auto),
        Kind::Python(Mode::Modern),
        Kind::Rmcp(Mode::Legacy),
        Kind::Rmcp(Mode::Auto),
        Kind::Rmcp(Mode::Modern),
    ];

    /// The mode that also reaches a server that knows only the revisions up to 2025-11-25.
    pub fn for_legacy_server(self) -> Kind {
        match self {
            Kind::Client2(Mode::Modern) => Kind::Client2(Mode::Legacy),
            Kind::Python(Mode::Modern) => Kind::Python(Mode::Legacy),
            Kind::Rmcp(Mode::Modern) => Kind::Rmcp(Mode::Legacy),
            other => other,
        }
    }

    /// Whether it needs what `tests/setup.sh` installs.
    pub fn needs_set_up(self) -> bool {
        !matches!(self, Kind::Rmcp(_))
    }
}

/// Where a client finds its server.
#[derive(Clone, Debug)]
pub struct Target {
    pub place: Place,
    /// Set on top of this process's environment; reaches a stdio server through the client.
    pub env: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    /// The client's own name in `clientInfo`.
    pub name: String,
}

#[derive(Clone, Debug)]
pub enum Place {
    Url(String),
    Command(Vec<String>),
}

impl Target {
    pub fn url(url: impl Into<String>) -> Target {
        Target::at(Place::Url(url.into()))
    }

    /// A stdio server: the program and its arguments.
    pub fn command(argv: impl IntoIterator<Item = impl Into<String>>) -> Target {
        Target::at(Place::Command(argv.into_iter().map(Into::into).collect()))
    }

    fn at(place: Place) -> Target {
        Target { place, env: Vec::new(), headers: Vec::new(), name: "test-client".to_owned() }
    }

    pub fn env(mut self, name: &str, value: &str) -> Target {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Target {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn named(self, name: &str) -> Target {
        Target { name: name.to_owned(), ..self }
    }
}

/// One call, with what a client lets its user say about it.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub name: String,
    pub arguments: Value,
    /// `_meta` of the request.
    pub meta: Option<Value>,
    /// Further members of `params` (TypeScript clients only).
    pub params: Option<Value>,
    /// The client's own deadline.
    pub timeout_ms: Option<u64>,
    /// Asks for progress, which `Pending::next_progress` gives.
    pub progress: bool,
    /// Lets progress restart the client's deadline (TypeScript clients only).
    pub reset_on_progress: bool,
}

impl Call {
    pub fn new(name: &str, arguments: Value) -> Call {
        Call { name: name.to_owned(), arguments, ..Call::default() }
    }

    pub fn meta(self, meta: Value) -> Call {
        Call { meta: Some(meta), ..self }
    }

    /// Sets `_meta["durable-mcp/idempotencyKey"]`, beside whatever `_meta` holds already.
    pub fn key(mut self, key: &str) -> Call {
        self.meta.get_or_insert_with(|| json!({}))["durable-mcp/idempotencyKey"] = json!(key);
        self
    }

    pub fn timeout_ms(self, timeout_ms: u64) -> Call {
        Call { timeout_ms: Some(timeout_ms), ..self }
    }

    pub fn progress(self) -> Call {
        Call { progress: true, ..self }
    }
}

/// The result as JSON, or what the client made of the error.
pub type Answer = Result<Value, Failure>;

#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The JSON-RPC code, or the client's own name for the kind of failure.
    pub code: Value,
    pub message: String,
    pub data: Value,
}

/// A call on its way.
pub struct Pending {
    pub id: String,
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) progress: mpsc::UnboundedReceiver<Value>,
}

impl Pending {
    /// Waits for the answer. A client that is gone is a failure with the code `gone`.
    pub async fn answer(self) -> Answer {
        self.answer_within(DEADLINE).await
    }

    pub async fn answer_within(self, deadline: Duration) -> Answer {
        match timeout(deadline, self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Failure::of("gone", "the client is gone")),
            Err(_) => panic!("no answer to {} within {deadline:?}", self.id),
        }
    }

    /// The next progress notification as the client showed it: `progress`, `total`, `message`.
    pub async fn next_progress(&mut self) -> Value {
        let progress = timeout(DEADLINE, self.progress.recv()).await;
        progress.expect("progress in time").expect("progress before the answer")
    }
}

impl Failure {
    pub(super) fn of(code: &str, message: &str) -> Failure {
        Failure { code: json!(code), message: message.to_owned(), data: Value::Null }
    }
}

/// A connected client.
pub struct Client {
    kind: Kind,
    connection: Connection,
}

enum Connection {
    Driver(Box<Driver>),
    Rmcp(Box<Rmcp>),
}

impl Client {
    pub async fn connect(kind: Kind, target: &Target) -> Client {
        Client::try_connect(kind, target).await.unwrap_or_else(|error| panic!("{kind:?} to {target:?}: {error:?}"))
    }

    /// Connects, or answers why the client could not.
    pub async fn try_connect(kind: Kind, target: &Target) -> Result<Client, Failure> {
        let connection = match kind {
            Kind::Rmcp(mode) => Connection::Rmcp(Box::new(Rmcp::connect(mode, target).await?)),
            _ => Connection::Driver(Box::new(Driver::connect(kind, target).await?)),
        };
        Ok(Client { kind, connection })
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The negotiated revision.
    pub fn protocol(&self) -> &str {
        match &self.connection {
            Connection::Driver(driver) => driver.protocol(),
            Connection::Rmcp(rmcp) => rmcp.protocol(),
        }
    }

    /// All tools of all pages, in their order.
    pub async fn list(&self) -> Vec<Value> {
        let result = match &self.connection {
            Connection::Driver(driver) => driver.list().await.answer().await,
            Connection::Rmcp(rmcp) => rmcp.list().await,
        };
        let result = result.unwrap_or_else(|failure| panic!("{:?} cannot list: {failure:?}", self.kind));
        result["tools"].as_array().cloned().unwrap_or_default()
    }

    /// Sends a request besides those for tools and waits for the answer; `capabilities` asks for what the server declared.
    pub async fn request(&self, method: &str, params: Value) -> Answer {
        match &self.connection {
            Connection::Driver(driver) => driver.request(method, params).await.answer().await,
            Connection::Rmcp(_) => panic!("the driver of rmcp sends no {method}"),
        }
    }

    /// Calls a tool and waits for the answer.
    pub async fn call(&self, name: &str, arguments: Value) -> Answer {
        self.start(Call::new(name, arguments)).await.answer().await
    }

    /// Sends a call and answers at once; any number may be on their way.
    pub async fn start(&self, call: Call) -> Pending {
        match &self.connection {
            Connection::Driver(driver) => driver.start(call).await,
            Connection::Rmcp(rmcp) => rmcp.start(call).await,
        }
    }

    /// Lets the client cancel a call as its user would.
    pub async fn cancel(&self, pending: &Pending) {
        match &self.connection {
            Connection::Driver(driver) => driver.cancel(&pending.id).await,
            Connection::Rmcp(rmcp) => rmcp.cancel(&pending.id),
        }
    }

    /// Waits for a notification that the client passed on, such as `notifications/tools/list_changed`.
    pub async fn notification(&self, method: &str) -> Value {
        self.heard().wait_for(method, 1).await
    }

    /// Waits for the notification of this method that is the `number`th, from 1.
    pub async fn numbered_notification(&self, method: &str, number: usize) -> Value {
        self.heard().wait_for(method, number).await
    }

    fn heard(&self) -> &Heard {
        match &self.connection {
            Connection::Driver(driver) => driver.heard(),
            Connection::Rmcp(rmcp) => rmcp.heard(),
        }
    }

    /// Leaves in order: sessions are ended, a stdio server sees the end of its input.
    pub async fn close(self) {
        match self.connection {
            Connection::Driver(driver) => driver.close().await,
            Connection::Rmcp(rmcp) => rmcp.close().await,
        }
    }

    /// Dies with its calls on their way: a driver by `kill -9`, the client in this process by dropping it.
    pub async fn kill(self) {
        if let Connection::Driver(driver) = self.connection {
            driver.kill().await;
        }
    }
}

/// The notifications a client passed on, kept so that none is missed.
#[derive(Default)]
pub(super) struct Heard {
    notifications: Mutex<Vec<Value>>,
    news: Notify,
}

impl Heard {
    pub fn push(&self, notification: Value) {
        self.notifications.lock().unwrap().push(notification);
        self.news.notify_waiters();
    }

    async fn wait_for(&self, method: &str, number: usize) -> Value {
        let found = async {
            loop {
                let news = self.news.notified();
                let of_method = |one: &&Value| one["method"] == method;
                let found = self.notifications.lock().unwrap().iter().filter(of_method).nth(number - 1).cloned();
                match found {
                    Some(notification) => return notification,
                    None => news.await,
                }
            }
        };
        timeout(DEADLINE, found).await.unwrap_or_else(|_| panic!("no {method} as the {number}th"))
    }
}

/// Where answers and progress of the calls on their way go.
pub(super) struct Waiting {
    answers: HashMap<String, (oneshot::Sender<Answer>, mpsc::UnboundedSender<Value>)>,
    count: u64,
}

impl Waiting {
    pub fn shared() -> Arc<Mutex<Waiting>> {
        Arc::new(Mutex::new(Waiting { answers: HashMap::new(), count: 0 }))
    }

    pub fn add(&mut self) -> Pending {
        self.count += 1;
        let id = format!("c{}", self.count);
        let (answers, answer) = oneshot::channel();
        let (ticks, progress) = mpsc::unbounded_channel();
        self.answers.insert(id.clone(), (answers, ticks));
        Pending { id, answer, progress }
    }

    pub fn answer(&mut self, id: &str, answer: Answer) {
        if let Some((sender, _)) = self.answers.remove(id) {
            // A test that stopped waiting is no error.
            let _ = sender.send(answer);
        }
    }

    pub fn progress(&mut self, id: &str, progress: Value) {
        if let Some((_, sender)) = self.answers.get(id) {
            let _ = sender.send(progress);
        }
    }

    /// The client is gone: whoever waits is told.
    pub fn abandon(&mut self) {
        self.answers.clear();
    }
}
