//! A double for what the program tells things to: an OTLP collector and a Sentry server on one listener, which keep what
//! they are sent. Answers as it is told to; asserts nothing.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::{DEADLINE, eventually};

/// A span as the collector got it.
#[derive(Clone, Debug, PartialEq)]
pub struct Got {
    pub name: String,
    /// Lower-case hex.
    pub trace: String,
    pub id: String,
    /// Empty for a root.
    pub parent: String,
    pub links: Vec<String>,
    pub attributes: Vec<(String, String)>,
    /// The process that told of it.
    pub pid: u32,
    pub failure: Option<String>,
    pub start: u64,
    pub end: u64,
}

impl Got {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A request to the Sentry double: its headers and body.
#[derive(Clone, Debug)]
pub struct Envelope {
    pub path: String,
    pub auth: String,
    pub body: String,
}

#[derive(Default)]
struct Kept {
    spans: Vec<Got>,
    bodies: Vec<Vec<u8>>,
    envelopes: Vec<Envelope>,
}

/// The double; ends with the test.
pub struct Collector {
    url: String,
    kept: Arc<Mutex<Kept>>,
    server: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Collector {
    pub async fn start() -> Collector {
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let router = Router::new()
            .route("/v1/traces", post(take_traces))
            .route("/api/{project}/envelope/", post(take_envelope))
            .with_state(kept.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Collector { url, kept, server }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Every span so far.
    pub fn spans(&self) -> Vec<Got> {
        self.kept.lock().unwrap().spans.clone()
    }

    /// The spans of this name so far.
    pub fn named(&self, name: &str) -> Vec<Got> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }

    /// Waits until there are so many spans of this name.
    pub async fn wait_for(&self, name: &str, count: usize) -> Vec<Got> {
        eventually(&format!("{count} spans {name}"), DEADLINE, || self.named(name).len() >= count).await;
        self.named(name)
    }

    /// Whether any body so far has this text in it.
    pub fn heard_of(&self, text: &str) -> bool {
        let kept = self.kept.lock().unwrap();
        let bodies = kept.bodies.iter().map(Vec::as_slice);
        let envelopes = kept.envelopes.iter().map(|envelope| envelope.body.as_bytes());
        bodies.chain(envelopes).any(|body| body.windows(text.len()).any(|window| window == text.as_bytes()))
    }

    pub fn envelopes(&self) -> Vec<Envelope> {
        self.kept.lock().unwrap().envelopes.clone()
    }
}

async fn take_traces(State(kept): State<Arc<Mutex<Kept>>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
    let Ok(request) = ExportTraceServiceRequest::decode(body.as_ref()) else { return StatusCode::BAD_REQUEST };
    if kind != Some("application/x-protobuf") {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE;
    }
    let mut kept = kept.lock().unwrap();
    kept.bodies.push(body.to_vec());
    for resource in request.resource_spans {
        let attributes = resource.resource.map(|resource| texts(&resource.attributes)).unwrap_or_default();
        let of = |name: &str| attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let pid = of("process.pid").and_then(|pid| pid.parse().ok()).unwrap_or_default();
        if of("service.name").as_deref() != Some("durable-mcp") {
            return StatusCode::BAD_REQUEST;
        }
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            kept.spans.push(Got {
                name: span.name,
                trace: hex::encode(span.trace_id),
                id: hex::encode(span.span_id),
                parent: hex::encode(span.parent_span_id),
                links: span.links.iter().map(|link| hex::encode(&link.span_id)).collect(),
                attributes: texts(&span.attributes),
                pid,
                failure: span.status.map(|status| status.message).filter(|message| !message.is_empty()),
                start: span.start_time_unix_nano,
                end: span.end_time_unix_nano,
            });
        }
    }
    StatusCode::OK
}

async fn take_envelope(
    State(kept): State<Arc<Mutex<Kept>>>,
    axum::extract::Path(project): axum::extract::Path<String>,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let auth = headers.get("x-sentry-auth").and_then(|auth| auth.to_str().ok()).unwrap_or_default();
    kept.lock().unwrap().envelopes.push(Envelope { path: project, auth: auth.to_owned(), body });
    StatusCode::OK
}

fn texts(attributes: &[KeyValue]) -> Vec<(String, String)> {
    attributes.iter().map(|attribute| (attribute.key.clone(), text(attribute.value.as_ref()))).collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::IntValue(value)) => value.to_string(),
        Some(Value::DoubleValue(value)) => value.to_string(),
        other => format!("{other:?}"),
    }
}
