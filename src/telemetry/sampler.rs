//! Which traces are recorded, in the words of the standard's `OTEL_TRACES_SAMPLER`. Reads no variable itself. The same trace
//! gets the same answer in every process, so that no trace is recorded in parts.

use opentelemetry::trace::TraceId;
use sha2::{Digest, Sha256};

/// A rule. The default is the standard's: what the client says, and all of what no client speaks of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// A client's word counts.
    by_parent: bool,
    /// Of the others this share, from 0 to 1.
    share: f64,
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler { by_parent: true, share: 1.0 }
    }
}

/// The names that are understood.
pub const NAMES: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

impl Sampler {
    /// The rule with this name and argument. What can not be used is told, with what counts instead.
    pub fn read(name: Option<&str>, argument: Option<&str>) -> (Sampler, Option<String>) {
        let Some(name) = name else { return (Sampler::default(), None) };
        let (by_parent, rule) = match name.strip_prefix("parentbased_") {
            Some(rule) => (true, rule),
            None => (false, name),
        };
        let of = |share| Sampler { by_parent, share };
        match rule {
            "always_on" => (of(1.0), None),
            "always_off" => (of(0.0), None),
            "traceidratio" => match argument.map(|argument| argument.trim().parse::<f64>()) {
                None => (of(1.0), None),
                Some(Ok(share)) if (0.0..=1.0).contains(&share) => (of(share), None),
                Some(_) => {
                    let words = "OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1; every trace is recorded";
                    (of(1.0), Some(words.into()))
                }
            },
            _ => {
                let words = format!(
                    "OTEL_TRACES_SAMPLER={name} is not known; use one of {}. Now parentbased_always_on counts",
                    NAMES.join(", ")
                );
                (Sampler::default(), Some(words))
            }
        }
    }

    /// Whether a trace is recorded; `parent` is what its client says, if it has one.
    pub fn records(self, trace: TraceId, parent: Option<bool>) -> bool {
        match parent {
            Some(said) if self.by_parent => said,
            _ if self.share >= 1.0 => true,
            _ => place_of(trace) < self.share,
        }
    }
}

/// Where a trace stands between 0 and 1, by its id.
fn place_of(trace: TraceId) -> f64 {
    let digest = Sha256::digest(trace.to_bytes());
    let first = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    first as f64 / (1_u64 << 48) as f64
}
