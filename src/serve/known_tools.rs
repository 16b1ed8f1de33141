//! What is known of the configured tools while no process runs them, and which layer of the configuration says what a
//! tool's settings are. Starts nothing.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::failure::Failure;
use super::upstreams::{command_lane, definition, exposed_name, names, tool_rules};
use crate::config::Loaded;
use crate::config::sources::{Layer, ToolPlace};
use crate::engine::catalog::{Catalog, Listing, Offer, Tool};
use crate::engine::remote;
use crate::engine::view::{SettingSource, SourceOf};
use crate::store::UpstreamRow;
use crate::worker::publish;
use crate::worker::rules::{name_of, offered};

/// The tools of the configuration: own ones as they are written, those of servers as they were last known.
pub fn known_tools(loaded: &Arc<Loaded>, rows: &[UpstreamRow]) -> Result<Arc<Listing>, Failure> {
    let catalog = Catalog::new(&names(loaded, false));
    let exposed = exposed_name(loaded, false);
    let rules = tool_rules(loaded, &exposed);
    let offer = |upstream: &str, definitions: Vec<Box<RawValue>>| {
        let tool = |raw: Box<RawValue>| {
            let name = name_of(&raw)?;
            offered(&raw, upstream, exposed(upstream, &name), &rules(upstream, &name)).map(Arc::new)
        };
        Offer { known: true, tools: definitions.into_iter().filter_map(tool).collect(), ..Offer::default() }
    };
    for (name, _) in loaded.config.servers.iter().filter(|(_, server)| server.enabled) {
        let row = rows.iter().find(|row| row.name == *name);
        let Some(snapshot) = row.and_then(|row| publish::last_known(&row.snapshot)) else { continue };
        catalog.publish(name, offer(name, snapshot.tools.into_iter().map(|tool| tool.raw).collect()));
    }
    for (name, tool) in loaded.config.tools.iter().filter(|(_, tool)| tool.enabled) {
        let lane = command_lane(name);
        let definition = definition(name, tool).tool_object().map_err(|error| Failure::usage(error.to_string()))?;
        catalog.publish(&lane, offer(&lane, vec![definition]));
    }
    Ok(catalog.listing())
}

/// Which layer of the configuration, or which worker, says what a tool's settings are.
pub fn sources(loaded: &Arc<Loaded>) -> SourceOf {
    let loaded = loaded.clone();
    Arc::new(move |tool: &Tool, setting: &str| {
        let of_worker = remote::is_lane(&tool.upstream);
        let place = match () {
            () if loaded.config.servers.contains_key(&tool.upstream) => ToolPlace::Server(&tool.upstream, &tool.name),
            () if of_worker => ToolPlace::Worker(&tool.name),
            () => ToolPlace::Own(&tool.name),
        };
        let layer = loaded.layer(place, setting);
        if of_worker && layer != Layer::Tool && is_registered(&loaded, tool, setting) {
            return SettingSource::Worker;
        }
        match layer {
            Layer::Tool => SettingSource::Tool,
            Layer::Server => SettingSource::Server,
            Layer::Defaults => SettingSource::Defaults,
            Layer::BuiltIn => SettingSource::BuiltIn,
        }
    })
}

/// A worker may register these two; what differs from the defaults is its word.
fn is_registered(loaded: &Loaded, tool: &Tool, setting: &str) -> bool {
    let defaults = &loaded.config.defaults;
    match setting {
        "timeout.attempt" => tool.policy.timeouts.attempt_ms != defaults.timeout.attempt.0,
        "retry.max_attempts" => tool.policy.retry.max_attempts != defaults.retry.max_attempts,
        _ => false,
    }
}
