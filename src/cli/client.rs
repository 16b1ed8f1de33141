//! Asking a running server over HTTP: connect, send, and what refusals mean for a command. Follows no redirect.

use std::error::Error as _;
use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;

use super::address::Address;
use super::failure::{Exit, Failure};

/// The variable with an API key.
pub const TOKEN_VARIABLE: &str = "DURABLE_MCP_TOKEN";
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A connection to one server.
pub struct Client {
    http: reqwest::Client,
    /// Where it is.
    pub address: Address,
    bearer: Option<String>,
}

impl Client {
    /// Nothing is sent yet.
    pub fn new(address: Address, bearer: Option<String>) -> Result<Client, Failure> {
        // Another part of the process may have chosen a provider already; the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("durable-mcp/", env!("CARGO_PKG_VERSION")))
            // A redirect could carry the token to another host.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .tcp_nodelay(true);
        if address.is_clear() {
            // No certificates are needed, so that a machine without any can still reach a server in the clear.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        if address.is_loopback() {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| Failure::new(Exit::Failure, error.to_string()))?;
        Ok(Client { http, address, bearer })
    }

    /// Reads an address of the API: a JSON text. Errors: by status.
    pub async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<String, Failure> {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let mark = if query.is_empty() { "" } else { "?" };
        let request = self.http.get(format!("{}{path}{mark}{query}", self.address.base));
        let response = self.send(request).await?;
        self.text(response).await
    }

    /// Posts a JSON-RPC message to the MCP endpoint with these headers besides ours.
    pub async fn post(&self, headers: &[(&str, String)], body: String) -> Result<reqwest::Response, Failure> {
        let mut request = self.http.post(&self.address.endpoint).body(body);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        self.send(request).await
    }

    /// Sends JSON to an address of the API and reads its JSON. Errors: by status.
    pub async fn post_json(&self, path: &str, body: String) -> Result<String, Failure> {
        let request = self.http.post(format!("{}{path}", self.address.base));
        let response = self.send(request.header("Content-Type", "application/json").body(body)).await?;
        self.text(response).await
    }

    /// Begins to read an address of the API piece by piece. Errors: by status.
    pub async fn open(&self, path: &str, query: &[(&str, String)]) -> Result<reqwest::Response, Failure> {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        self.send(self.http.get(format!("{}{path}?{query}", self.address.base))).await
    }

    /// Sends a message of an MCP client to the endpoint; any status is an answer.
    pub async fn exchange(
        &self,
        method: reqwest::Method,
        headers: reqwest::header::HeaderMap,
        body: String,
    ) -> reqwest::Result<reqwest::Response> {
        let request = self.http.request(method, &self.address.endpoint).headers(headers).body(body);
        match &self.bearer {
            Some(bearer) => request.bearer_auth(bearer),
            None => request,
        }
        .send()
        .await
    }

    async fn send(&self, mut request: reqwest::RequestBuilder) -> Result<reqwest::Response, Failure> {
        if let Some(bearer) = &self.bearer {
            request = request.bearer_auth(bearer);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = self.text(response).await.unwrap_or_default();
        Err(refused(status, &text))
    }

    /// The whole body.
    pub async fn text(&self, mut response: reqwest::Response) -> Result<String, Failure> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(Failure::new(Exit::Failure, "the server's answer is too large to read"));
            }
            bytes.extend_from_slice(&chunk);
        }
        String::from_utf8(bytes).map_err(|_| Failure::new(Exit::Failure, "the server's answer is not UTF-8"))
    }

    /// What a broken connection means.
    pub fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let base = &self.address.base;
        if error.is_connect() {
            // The innermost cause is what people know: `connection refused`.
            let mut cause = error.source();
            while let Some(inner) = cause.and_then(|cause| cause.source()) {
                cause = Some(inner);
            }
            let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
            return Failure::new(Exit::Unreachable, format!("no server answers at {base}{cause}"))
                .next("start one with `durable-mcp serve`, or name another with --url");
        }
        Failure::new(Exit::Unreachable, format!("the connection to {base} broke before the answer was whole"))
            .next("ask again; a repeated call is not run a second time while the first one goes on or is stored")
    }
}

/// Our own refusals are problem details (RFC 9457) that say what to do; JSON-RPC errors have a message; others only a
/// status.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refused {
    detail: Option<String>,
    error: serde_json::Value,
    next: Option<String>,
}

fn refused(status: StatusCode, text: &str) -> Failure {
    let refused: Refused = serde_json::from_str(text).unwrap_or_default();
    let sentence = refused.detail.as_deref().or_else(|| refused.error.get("message").and_then(|text| text.as_str()));
    let sentence = sentence.map_or_else(|| format!("the server answered {status}"), str::to_owned);
    let exit = match status.as_u16() {
        401 | 403 => Exit::Auth,
        404 => Exit::NotFound,
        400 | 413 | 415 | 421 => Exit::Usage,
        409 => Exit::Conflict,
        502..=504 => Exit::Unreachable,
        _ => Exit::Failure,
    };
    let failure = Failure::new(exit, sentence);
    let next = match (status, refused.next) {
        (StatusCode::UNAUTHORIZED, _) => Some(format!("put a token of this server into {TOKEN_VARIABLE}")),
        (_, next) => next,
    };
    Failure { next, ..failure }
}
