//! What an HTTP answer means: a tool result, or a failure that may be tried again. Pure.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use serde_json::value::RawValue;

use crate::model::decide::{Failure, FailureKind};
use crate::model::execution::ErrorInfo;
use crate::model::json::{one_line, quoted};
use crate::worker::executor::Outcome;

/// So much of the body of an error is shown to the caller.
const ERROR_BODY_BYTES: usize = 8 << 10;

/// An answer, read as far as its limit.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Body,
}

/// What was read of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    /// All of it.
    Whole(Vec<u8>),
    /// Its beginning; it is longer than the limit or broke off.
    Beginning(Vec<u8>),
}

/// How a tool's answers are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// True when its tool object has an `outputSchema`.
    pub has_output_schema: bool,
    /// Statuses after which the call is made again where delivery permits it.
    pub retry_on_status: Vec<u16>,
    /// The longest wait that a `Retry-After` may ask for.
    pub retry_after_max: Duration,
    /// The largest body.
    pub body_bytes_max: usize,
}

impl Reading {
    /// What the answer means. `may_run_again`: another attempt is permitted.
    pub fn outcome(&self, answer: &Answer, may_run_again: bool) -> Outcome {
        let status = answer.status;
        if may_run_again && self.retry_on_status.contains(&status.as_u16()) {
            return Outcome::Failed(Failure {
                kind: FailureKind::Reported { retryable: true },
                // The body is a payload, and errors have none.
                error: ErrorInfo { code: "http_status".into(), message: format!("the server answered {status}") },
                retry_after_ms: self.retry_after_ms(&answer.headers),
            });
        }
        let result = match (&answer.body, status.is_success()) {
            (_, false) => failed(answer),
            (Body::Whole(body), true) => self.succeeded(answer, body),
            (Body::Beginning(_), true) => failure(&format!(
                "The server answered {status} with more than {} bytes, which is the limit. \
                 The request had its effect; its answer was not kept. Ask for less.",
                self.body_bytes_max
            )),
        };
        Outcome::Result(result.into())
    }

    fn succeeded(&self, answer: &Answer, body: &[u8]) -> String {
        let kind = media_type(&answer.headers);
        if let Some((family @ ("image" | "audio"), _)) = kind.split_once('/')
            && !body.is_empty()
            && !self.has_output_schema
            // A drawing in text is text to a model.
            && !kind.ends_with("+xml")
        {
            let data = STANDARD.encode(body);
            return format!(r#"{{"content":[{{"type":"{family}","data":"{data}","mimeType":{}}}]}}"#, quoted(&kind));
        }
        let text = String::from_utf8_lossy(body);
        let json = text.trim();
        if json.starts_with('{') && serde_json::from_str::<&RawValue>(json).is_ok() {
            return format!(r#"{{"content":[{}],"structuredContent":{}}}"#, block(&text), one_line(json));
        }
        if self.has_output_schema {
            // An official client takes a result without structured content for a broken one.
            return failure(&format!(
                "The server answered {}, but with no JSON object, which the tool's output schema asks for. \
                 The request had its effect. It answered:\n{}",
                answer.status,
                beginning(body)
            ));
        }
        match body.is_empty() {
            true => format!(r#"{{"content":[{}]}}"#, block(&format!("The server answered {}.", answer.status))),
            false => format!(r#"{{"content":[{}]}}"#, block(&text)),
        }
    }

    /// The wait that the server asked for, in milliseconds, capped. A time is measured against the server's own clock.
    fn retry_after_ms(&self, headers: &HeaderMap) -> Option<i64> {
        let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        let max_ms = i64::try_from(self.retry_after_max.as_millis()).unwrap_or(i64::MAX);
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let seconds = text.parse::<i64>().unwrap_or(i64::MAX);
            return Some(seconds.saturating_mul(1_000).min(max_ms));
        }
        let at = http_date_ms(text)?;
        let now = http_date_ms(headers.get(DATE)?.to_str().ok()?)?;
        Some(at.saturating_sub(now).clamp(0, max_ms))
    }
}

fn http_date_ms(text: &str) -> Option<i64> {
    jiff::fmt::rfc2822::parse(text.trim()).ok().map(|time| time.timestamp().as_millisecond())
}

fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn failed(answer: &Answer) -> String {
    let status = answer.status;
    let mut text = format!("The server answered {status}.");
    if status.is_redirection() {
        text.push_str(" It points to another address, which is not followed; the tool's url needs the final one.");
    }
    let (Body::Whole(body) | Body::Beginning(body)) = &answer.body;
    let shown = beginning(body);
    if !shown.trim().is_empty() {
        text.push_str(" It said:\n");
        text.push_str(&shown);
    }
    failure(&text)
}

/// What is shown of a body that explains something.
fn beginning(body: &[u8]) -> String {
    let cut = body.len() > ERROR_BODY_BYTES;
    let mut text = String::from_utf8_lossy(&body[..body.len().min(ERROR_BODY_BYTES)]).into_owned();
    if cut {
        text.push('…');
    }
    text
}

fn failure(text: &str) -> String {
    format!(r#"{{"content":[{}],"isError":true}}"#, block(text))
}

fn block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}
