//! The tools of remote workers, brought to the catalog with their effective policy. Runs none of them.

use std::sync::{Arc, Weak};

use super::rules::{Rules, offered};
use crate::engine::Engine;
use crate::engine::catalog::Offer;
use crate::engine::remote::{RemoteTool, ToolOffers};

/// The name under which the tools of all remote workers stand in the catalog.
const OFFER: &str = "workers";

/// The rules for a tool of remote workers.
pub type RemoteRulesOf = Arc<dyn Fn(&RemoteTool) -> Rules + Send + Sync>;

/// Offers the tools of remote workers.
pub struct RemoteTools {
    // The engine holds this.
    engine: Weak<Engine>,
    rules: RemoteRulesOf,
}

impl RemoteTools {
    /// For the catalog of `engine`.
    pub fn new(engine: &Arc<Engine>, rules: RemoteRulesOf) -> RemoteTools {
        RemoteTools { engine: Arc::downgrade(engine), rules }
    }
}

impl ToolOffers for RemoteTools {
    fn offer(&self, tools: &[RemoteTool]) {
        let Some(engine) = self.engine.upgrade() else { return };
        let offered = tools.iter().filter_map(|offer| {
            let tool = &offer.tool;
            offered(&tool.definition, &offer.lane, tool.name.clone(), &(self.rules)(offer)).map(Arc::new)
        });
        let tools: Vec<_> = offered.collect();
        for tool in &tools {
            let (delivery, source) = (tool.policy.delivery.as_str(), tool.policy.delivery_source.as_str());
            tracing::info!(tool = tool.exposed, "tool {} of remote workers: {delivery} ({source})", tool.exposed);
        }
        for exposed in engine.catalog().publish(OFFER, Offer { known: true, tools, ..Offer::default() }) {
            tracing::warn!(tool = exposed, "a tool of remote workers was left out: another one is called by that name");
        }
    }
}
