//! An answer of ours that is no success, as problem details (RFC 9457): status, stable code, one sentence, and the next
//! step. Never carries internal text, and never repeats what the client sent.

use std::borrow::Cow;

use axum::body::Body;
use axum::extract::RawQuery;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: StatusCode,
    /// The stable name.
    pub code: &'static str,
    /// One sentence: what is wrong.
    pub detail: Cow<'static, str>,
    /// One sentence: what to do about it.
    pub next: Cow<'static, str>,
    /// The `WWW-Authenticate` header (RFC 6750).
    pub challenge: Option<String>,
}

/// Refuses whatever follows the question mark, where nothing is asked for.
pub(super) fn no_parameters(RawQuery(query): RawQuery) -> Result<(), Refusal> {
    match query.is_none_or(|query| query.is_empty()) {
        true => Ok(()),
        false => Err(Refusal::bad_request("this address takes no parameters", "leave them out")),
    }
}

/// The media type of problem details (RFC 9457 §3).
pub const PROBLEM_JSON: &str = "application/problem+json";

#[derive(Serialize)]
struct Document<'a> {
    /// Nothing is to be read at an address: `code` says which problem it is (RFC 9457 §4.2.1).
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    next: &'a str,
}

impl Refusal {
    /// A refusal without a challenge.
    pub fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
        next: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, code, detail: detail.into(), next: next.into(), challenge: None }
    }

    /// The same with a `WWW-Authenticate` header.
    pub fn with_challenge(mut self, challenge: impl Into<String>) -> Self {
        self.challenge = Some(challenge.into());
        self
    }

    /// There is nothing here that the caller may see.
    pub fn not_found(detail: impl Into<Cow<'static, str>>, next: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail, next)
    }

    /// A parameter is wrong.
    pub fn bad_request(detail: impl Into<Cow<'static, str>>, next: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_parameter", detail, next)
    }

    /// A fault of ours; `id` finds it in the log.
    pub fn internal(id: &str) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            format!("internal fault {id}"),
            "look for this id in the server's log",
        )
    }

    /// The verb could not be done.
    pub fn engine(error: &crate::engine::Error) -> Self {
        use crate::engine::Error;
        let next = match error {
            Error::Store(error) => return Self::store(error),
            Error::NotFound(_) => {
                return Self::not_found(
                    "there is no such execution",
                    "`durable-mcp executions list` shows those that you may see",
                );
            }
            Error::NotPermitted { state: "unknown", .. } => {
                "nobody can stop what may have happened; resolve it, or order another attempt with retry"
            }
            Error::NotPermitted { state: "completed", .. } => "it has its answer; a new call needs another key",
            Error::NotPermitted { state: "failed" | "cancelled", .. } => "it has ended; retry runs it again",
            Error::NotPermitted { .. } => "it goes on; wait for its end, or cancel it",
            Error::KeyTaken { .. } => "look at the execution that holds the key",
            Error::ArgumentsRedacted(_) => "call the tool again with its arguments",
            Error::ArgumentsDeleted(_) => "call the tool again; retention.payloads sets how long arguments are kept",
            Error::Conflict(_) | Error::Overloaded(_) | Error::Arguments(_) => "try again later",
        };
        Self::new(StatusCode::CONFLICT, error.code(), error.to_string(), next)
    }

    /// The store could not answer.
    pub fn store(error: &crate::store::Error) -> Self {
        // The text may name files and addresses of ours; it belongs in the log.
        tracing::error!(code = error.code(), %error, "the store could not answer a request");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            error.code(),
            "the store can not answer now",
            "try again; if it stays so, see the server's log",
        )
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = Document {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code,
            next: &self.next,
        };
        // Strings and a number always have JSON.
        let text = serde_json::to_string(&body).unwrap_or_default();
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(challenge) = self.challenge.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// An answer of ours in JSON. Never cached: what it shows changes, and may not be everybody's.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = match serde_json::to_vec(value) {
        Ok(text) => text,
        Err(error) => {
            tracing::error!(%error, "an answer has no JSON");
            return Refusal::internal("serialisation").into_response();
        }
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
