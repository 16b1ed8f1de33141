//! A place in a trace (W3C Trace Context): which span of which trace. Ids of spans that several processes speak of are
//! derived from the execution, so that all of them name the same span and nothing has to be stored for it.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use sha2::{Digest, Sha256};

use crate::model::id::ExecutionId;
use crate::model::trace::TraceContext;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether the spans of the trace are recorded.
    pub sampled: bool,
}

impl Place {
    /// The place that a valid `traceparent` names.
    pub fn parse(traceparent: &str) -> Option<Place> {
        let valid = TraceContext::read(Some(traceparent), None, None).traceparent?;
        let mut parts = valid.split('-').skip(1);
        let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Place {
            trace: TraceId::from_hex(trace).ok()?,
            span: SpanId::from_hex(span).ok()?,
            sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1,
        })
    }

    /// The root of a new trace.
    pub fn root() -> Place {
        let mut bytes = [0; 16];
        // Without a generator nothing here would be safe; no kernel we run on lacks one.
        getrandom::fill(&mut bytes).expect("the system's random generator works");
        Place { trace: TraceId::from_bytes(bytes), span: span_id(), sampled: true }
    }

    /// A new span of the same trace.
    pub fn child(self) -> Place {
        Place { span: span_id(), ..self }
    }

    /// The span of an execution whose call came from `caller`: in the caller's trace, else in one of its own.
    pub fn of_execution(id: ExecutionId, caller: Option<Place>) -> Place {
        let own = TraceId::from_bytes(*id.as_uuid().as_bytes());
        Place {
            trace: caller.map_or(own, |caller| caller.trace),
            span: derived(id, 0),
            sampled: caller.is_none_or(|caller| caller.sampled),
        }
    }

    /// The span of what happened under one lease of the execution whose place this is.
    pub fn of_lease(self, id: ExecutionId, fencing_token: i64) -> Place {
        Place { span: derived(id, fencing_token), ..self }
    }

    /// As a `traceparent`.
    pub fn traceparent(self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }

    pub(super) fn context(self) -> SpanContext {
        let flags = if self.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
        SpanContext::new(self.trace, self.span, flags, false, TraceState::default())
    }
}

fn span_id() -> SpanId {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system's random generator works");
    SpanId::from_bytes(bytes)
}

fn derived(id: ExecutionId, fencing_token: i64) -> SpanId {
    let mut hash = Sha256::new();
    hash.update(b"span of an execution");
    hash.update(id.as_uuid().as_bytes());
    hash.update(fencing_token.to_be_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.finalize()[..8]);
    SpanId::from_bytes(bytes)
}
