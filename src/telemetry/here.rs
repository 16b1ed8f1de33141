//! The request that a task works for: whoever works in it finds its span without being handed it. What goes on after the
//! request holds on to the span itself.

use opentelemetry::Value;
use opentelemetry::trace::SpanKind;

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

/// Tells something of the request.
pub fn note(key: &'static str, value: impl Into<Value>) {
    let _ = HERE.try_with(|span| span.set(key, value));
}

/// The request's method, and the span of its client that it belongs to, as both were read.
pub fn read(method: &str, caller: Option<&str>) {
    let _ = HERE.try_with(|span| {
        if let Some(parent) = caller.and_then(Place::parse) {
            span.belongs_to(parent);
        }
        span.set("rpc.method", method.to_owned());
        if method.len() <= METHOD_MAX && method.bytes().all(|byte| byte.is_ascii_graphic()) {
            span.name(method.to_owned());
        }
    });
}

/// A longer method is no name.
const METHOD_MAX: usize = 64;
