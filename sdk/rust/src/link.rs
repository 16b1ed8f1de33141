//! One request to the server and its answer. Retries nothing and knows no route's meaning.

use std::cell::RefCell;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::address::ServerAddress;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// The server was not reached, is going down, or can not answer now: the same request may be sent again.
    #[error("{0}")]
    Away(String),
    /// The server refuses (RFC 9457).
    #[error("{status} {code}: {detail}")]
    Refused { status: u16, code: String, detail: String },
}

/// Connections to one server, kept open.
pub(crate) struct Link {
    address: ServerAddress,
    http: reqwest::Client,
    token: RefCell<Option<String>>,
}

impl Link {
    pub fn new(address: ServerAddress) -> reqwest::Result<Link> {
        // Another part of the process may have chosen a provider already; the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("durable-mcp-worker-rust/", env!("CARGO_PKG_VERSION")))
            // A redirect could carry the token to another host.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .pool_idle_timeout(Duration::from_secs(30));
        if address.is_clear() {
            // No certificates are needed, so that a machine without any can still reach a server in the clear.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        if address.is_loopback() {
            builder = builder.no_proxy();
        }
        let token = RefCell::new(address.token());
        Ok(Link { http: builder.build()?, address, token })
    }

    pub fn base(&self) -> &str {
        self.address.base()
    }

    /// Reads the token again; true when it is another one than before.
    pub fn read_token(&self) -> bool {
        let token = self.address.token();
        self.token.replace(token.clone()) != token
    }

    /// The answer's JSON.
    pub async fn post<T: DeserializeOwned>(&self, route: &str, body: String, limit: Duration) -> Result<T, LinkError> {
        let url = format!("{}/worker/v1/{route}", self.address.base());
        let mut request = self.http.post(url).timeout(limit).header(CONTENT_TYPE, "application/json").body(body);
        if let Some(token) = &*self.token.borrow() {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let response = request.send().await.map_err(away)?;
        let status = response.status().as_u16();
        let text = response.bytes().await.map_err(away)?;
        if status == 200 {
            return serde_json::from_slice(&text)
                .map_err(|error| LinkError::Away(format!("the answer is not understood: {error}")));
        }
        let problem: Problem = serde_json::from_slice(&text).unwrap_or_default();
        if status >= 500 || status == 408 || status == 429 {
            return Err(LinkError::Away(format!("{status} {}", problem.code)));
        }
        let mut detail = if problem.detail.is_empty() { problem.title } else { problem.detail };
        if !problem.next.is_empty() {
            detail = format!("{detail} ({})", problem.next);
        }
        Err(LinkError::Refused { status, code: problem.code, detail })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    title: String,
    detail: String,
    next: String,
}

fn away(error: reqwest::Error) -> LinkError {
    use std::error::Error;
    // The outermost text says only that a request failed.
    let mut cause: &dyn Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    LinkError::Away(cause.to_string())
}
