//! From a tool as its server describes it, and what the operator said about it, to the tool as it is offered.
//! Reads no configuration: floor 4 fills [`Rules`].

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::engine::catalog::{Service, Tool};
use crate::model::policy::{Delivery, Hints, Identity, Policy, Timeouts, Unkeyed, effective_delivery};
use crate::model::redact;
use crate::model::retry::RetryPolicy;

/// What the operator said about a tool; defaults filled in, delivery excepted.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Offered at all.
    pub enabled: bool,
    /// The operator's word on delivery.
    pub delivery: Option<Delivery>,
    /// The word of the remote worker that registered the tool.
    pub registered_delivery: Option<Delivery>,
    /// Attempts and back-off.
    pub retry: RetryPolicy,
    /// Time limits.
    pub timeouts: Timeouts,
    /// What a call without a key does.
    pub unkeyed: Unkeyed,
    /// How long after its end an undelivered execution takes a repeat, in milliseconds.
    pub reattach_window_ms: i64,
    /// How long a key lives after the end, in milliseconds.
    pub key_ttl_ms: i64,
    /// How callers are served.
    pub service: Service,
    /// How to learn what became of a lost call.
    pub reconcile: Option<Reconcile>,
    /// What is struck out of its calls before anything of them is kept.
    pub redact: Arc<redact::Rules>,
}

/// Asks the upstream with a read tool whether a lost call took effect (design: delivery, retries, honesty).
#[derive(Clone, Debug, PartialEq)]
pub struct Reconcile {
    /// The read tool of the same upstream.
    pub tool: String,
    /// Its arguments, one JSON object text; strings may hold `{{arguments.path}}` and `{{effect_key}}`.
    pub arguments: String,
    /// `POINTER == value`: a JSON pointer into the read tool's `structuredContent`, and `arguments.path`, a JSON literal
    /// or `effect_key`.
    pub matches: String,
}

impl Default for Rules {
    fn default() -> Self {
        let identity = Identity::default();
        Self {
            enabled: true,
            delivery: None,
            registered_delivery: None,
            retry: RetryPolicy::default(),
            timeouts: Timeouts::default(),
            unkeyed: identity.unkeyed,
            reattach_window_ms: identity.reattach_window_ms,
            key_ttl_ms: identity.key_ttl_ms,
            service: Service::default(),
            reconcile: None,
            redact: Arc::default(),
        }
    }
}

/// A tool object as far as it matters here.
#[derive(Deserialize)]
struct Peek<'a> {
    name: String,
    #[serde(rename = "outputSchema", borrow, default)]
    output_schema: Option<&'a RawValue>,
    #[serde(default)]
    annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "readOnlyHint", default)]
    read_only: bool,
    #[serde(rename = "idempotentHint", default)]
    idempotent: bool,
}

/// The tool's own name; `None` when the object has none.
pub fn name_of(definition: &RawValue) -> Option<String> {
    serde_json::from_str::<Peek<'_>>(definition.get()).ok().map(|peek| peek.name)
}

/// The tool as it is offered under `exposed`; `None` when its object has no name or the operator left it out.
pub fn offered(definition: &RawValue, upstream: &str, exposed: String, rules: &Rules) -> Option<Tool> {
    let peek: Peek<'_> = serde_json::from_str(definition.get()).ok()?;
    if !rules.enabled {
        return None;
    }
    let annotations = peek.annotations.unwrap_or_default();
    let hints = Hints { read_only: annotations.read_only, idempotent: annotations.idempotent };
    let (delivery, delivery_source) = effective_delivery(rules.delivery, rules.registered_delivery, hints);
    Some(Tool {
        exposed,
        upstream: upstream.to_owned(),
        name: peek.name,
        has_output_schema: peek.output_schema.is_some(),
        wants_client: false,
        definition: definition.to_owned(),
        policy: Policy {
            delivery,
            delivery_source,
            retry: rules.retry.clone(),
            timeouts: rules.timeouts,
            arguments_redacted: false,
        },
        identity: Identity {
            unkeyed: rules.unkeyed,
            reattach_window_ms: rules.reattach_window_ms,
            key_ttl_ms: rules.key_ttl_ms,
            read_only: hints.read_only,
        },
        service: rules.service.clone(),
        redact: rules.redact.clone(),
    })
}
