//! Faults on their way to Sentry: lines of the log with a `fault`, as events of ids and places in our code. The words of
//! the line, and whatever else is in it, stay here. A bounded queue and one task; what does not fit is dropped.

use std::fmt;

use sentry_types::Dsn;
use sentry_types::protocol::v7::{Envelope, Event, Level};
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::outbound::{self, Complaint, Item};
use crate::config::settings::Config;
use crate::serve::Failure;
use crate::worker::http_client;

/// Faults that wait to be sent.
const QUEUE: usize = 64;
/// How we call ourselves.
const AGENT: &str = concat!("durable-mcp/", env!("CARGO_PKG_VERSION"));

/// Follows the lines of the log that are faults.
pub struct Follower(mpsc::Sender<Item<Event<'static>>>);

/// The end that is kept to deliver what is left.
pub type Delivery = outbound::Delivery<Event<'static>>;

/// Faults go to the configured DSN; nowhere without one.
pub fn start(config: &Config) -> Result<(Option<Follower>, Delivery), Failure> {
    let Some(dsn) = &config.telemetry.sentry_dsn else { return Ok((None, outbound::Delivery(None))) };
    let unusable = |error: String| Failure::usage(format!("telemetry.sentry_dsn can not be used: {error}"));
    // The error's words may repeat a part of it.
    let dsn: Dsn =
        dsn.expose().parse().map_err(|_| unusable("it is no DSN; copy it from the project's settings".into()))?;
    let client = outbound::client(dsn.envelope_api_url().as_str()).map_err(unusable)?;
    let (items, queue) = mpsc::channel(QUEUE);
    tokio::spawn(send(queue, client, dsn));
    Ok((Some(Follower(items.clone())), outbound::Delivery(Some(items))))
}

async fn send(mut queue: mpsc::Receiver<Item<Event<'static>>>, client: reqwest::Client, dsn: Dsn) {
    let address = dsn.envelope_api_url();
    let mut complaint = Complaint::default();
    while let Some(item) = queue.recv().await {
        let event = match item {
            Item::Told(event) => event,
            Item::Flush(done) => {
                // Whoever waited may have gone.
                let _ = done.send(());
                continue;
            }
        };
        let mut body = Vec::new();
        if Envelope::from(*event).to_writer(&mut body).is_err() {
            continue;
        }
        let request = client.post(address.as_str()).header("X-Sentry-Auth", dsn.to_auth(Some(AGENT)).to_string());
        let sent = request.header("Content-Type", "application/x-sentry-envelope").body(body).send().await;
        if let Err(error) = sent.and_then(reqwest::Response::error_for_status)
            && complaint.is_due()
        {
            tracing::warn!("a fault could not be delivered: {}", http_client::describe(error));
        }
    }
}

/// What the follower has to see: faults, and the spans that name executions.
pub fn follows(metadata: &tracing::Metadata<'_>) -> bool {
    let has = |name| metadata.fields().field(name).is_some();
    match metadata.is_span() {
        true => has("execution"),
        false => *metadata.level() == tracing::Level::ERROR && has("fault"),
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Follower {
    fn on_event(&self, line: &tracing::Event<'_>, context: Context<'_, S>) {
        let metadata = line.metadata();
        let mut told = Told::default();
        line.record(&mut told);
        if told.execution.is_none() {
            // The spans that the line is in may name the execution.
            told.execution = context.event_scope(line).into_iter().flatten().find_map(|span| {
                let extensions = span.extensions();
                extensions.get::<OfExecution>().map(|of| of.0.clone())
            });
        }
        let here = || Some(format!("{}:{}", metadata.file()?, metadata.line()?));
        let at = told.at.or_else(here).unwrap_or_default();
        let mut event = Event::new();
        event.level = Level::Error;
        event.message = Some(format!("internal fault at {at}"));
        event.culprit = Some(at);
        event.logger = Some(metadata.target().to_owned());
        event.release = Some(concat!("durable-mcp@", env!("CARGO_PKG_VERSION")).into());
        let tags = [("fault", told.fault), ("execution", told.execution)];
        event.tags.extend(tags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        // Full: who is told of sixty faults knows enough.
        let _ = self.0.try_send(Item::Told(Box::new(event)));
    }

    fn on_new_span(&self, attributes: &tracing::span::Attributes<'_>, id: &tracing::span::Id, context: Context<'_, S>) {
        if attributes.metadata().fields().field("execution").is_none() {
            return;
        }
        let mut told = Told::default();
        attributes.record(&mut told);
        if let (Some(span), Some(execution)) = (context.span(id), told.execution) {
            span.extensions_mut().insert(OfExecution(execution));
        }
    }
}

/// The execution of a span.
struct OfExecution(String);

/// What is told of a line: ids and a place, and nothing else that is in it.
#[derive(Default)]
struct Told {
    fault: Option<String>,
    execution: Option<String>,
    at: Option<String>,
}

impl Visit for Told {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "fault" => self.fault = Some(value.to_owned()),
            "execution" => self.execution = Some(value.to_owned()),
            "at" => self.at = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if matches!(field.name(), "fault" | "execution" | "at") {
            self.record_str(field, &format!("{value:?}"));
        }
    }
}
