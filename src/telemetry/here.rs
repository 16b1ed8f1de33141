//! The request that a task works for: whoever works in it finds its span without being handed it. What goes on after the
//! request holds on to the span itself.

use opentelemetry::Value;
use opentelemetry::trace::SpanKind;
use tracing::field::Empty;

use super::place::Place;
use super::span::Span;

tokio::task_local! {
    static HERE: Span;
}

/// Runs `future` as work for the request of this span.
pub async fn within<F: Future>(span: Span, future: F) -> F::Output {
    match span.place() {
        Some(_) => HERE.scope(span, future).await,
        None => future.await,
    }
}

/// The request's span; nothing, where none is recorded.
pub fn span() -> Span {
    HERE.try_with(Span::clone).unwrap_or_default()
}

/// Begins a span that belongs to the request.
pub fn child(name: &'static str) -> Span {
    HERE.try_with(|span| span.child(name, SpanKind::Internal)).unwrap_or_default()
}

/// Begins the span of one message of the batch that the task works for.
pub fn part() -> Span {
    HERE.try_with(|span| span.part("request")).unwrap_or_default()
}

/// Tells something of the request.
pub fn note(key: &'static str, value: impl Into<Value>) {
    let _ = HERE.try_with(|span| span.set(key, value));
}

/// What each line of the log says of the request that it belongs to, once [`read`] knows it.
pub fn logged() -> tracing::Span {
    tracing::info_span!("request", method = Empty, trace = Empty)
}

/// The request's method, and the span of its client that it belongs to, as both were read.
pub fn read(method: &str, caller: Option<&str>) {
    let caller = caller.and_then(Place::parse);
    let found = HERE.try_with(|span| {
        if let Some(parent) = caller {
            span.belongs_to(parent);
        }
        if is_name(method) {
            span.name(method.to_owned());
            span.set("rpc.method", method.to_owned());
        }
        span.place()
    });
    let logged = tracing::Span::current();
    if is_name(method) {
        logged.record("method", method);
    }
    if let Some(place) = found.ok().flatten().or(caller) {
        logged.record("trace", place.trace.to_string());
    }
}

/// What a client calls a method is no text of ours: it is told as long as it looks like one.
fn is_name(method: &str) -> bool {
    method.len() <= METHOD_MAX && method.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_-.".contains(&byte))
}

/// A longer method is no name.
const METHOD_MAX: usize = 64;
