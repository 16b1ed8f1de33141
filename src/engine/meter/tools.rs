//! The counters of each tool, found once for each write. At most so many tools have counters of their own.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use super::OTHER;
use super::families::{Families, OutcomeLabels, PhaseLabels, ToolLabels};

/// What became of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Completed,
    ToolError,
    Failed,
    Cancelled,
    Unknown,
}

impl Outcome {
    const ALL: [&'static str; 5] = ["completed", "tool_error", "failed", "cancelled", "unknown"];
}

/// The counters of one tool.
#[derive(Debug)]
pub(super) struct ToolMeter {
    pub(super) submitted: Counter,
    pub(super) attempts: Counter,
    pub(super) queued: Histogram,
    pub(super) run: Histogram,
    pub(super) total: Histogram,
    ended: [Counter; 5],
}

impl ToolMeter {
    fn new(families: &Families, upstream: &str, tool: &str) -> ToolMeter {
        let (upstream, tool) = (upstream.to_owned(), tool.to_owned());
        let labels = ToolLabels { upstream: upstream.clone(), tool: tool.clone() };
        let phase = |phase| {
            let labels = PhaseLabels { upstream: upstream.clone(), tool: tool.clone(), phase };
            families.phases.get_or_create_owned(&labels)
        };
        let ended = |outcome| {
            let labels = OutcomeLabels { upstream: upstream.clone(), tool: tool.clone(), outcome };
            families.calls.get_or_create_owned(&labels)
        };
        ToolMeter {
            submitted: families.submitted.get_or_create_owned(&labels),
            attempts: families.attempts.get_or_create_owned(&labels),
            queued: phase("queued"),
            run: phase("run"),
            total: phase("total"),
            ended: Outcome::ALL.map(ended),
        }
    }

    /// Counts a call that ended so.
    pub(super) fn ended(&self, outcome: Outcome) {
        self.ended[outcome as usize].inc();
    }
}

/// The tools by upstream and name.
#[derive(Debug)]
pub(super) struct Tools {
    max: usize,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_name: HashMap<String, HashMap<String, Arc<ToolMeter>>>,
    count: usize,
    other: Option<Arc<ToolMeter>>,
}

impl Known {
    fn find(&self, upstream: &str, tool: &str) -> Option<Arc<ToolMeter>> {
        self.by_name.get(upstream)?.get(tool).cloned()
    }
}

impl Tools {
    pub(super) fn new(max: usize) -> Tools {
        Tools { max, known: RwLock::default() }
    }

    /// The counters of a tool; once there are enough tools, those of all others together.
    pub(super) fn of(&self, families: &Families, upstream: &str, tool: &str) -> Arc<ToolMeter> {
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(meter) = known.find(upstream, tool) {
                return meter;
            }
            if let (true, Some(other)) = (known.count >= self.max, &known.other) {
                return other.clone();
            }
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(meter) = known.find(upstream, tool) {
            return meter;
        }
        if known.count >= self.max {
            return known.other.get_or_insert_with(|| Arc::new(ToolMeter::new(families, OTHER, OTHER))).clone();
        }
        known.count += 1;
        let meter = Arc::new(ToolMeter::new(families, upstream, tool));
        known.by_name.entry(upstream.to_owned()).or_default().insert(tool.to_owned(), meter.clone());
        meter
    }
}
