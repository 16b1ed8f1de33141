//! The executor of HTTP tools: one request per attempt, made of the operator's templates (`request`), to a checked
//! address (`address`), its answer read within bounds (`answer`). No retries of its own and no cookies; redirects within
//! one host only, and only where nothing but reading is repeated.

mod address;
mod answer;
mod request;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::HeaderValue;
use reqwest::redirect::{Attempt as Hop, Policy};
use reqwest::{Client, Method, Response, Url};
use thiserror::Error;

pub use address::{Reach, Unreachable};
pub use request::{Template, UrlError, check_url};

use super::executor::{Executor, Job, Outcome, Report};
use super::http_client::{self, describe};
use crate::model::json::{quoted, with_member};
use crate::model::trace::TraceContext;
use answer::{Answer, Body, Reading};
use request::{Attempt, Outgoing};

/// A redirect may follow a redirect so often.
const HOPS_MAX: usize = 5;
/// Statuses after which a call is made again where the operator names none and delivery permits it.
pub const RETRY_ON_STATUS: [u16; 7] = [408, 425, 429, 500, 502, 503, 504];

/// An HTTP request as a tool.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What is sent.
    pub template: Template,
    /// The argument that is filled with the effect key when the caller leaves it out.
    pub key_argument: Option<String>,
    /// True when its tool object has an `outputSchema`: the answer has to be a JSON object then.
    pub has_output_schema: bool,
    /// Statuses after which the call is made again where delivery permits it.
    pub retry_on_status: Vec<u16>,
    /// Who may be reached.
    pub reach: Reach,
    /// Bounds.
    pub limits: Limits,
}

/// Bounds on one attempt; its time is the policy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long an idle connection is kept; below the 5 s after which Node.js servers close one.
    pub pool_idle_timeout: Duration,
    /// The largest body of an answer.
    pub body_bytes: usize,
    /// The longest wait that a `Retry-After` may ask for.
    pub retry_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            pool_idle_timeout: Duration::from_secs(4),
            body_bytes: 16 << 20,
            retry_after: Duration::from_secs(300),
        }
    }
}

/// Why a tool cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// Its address.
    #[error("url: {0}")]
    Url(#[from] UrlError),
    /// The machine has no certificates, for example.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// Runs one HTTP tool.
pub struct HttpCall {
    template: Template,
    key_argument: Option<String>,
    reading: Reading,
    client: Client,
}

impl HttpCall {
    /// A tool that can be run.
    ///
    /// # Errors
    /// When its address can be none, or the machine is not fit for TLS.
    pub fn new(settings: Settings) -> Result<HttpCall, Error> {
        let Settings { template, key_argument, has_output_schema, retry_on_status, reach, limits } = settings;
        let probe = check_url(&template.url, &reach)?;
        let redirects = match template.method {
            Method::GET | Method::HEAD => Policy::custom(follow_within_host),
            _ => Policy::none(),
        };
        let client = http_client::builder(&probe)
            .redirect(redirects)
            // A proxy would resolve the name itself, and what was checked here would say nothing.
            .no_proxy()
            .dns_resolver(Arc::new(reach))
            .connect_timeout(limits.connect_timeout)
            .pool_idle_timeout(limits.pool_idle_timeout)
            .build()
            .map_err(|error| Error::Client(describe(error)))?;
        let reading = Reading {
            has_output_schema,
            retry_on_status,
            retry_after_max: limits.retry_after,
            body_bytes_max: limits.body_bytes,
        };
        Ok(HttpCall { template, key_argument, reading, client })
    }

    fn outgoing(&self, job: &Job) -> Result<Outgoing, request::Unsendable> {
        let arguments = match &self.key_argument {
            Some(name) => with_member(&job.arguments, name, &quoted(&job.effect_key.to_string())),
            None => (&*job.arguments).into(),
        };
        let mut outgoing = self.template.fill(Attempt {
            arguments: &arguments,
            effect_key: job.effect_key,
            execution: job.id,
            fencing_token: job.fencing_token,
        })?;
        let trace = job.meta.as_deref().map(TraceContext::in_meta).unwrap_or_default();
        for (name, value) in trace.parts() {
            // What the operator set stays.
            if let Ok(value) = HeaderValue::from_str(value) {
                outgoing.headers.entry(name).or_insert(value);
            }
        }
        Ok(outgoing)
    }

    async fn exchange(&self, outgoing: Outgoing, may_run_again: bool) -> Outcome {
        let Outgoing { method, url, headers, body } = outgoing;
        let first = url.clone();
        let mut request = self.client.request(method, url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return not_answered(error, &first),
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let body = match read_body(response, self.reading.body_bytes_max).await {
            Ok(body) => body,
            // Of a refusal the status says enough.
            Err((body, _)) if !status.is_success() => Body::Beginning(body),
            Err((_, error)) => return Outcome::lost("connection_lost", format!("the answer broke off: {error}")),
        };
        self.reading.outcome(&Answer { status, headers, body }, may_run_again)
    }
}

#[async_trait]
impl Executor for HttpCall {
    async fn run(&self, job: Job, _report: Report<'_>) -> Outcome {
        if job.cancel.is_cancelled() {
            return Outcome::not_started("cancelled", "the call was cancelled before its request was sent");
        }
        let outgoing = match self.outgoing(&job) {
            Ok(outgoing) => outgoing,
            Err(error) => {
                let text = quoted(&format!("Nothing was sent: {error}."));
                let result = format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true}}"#);
                return Outcome::Result(result.into());
            }
        };
        tokio::select! {
            outcome = self.exchange(outgoing, job.may_run_again) => outcome,
            // Dropping the exchange closes its connection.
            () = job.cancel.cancelled() => Outcome::lost("request_stopped", "the request was stopped before its answer"),
        }
    }
}

/// What an exchange without an answer says about the call. Behind a redirect `first` has been reached already.
fn not_answered(error: reqwest::Error, first: &Url) -> Outcome {
    if error.url().is_some_and(|url| url != first) {
        return Outcome::lost("connection_lost", format!("a redirect led to nothing: {}", describe(error)));
    }
    if let Some(refused) = cause::<Unreachable>(&error) {
        let code = match refused {
            Unreachable::Private(_) => "address_not_allowed",
            Unreachable::Unknown(_) => "name_not_resolved",
        };
        return Outcome::not_started(code, refused.to_string());
    }
    if error.is_connect() {
        return Outcome::not_started("not_reached", format!("the server cannot be reached: {}", describe(error)));
    }
    if error.is_builder() {
        return Outcome::not_started("not_sent", format!("the request cannot be built: {}", describe(error)));
    }
    Outcome::lost("connection_lost", format!("the connection broke before the answer: {}", describe(error)))
}

fn cause<E: std::error::Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(found) = inner.downcast_ref::<E>() {
            return Some(found);
        }
        source = inner.source();
    }
    None
}

/// Reads a body up to a limit; the error comes with what was read before it.
async fn read_body(mut response: Response, bytes_max: usize) -> Result<Body, (Vec<u8>, String)> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > bytes_max => {
                body.extend_from_slice(&chunk[..bytes_max - body.len()]);
                return Ok(Body::Beginning(body));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(Body::Whole(body)),
            Err(error) => return Err((body, describe(error))),
        }
    }
}

fn follow_within_host(hop: Hop<'_>) -> reqwest::redirect::Action {
    let within = hop.previous().first().is_some_and(|from| is_same_host(from, hop.url()));
    match within && hop.previous().len() <= HOPS_MAX {
        true => hop.follow(),
        // The redirect itself becomes the answer.
        false => hop.stop(),
    }
}

/// The same host and port, or the step from http to https on their usual ports; never back.
fn is_same_host(from: &Url, to: &Url) -> bool {
    let same_place = from.scheme() == to.scheme() && from.port_or_known_default() == to.port_or_known_default();
    let secured = (from.scheme(), to.scheme()) == ("http", "https") && from.port().is_none() && to.port().is_none();
    from.host_str() == to.host_str() && (same_place || secured)
}
