//! Spans on their way to an OTLP collector (HTTP, protobuf): a bounded queue and one task that sends what has gathered.
//! Whoever ends a span never waits; what does not fit in the queue is dropped and counted. Retries nothing: a collector
//! that is away is seen in the counters and in one line of the log.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::outbound::{self, Complaint, Item};
use crate::config::settings::Config;
use crate::engine::clock;
use crate::serve::Failure;
use crate::telemetry::span::Sink;
use crate::telemetry::{Counts, Sampler, Traces};
use crate::worker::http_client;

/// Spans sent at once.
const BATCH: usize = 512;
/// How long the first of a batch waits for company.
const GATHER: Duration = Duration::from_millis(500);

/// Where it is said that spans go, besides the configuration. The rest of the standard's variables are read by the exporter.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// Which protocol is spoken.
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/// Which traces are recorded.
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
/// The path of traces (OTLP/HTTP).
const PATH: &str = "/v1/traces";

/// The end that is kept to deliver what is left.
pub type Delivery = outbound::Delivery<SpanData>;

struct Queue {
    items: mpsc::Sender<Item<SpanData>>,
    counts: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

/// Where spans go by the configuration and the standard's variables; nowhere without an address.
pub fn start(config: &Config) -> Result<(Traces, Delivery), Failure> {
    let off = || (Traces::default(), outbound::Delivery(None));
    let variable = |name: &&str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let is = |name: &str, wanted: &str| variable(&name).is_some_and(|value| value.eq_ignore_ascii_case(wanted));
    let configured = config.telemetry.otlp_endpoint.as_ref().map(|endpoint| endpoint.expose().to_owned());
    let Some(address) = configured.clone().or_else(|| ENDPOINTS.iter().find_map(variable)) else { return Ok(off()) };
    if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
        return Ok(off());
    }
    if let Some(protocol) = PROTOCOLS.iter().find_map(variable).filter(|protocol| protocol != "http/protobuf") {
        tracing::warn!(
            "no traces are made: {protocol} is not spoken here, set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
        );
        return Ok(off());
    }
    let unusable = |error: String| Failure::usage(format!("telemetry.otlp_endpoint can not be used: {error}"));
    let client = outbound::client(&address).map_err(unusable)?;
    let mut builder = SpanExporter::builder().with_http().with_http_client(Http(client));
    if let Some(endpoint) = configured {
        builder = builder.with_endpoint(of_traces(&endpoint));
    }
    let mut exporter = builder.build().map_err(|error| unusable(error.to_string()))?;
    exporter.set_resource(&resource());
    let (items, queue) = mpsc::channel(config.telemetry.max_spans as usize);
    let counts: Arc<Counters> = Arc::default();
    tokio::spawn(send(queue, exporter, counts.clone()));
    let sink = Arc::new(Queue { items: items.clone(), counts });
    let (sampler, unusable) = Sampler::read(variable(&SAMPLER).as_deref(), variable(&SAMPLER_ARGUMENT).as_deref());
    if let Some(words) = unusable {
        tracing::warn!("{words}");
    }
    Ok((Traces::to(sink, clock::wall, sampler), outbound::Delivery(Some(items))))
}

/// The address of traces below that of a collector.
fn of_traces(endpoint: &str) -> String {
    let base = endpoint.trim_end_matches('/');
    if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") }
}

/// Who tells. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` come before what is said here.
fn resource() -> Resource {
    let named = std::env::var_os("OTEL_SERVICE_NAME").is_some()
        || std::env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|attributes| attributes.contains("service.name="));
    let mut builder = Resource::builder().with_attributes([
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("process.pid", i64::from(std::process::id())),
    ]);
    if !named {
        builder = builder.with_service_name("durable-mcp");
    }
    builder.build()
}

impl Sink for Queue {
    fn take(&self, span: SpanData) {
        if self.items.try_send(Item::Told(Box::new(span))).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { exported, dropped, failed } = &*self.counts;
        Counts { exported: of(exported), dropped: of(dropped), failed: of(failed) }
    }
}

async fn send(mut queue: mpsc::Receiver<Item<SpanData>>, exporter: SpanExporter, counts: Arc<Counters>) {
    let mut complaint = Complaint::default();
    while let Some(first) = queue.recv().await {
        let (mut batch, mut waiting) = (Vec::new(), Vec::new());
        let until = Instant::now() + GATHER;
        let mut next = Some(first);
        while let Some(item) = next.take() {
            match item {
                Item::Told(span) => batch.push(*span),
                Item::Flush(done) => waiting.push(done),
            }
            if batch.len() < BATCH && waiting.is_empty() {
                next = timeout_at(until, queue.recv()).await.unwrap_or_default();
            }
        }
        let count = batch.len() as u64;
        if count > 0 {
            match exporter.export(batch).await {
                Ok(()) => drop(counts.exported.fetch_add(count, Ordering::Relaxed)),
                Err(error) => {
                    counts.failed.fetch_add(count, Ordering::Relaxed);
                    if complaint.is_due() {
                        tracing::warn!("traces could not be delivered: {error}; calls go on without them");
                    }
                }
            }
        }
        for done in waiting {
            // Whoever waited may have gone.
            let _ = done.send(());
        }
    }
}

/// The program's own HTTP client, as the exporter wants it.
struct Http(reqwest::Client);

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http")
    }
}

#[async_trait]
impl HttpClient for Http {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let request = self.0.request(head.method, head.uri.to_string()).headers(head.headers).body(body);
        let answered = request.send().await.map_err(http_client::describe)?;
        let mut response = Response::builder().status(answered.status());
        if let Some(headers) = response.headers_mut() {
            *headers = answered.headers().clone();
        }
        let body = answered.bytes().await.map_err(http_client::describe)?;
        Ok(response.body(body)?)
    }
}
