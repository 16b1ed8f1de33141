//! Which layer of the configuration a tool's setting comes from: the tool's own table, its server's, the defaults that the
//! operator wrote, or the values that nobody has to write. Knows the names of settings, not their meaning.

use super::load::Loaded;
use super::node::Place;

/// Where a tool is configured.
#[derive(Clone, Copy, Debug)]
pub enum ToolPlace<'a> {
    /// A tool of an upstream server, by the server's name and its own name there.
    Server(&'a str, &'a str),
    /// A tool of our own.
    Own(&'a str),
    /// A tool of remote workers.
    Worker(&'a str),
}

/// A layer of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The tool's own table.
    Tool,
    /// Its server's table.
    Server,
    /// `[defaults]`, or what holds for the whole listener.
    Defaults,
    /// Nobody wrote anything.
    BuiltIn,
}

impl Loaded {
    /// The layer that decides `setting` (such as `timeout.attempt`) of a tool.
    pub fn layer(&self, place: ToolPlace<'_>, setting: &str) -> Layer {
        let keys: Vec<&str> = setting.split('.').collect();
        let written = |table: &[&str]| {
            let path = [table, &keys].concat();
            self.tree.get(&path).is_some_and(|node| node.place != Place::Default)
        };
        let (own, server) = match place {
            ToolPlace::Server(server, tool) => (vec!["servers", server, "tools", tool], Some(["servers", server])),
            ToolPlace::Own(tool) => (vec!["tools", tool], None),
            ToolPlace::Worker(tool) => (vec!["workers", "tools", tool], None),
        };
        // The form of answers is a setting of the listener.
        let above = if setting == "response" { "server" } else { "defaults" };
        match () {
            () if written(&own) => Layer::Tool,
            () if server.is_some_and(|server| written(&server)) => Layer::Server,
            () if written(&[above]) => Layer::Defaults,
            () => Layer::BuiltIn,
        }
    }
}
