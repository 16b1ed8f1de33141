//! Spans: begun, given attributes, and handed to the sink when the last hold on them goes. Where no sink is, or the trace
//! is not recorded, nothing is made and nothing is kept.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use opentelemetry::trace::{Link, SpanId, SpanKind, Status};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::place::Place;
use super::sampler::Sampler;
use crate::model::id::ExecutionId;

/// The longest text of an attribute; what is longer is cut.
const TEXT_MAX: usize = 256;

/// Takes spans that have ended. Must return at once.
pub trait Sink: Send + Sync {
    /// A span has ended.
    fn take(&self, span: SpanData);
    /// What became of spans so far.
    fn counts(&self) -> Counts;
}

/// What became of spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Taken by the collector.
    pub exported: u64,
    /// Dropped, since too many waited.
    pub dropped: u64,
    /// Not taken by the collector.
    pub failed: u64,
}

/// Where spans go; nowhere, at first.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<On>>);

struct On {
    sink: Arc<dyn Sink>,
    now: fn() -> Duration,
    since: Instant,
    sampler: Sampler,
    scope: InstrumentationScope,
}

/// A span whose beginning and end are known.
#[derive(Debug)]
pub struct Made {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What kind of span it is.
    pub kind: SpanKind,
    /// Its place.
    pub place: Place,
    /// The span it belongs to.
    pub parent: Option<Place>,
    /// When it began, since the epoch.
    pub start: Duration,
    /// When it ended, since the epoch.
    pub end: Duration,
    /// What is told of it.
    pub attributes: Vec<KeyValue>,
    /// Other spans that it has to do with.
    pub links: Vec<Place>,
    /// Why it failed, when it did.
    pub failure: Option<String>,
}

impl Traces {
    /// Spans of the traces that `sampler` records go to `sink`; `now` is the time since the epoch.
    pub fn to(sink: Arc<dyn Sink>, now: fn() -> Duration, sampler: Sampler) -> Traces {
        let scope = InstrumentationScope::builder("durable-mcp").with_version(env!("CARGO_PKG_VERSION")).build();
        Traces(Some(Arc::new(On { sink, now, since: Instant::now(), sampler, scope })))
    }

    /// Whether spans go anywhere.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// What became of spans so far.
    pub fn counts(&self) -> Counts {
        self.0.as_ref().map(|on| on.sink.counts()).unwrap_or_default()
    }

    /// Begins a span that belongs to `parent`, which is of this program.
    pub fn span(&self, name: &'static str, kind: SpanKind, parent: Place) -> Span {
        match &self.0 {
            Some(on) if parent.sampled => on.begin(name, kind, parent.child(), Some(parent)),
            _ => Span(None),
        }
    }

    /// Begins the span of something from outside, which belongs to `caller`; without one it begins a trace. It has its
    /// place even where nothing is recorded: what follows has to know that.
    pub fn entry(&self, name: &'static str, kind: SpanKind, caller: Option<Place>) -> Span {
        let Some(on) = &self.0 else { return Span(None) };
        let place = caller.map_or_else(Place::root, Place::child);
        let sampled = on.sampler.records(place.trace, caller.map(|caller| caller.sampled));
        on.begin(name, kind, Place { sampled, ..place }, caller)
    }

    /// The place of an execution whose call came from `caller`.
    pub fn of_execution(&self, id: ExecutionId, caller: Option<Place>) -> Place {
        let place = Place::of_execution(id, caller);
        let parent = caller.map(|caller| caller.sampled);
        let sampled = self.0.as_ref().map_or(place.sampled, |on| on.sampler.records(place.trace, parent));
        Place { sampled, ..place }
    }

    /// A new trace of what nobody asked for.
    pub fn own(&self) -> Place {
        let place = Place::root();
        let sampled = self.0.as_ref().is_some_and(|on| on.sampler.records(place.trace, None));
        Place { sampled, ..place }
    }

    /// Hands over a span of the past.
    pub fn made(&self, made: Made) {
        if let Some(on) = self.0.as_ref().filter(|_| made.place.sampled) {
            on.take(made);
        }
    }

    /// Seconds since this process began to make spans.
    pub fn age_seconds(&self) -> f64 {
        self.0.as_ref().map_or(0.0, |on| on.since.elapsed().as_secs_f64())
    }
}

impl On {
    fn begin(self: &Arc<Self>, name: &'static str, kind: SpanKind, place: Place, parent: Option<Place>) -> Span {
        Span(Some(Arc::new(Open {
            kind,
            start: (self.now)(),
            told: Mutex::new(Told {
                name: name.into(),
                place,
                parent,
                attributes: Vec::new(),
                links: Vec::new(),
                failure: None,
            }),
            on: self.clone(),
        })))
    }

    fn take(&self, made: Made) {
        let mut links = SpanLinks::default();
        links.links = made.links.into_iter().map(|place| Link::with_context(place.context())).collect();
        self.sink.take(SpanData {
            span_context: made.place.context(),
            parent_span_id: made.parent.map_or(SpanId::INVALID, |parent| parent.span),
            parent_span_is_remote: false,
            span_kind: made.kind,
            name: made.name,
            start_time: UNIX_EPOCH + made.start,
            end_time: UNIX_EPOCH + made.end.max(made.start),
            attributes: made.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status: made.failure.map_or(Status::Unset, Status::error),
            instrumentation_scope: self.scope.clone(),
        });
    }
}

/// A hold on a span that has begun, or on nothing. It ends with the last hold.
#[derive(Clone, Debug, Default)]
pub struct Span(Option<Arc<Open>>);

struct Open {
    on: Arc<On>,
    kind: SpanKind,
    start: Duration,
    told: Mutex<Told>,
}

struct Told {
    name: Cow<'static, str>,
    place: Place,
    parent: Option<Place>,
    attributes: Vec<KeyValue>,
    links: Vec<Place>,
    failure: Option<String>,
}

impl Span {
    /// Where it is; absent where no spans are made. Whether it is recorded is part of it.
    pub fn place(&self) -> Option<Place> {
        self.0.as_ref().map(|open| open.told().place)
    }

    /// Begins a span that belongs to this one.
    pub fn child(&self, name: &'static str, kind: SpanKind) -> Span {
        match (&self.0, self.place()) {
            (Some(open), Some(place)) => Traces(Some(open.on.clone())).span(name, kind, place),
            _ => Span(None),
        }
    }

    /// Begins a span like this one for a part of what came: a message of a batch.
    pub fn part(&self, name: &'static str) -> Span {
        match &self.0 {
            Some(open) => {
                let place = open.told().place;
                open.on.begin(name, SpanKind::Server, place.child(), Some(place))
            }
            None => Span(None),
        }
    }

    /// Tells something of it. Texts are cut at a length; whoever tells keeps payloads out.
    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        if let Some(open) = &self.0 {
            open.told().attributes.push(KeyValue::new(key, cut(value.into())));
        }
    }

    /// Gives it another name.
    pub fn name(&self, name: impl Into<Cow<'static, str>>) {
        if let Some(open) = &self.0 {
            open.told().name = name.into();
        }
    }

    /// It has to do with another span.
    pub fn link(&self, place: Place) {
        if let Some(open) = &self.0 {
            open.told().links.push(place);
        }
    }

    /// It failed.
    pub fn fail(&self, code: &str) {
        if let Some(open) = &self.0 {
            open.told().failure = Some(code.to_owned());
        }
    }

    /// It belongs to this span, as was learnt after its begin and before anything that belongs to it.
    pub fn belongs_to(&self, parent: Place) {
        if let Some(open) = &self.0 {
            let mut told = open.told();
            let sampled = open.on.sampler.records(parent.trace, Some(parent.sampled));
            told.place = Place { span: told.place.span, trace: parent.trace, sampled };
            told.parent = Some(parent);
        }
    }
}

impl Open {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let told = self.told.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !told.place.sampled {
            return;
        }
        self.on.take(Made {
            name: std::mem::take(&mut told.name),
            kind: self.kind.clone(),
            place: told.place,
            parent: told.parent,
            start: self.start,
            end: (self.on.now)(),
            attributes: std::mem::take(&mut told.attributes),
            links: std::mem::take(&mut told.links),
            failure: told.failure.take(),
        });
    }
}

fn cut(value: Value) -> Value {
    match value {
        Value::String(text) if text.as_str().len() > TEXT_MAX => {
            let text = text.as_str();
            let end = (0..=TEXT_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            Value::String(text[..end].to_owned().into())
        }
        value => value,
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "Traces(on)" } else { "Traces(off)" })
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").field("start", &self.start).finish_non_exhaustive()
    }
}
