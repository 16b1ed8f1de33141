//! The trace context of a call (W3C Trace Context level 2, W3C Baggage): what of it is valid, and where it comes from.
//! Never makes one up, and knows no spans.

use super::json;

#[cfg(test)]
mod tests;

/// What a trace context may weigh, in bytes; more is not passed on (W3C Baggage, "Limits").
const BAGGAGE_BYTES_MAX: usize = 8_192;
/// The same of `tracestate`: receivers have to take 512, and here is room for all 32 members of a usual size.
const STATE_BYTES_MAX: usize = 2_048;
/// Members of `tracestate` (W3C Trace Context, "list").
const STATE_MEMBERS_MAX: usize = 32;

/// A trace context as it is passed on: each part valid, or absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// Which span of the caller this call belongs to.
    pub traceparent: Option<String>,
    /// What the caller's tracing systems add; only together with a parent.
    pub tracestate: Option<String>,
    /// What the caller wants to be known along the way.
    pub baggage: Option<String>,
}

impl TraceContext {
    /// The names of the parts, in `_meta` (SEP-414) as in HTTP headers.
    pub const NAMES: [&'static str; 3] = ["traceparent", "tracestate", "baggage"];

    /// What is valid of one carrier. A part that came more than once is to be given joined with commas, which only
    /// `traceparent` does not survive.
    pub fn read(traceparent: Option<&str>, tracestate: Option<&str>, baggage: Option<&str>) -> TraceContext {
        let owned = |text: &str| text.trim_matches([' ', '\t']).to_owned();
        let traceparent = traceparent.map(owned).filter(|text| is_parent(text));
        let tracestate = tracestate.map(owned).filter(|text| traceparent.is_some() && is_state(text));
        let baggage = baggage.map(owned).filter(|text| is_baggage(text));
        TraceContext { traceparent, tracestate, baggage }
    }

    /// What is valid of the members of a `_meta` object.
    pub fn in_meta(meta: &str) -> TraceContext {
        let members = json::members(meta).unwrap_or_default();
        let part =
            |name: &str| members.iter().find(|(member, _)| member == name).and_then(|(_, value)| json::text(value));
        let [parent, state, baggage] = Self::NAMES.map(part);
        TraceContext::read(parent.as_deref(), state.as_deref(), baggage.as_deref())
    }

    /// This one, and what it lacks from another carrier of the same request. A state never changes its parent.
    pub fn or(self, other: TraceContext) -> TraceContext {
        let (traceparent, tracestate) = match self.traceparent {
            Some(parent) => (Some(parent), self.tracestate),
            None => (other.traceparent, other.tracestate),
        };
        TraceContext { traceparent, tracestate, baggage: self.baggage.or(other.baggage) }
    }

    /// The parts that are there, by name.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let parts = [&self.traceparent, &self.tracestate, &self.baggage];
        Self::NAMES.into_iter().zip(parts).filter_map(|(name, part)| Some((name, part.as_deref()?)))
    }
}

/// `version-traceid-parentid-flags` in lower-case hex. Later versions may add to it, version ff may not be.
fn is_parent(text: &str) -> bool {
    let hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let set = |part: &str| part.bytes().any(|byte| byte != b'0');
    let mut parts = text.splitn(5, '-');
    let [version, trace, parent, flags] = [(); 4].map(|()| parts.next().unwrap_or_default());
    let more = parts.next().is_some();
    hex(version, 2)
        && version != "ff"
        && hex(trace, 32)
        && set(trace)
        && hex(parent, 16)
        && set(parent)
        && hex(flags, 2)
        && !(more && version == "00")
        && text.len() <= STATE_BYTES_MAX
        && is_printable(text)
}

/// A list of `key=value`, separated by commas; empty members are permitted.
fn is_state(text: &str) -> bool {
    let members: Vec<&str> = text.split(',').map(|member| member.trim_matches([' ', '\t'])).collect();
    let filled = members.iter().filter(|member| !member.is_empty());
    text.len() <= STATE_BYTES_MAX
        && is_printable(text)
        && (1..=STATE_MEMBERS_MAX).contains(&filled.clone().count())
        && filled
            .clone()
            .all(|member| member.split_once('=').is_some_and(|(key, value)| is_key(key) && is_value(value)))
}

fn is_key(key: &str) -> bool {
    let mut bytes = key.bytes();
    (1..=256).contains(&key.len())
        && bytes.next().is_some_and(|first| matches!(first, b'a'..=b'z' | b'0'..=b'9'))
        && bytes.all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@'))
}

fn is_value(value: &str) -> bool {
    (1..=256).contains(&value.len()) && !value.contains('=') && !value.ends_with(' ')
}

/// A list of `key=value;property`, values percent-encoded.
fn is_baggage(text: &str) -> bool {
    let token = |key: &str| {
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let plain = |value: &str| value.bytes().all(|byte| !matches!(byte, b'"' | b',' | b'\\' | b' '));
    (1..=BAGGAGE_BYTES_MAX).contains(&text.len())
        && is_printable(text)
        && text.split(',').all(|member| {
            let entry = member.split(';').next().unwrap_or_default();
            entry.split_once('=').is_some_and(|(key, value)| token(key.trim()) && plain(value.trim()))
        })
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
}
