//! Places in traces, spans to a sink, and panics as faults.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::trace::SpanData;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

use super::span::Sink;
use super::*;
use crate::model::id::ExecutionId;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[derive(Default)]
struct Kept(Mutex<Vec<SpanData>>);

impl Sink for Kept {
    fn take(&self, span: SpanData) {
        self.0.lock().unwrap().push(span);
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }
}

fn on() -> (Traces, Arc<Kept>) {
    sampled_by(Sampler::default())
}

fn sampled_by(sampler: Sampler) -> (Traces, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    (Traces::to(kept.clone(), || Duration::from_secs(1_800_000_000), sampler), kept)
}

fn id(number: u8) -> ExecutionId {
    ExecutionId::new(1_800_000_000_000, &[number; 10])
}

#[test]
fn a_place_is_read_and_written_as_the_standard_says() {
    let place = Place::parse(PARENT).unwrap();
    assert_eq!(place.traceparent(), PARENT);
    assert!(place.sampled && !Place::parse(&PARENT.replace("-01", "-00")).unwrap().sampled);
    for wrong in ["", "00-1-2-01", &PARENT.to_uppercase(), &PARENT.replace("b7ad6b7169203331", "0000000000000000")] {
        assert_eq!(Place::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn every_process_knows_the_same_places_of_an_execution() {
    let caller = Place::parse(PARENT);
    let of = |number| Place::of_execution(id(number), caller);
    assert_eq!(of(1), of(1));
    assert_eq!(of(1).trace, caller.unwrap().trace);
    let spans = [of(1).span, of(2).span, of(1).of_lease(id(1), 1).span, of(1).of_lease(id(1), 2).span];
    for (at, span) in spans.iter().enumerate() {
        assert!(!spans[..at].contains(span), "{spans:?}");
    }
    // Without a caller it has a trace of its own.
    let alone = Place::of_execution(id(1), None);
    assert_eq!((alone.trace, alone.span), (Place::of_execution(id(1), None).trace, of(1).span));
    assert_ne!(alone.trace, Place::of_execution(id(2), None).trace);
}

#[tokio::test]
async fn a_span_ends_with_the_last_hold_and_stays_under_its_request() {
    let (traces, kept) = on();
    let request = traces.entry("request", SpanKind::Server, None);
    let late = here::within(request.clone(), async {
        here::read("tools/call", Some(PARENT));
        here::note("n", 1);
        let child = here::child("child");
        tokio::spawn(async move { child }).await.unwrap()
    })
    .await;
    drop(request);
    let names = || kept.0.lock().unwrap().iter().map(|span| span.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(), ["tools/call"], "the request is over, and what it began is not");
    late.fail("lost");
    drop(late);
    let spans = kept.0.lock().unwrap();
    assert_eq!(spans[1].parent_span_id, spans[0].span_context.span_id());
    assert_eq!(spans[1].span_context.trace_id(), Place::parse(PARENT).unwrap().trace);
    assert_eq!(spans[0].parent_span_id, Place::parse(PARENT).unwrap().span);
    assert_eq!(spans[1].status, Status::error("lost"));
}

#[tokio::test]
async fn what_is_not_recorded_is_not_made() {
    let (traces, kept) = on();
    let unsampled = Place::parse(&PARENT.replace("-01", "-00")).unwrap();
    assert_eq!(Traces::default().entry("a", SpanKind::Server, None).place(), None);
    assert_eq!(traces.span("a", SpanKind::Internal, unsampled).place(), None);
    let entry = traces.entry("a", SpanKind::Server, Some(unsampled));
    assert_eq!(entry.place().map(|place| (place.trace, place.sampled)), Some((unsampled.trace, false)));
    for span in [entry, Traces::default().entry("a", SpanKind::Server, None)] {
        here::within(span, async { assert_eq!(here::child("b").place(), None) }).await;
    }
    let request = traces.entry("request", SpanKind::Server, None);
    here::within(request.clone(), async { here::read("m", Some(&PARENT.replace("-01", "-00"))) }).await;
    assert_eq!(request.child("b", SpanKind::Internal).place(), None);
    drop(request);
    assert_eq!(kept.0.lock().unwrap().len(), 0);
}

#[test]
fn a_sampler_is_what_the_standard_calls_it() {
    let parent = |sampled| Place { sampled, ..Place::parse(PARENT).unwrap() };
    // What is told of a trace without a client, of one that is recorded, and of one that is not.
    let told = |name: Option<&str>, argument: Option<&str>| {
        let (sampler, problem) = Sampler::read(name, argument);
        let (traces, kept) = sampled_by(sampler);
        let told = [None, Some(parent(true)), Some(parent(false))].map(|caller| {
            kept.0.lock().unwrap().clear();
            drop(traces.entry("a", SpanKind::Server, caller).child("b", SpanKind::Internal));
            let spans = kept.0.lock().unwrap().len();
            assert_eq!(traces.of_execution(id(1), caller).sampled, spans == 2, "{name:?} {caller:?}");
            spans == 2
        });
        (told, problem.is_some())
    };
    assert_eq!(told(None, None), ([true, true, false], false));
    assert_eq!(told(Some("always_on"), None), ([true, true, true], false));
    assert_eq!(told(Some("always_off"), None), ([false, false, false], false));
    assert_eq!(told(Some("traceidratio"), Some("0")), ([false, false, false], false));
    assert_eq!(told(Some("traceidratio"), Some("1.0")), ([true, true, true], false));
    assert_eq!(told(Some("parentbased_always_on"), None), ([true, true, false], false));
    assert_eq!(told(Some("parentbased_always_off"), None), ([false, true, false], false));
    assert_eq!(told(Some("parentbased_traceidratio"), Some("0")), ([false, true, false], false));
    assert_eq!(told(Some("parentbased_traceidratio"), None), ([true, true, false], false));
    for (name, argument) in [("jaeger_remote", None), ("traceidratio", Some("1.5")), ("traceidratio", Some("x"))] {
        assert!(told(Some(name), argument).1, "{name} {argument:?}");
    }
}

#[test]
fn a_share_of_traces_is_recorded_and_every_process_agrees_on_which() {
    let read = || Sampler::read(Some("parentbased_traceidratio"), Some("0.25")).0;
    let recorded = (0..2_000).filter(|_| {
        let trace = Place::root().trace;
        let first = read().records(trace, None);
        assert_eq!(first, read().records(trace, None));
        first
    });
    let recorded = recorded.count();
    // Five hundred, and more than ten deviations to each side.
    assert!((300..700).contains(&recorded), "{recorded}");
}

/// Keeps the fields of lines that are faults.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

/// Fields and their values.
type Line = Vec<(String, String)>;

struct Fields(Line);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push((field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned()));
    }
}

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(Vec::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
}

#[tokio::test]
async fn a_panic_is_told_once_with_the_execution_and_the_id_that_its_client_gets() {
    let lines = Lines::default();
    let _log = tracing::subscriber::set_default(Registry::default().with(lines.clone()));
    faults::watch_panics();
    faults::watch_panics();
    let panicking = async { panic!("canary") };
    let caught = std::panic::AssertUnwindSafe(faults::of_execution(id(1), panicking)).catch_unwind().await;
    assert!(caught.is_err());
    let told = faults::caught();
    let lines = lines.0.lock().unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let of = |name: &str| lines[0].iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
    assert_eq!((of("fault"), of("execution")), (Some(told.clone()), Some(id(1).to_string())));
    assert!(of("at").unwrap().starts_with("src/telemetry/tests.rs:"), "{lines:?}");
    assert!(!format!("{lines:?}").contains("canary"), "the words of a panic are not told");
    assert_ne!(faults::caught(), told, "the next fault has another id");
}
