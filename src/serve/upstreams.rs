//! From the configured servers and commands to executors and offers in the catalog.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::failure::Failure;
use super::settings;
use crate::config::Loaded;
use crate::config::tools::{CommandTool as Command, Server};
use crate::engine::Engine;
use crate::engine::catalog::Offer;
use crate::mcp::names::{self, Naming};
use crate::store::UpstreamRow;
use crate::worker::command::{CommandTool, Definition, Limits as CommandLimits};
use crate::worker::demo::Demo;
use crate::worker::executor::Executor;
use crate::worker::rules::{self, Rules};
use crate::worker::upstream::{
    HttpSettings, LegLimits, RestartSettings, Secret, StdioSettings, Transport, Upstream, UpstreamSettings,
};

/// The lane of the demo tools.
const DEMO: &str = "demo";

/// What this process can run.
pub struct Runnable {
    /// One executor per upstream name.
    pub executors: HashMap<String, Arc<dyn Executor>>,
    /// The servers among them.
    pub servers: Vec<Upstream>,
}

/// The names of everything that offers tools, in the order they are listed.
pub fn names(loaded: &Loaded, demo: bool) -> Vec<String> {
    let config = &loaded.config;
    let servers = config.servers.iter().filter(|(_, server)| server.enabled).map(|(name, _)| name.clone());
    let commands = config.tools.iter().filter(|(_, tool)| tool.enabled).map(|(name, _)| command_lane(name));
    servers.chain(commands).chain(demo.then(|| DEMO.to_owned())).collect()
}

/// The lane of one command: each has its own slots and queue.
fn command_lane(tool: &str) -> String {
    format!("tools.{tool}")
}

/// Who may call `exposed`; absent: everybody.
fn namespaces(loaded: &Loaded, exposed: &str) -> Option<Vec<String>> {
    let declared = &loaded.config.namespaces;
    if declared.values().all(|namespace| namespace.tools.is_none()) {
        return None;
    }
    let mut allowed: Vec<String> =
        declared.iter().filter(|(_, namespace)| namespace.allows(exposed)).map(|(name, _)| name.clone()).collect();
    if !declared.contains_key(crate::model::principal::DEFAULT_NAMESPACE) {
        allowed.push(crate::model::principal::DEFAULT_NAMESPACE.to_owned());
    }
    Some(allowed)
}

/// Publishes commands and demo tools: they are there at once.
pub fn offer_own_tools(engine: &Engine, loaded: &Loaded, demo: bool) -> Result<Runnable, Failure> {
    let mut executors: HashMap<String, Arc<dyn Executor>> = HashMap::new();
    for (name, tool) in loaded.config.tools.iter().filter(|(_, tool)| tool.enabled) {
        let lane = command_lane(name);
        let policy = loaded.config.tool_policy(name);
        let definition = definition(name, tool).tool_object().map_err(|error| Failure::usage(error.to_string()))?;
        let rules = settings::rules(&policy, namespaces(loaded, name));
        publish(engine, &lane, &[definition], &rules);
        engine.slots().open(&lane, settings::limits(loaded.config.tool_queue(name)));
        executors.insert(lane, Arc::new(command(loaded, tool)));
    }
    if demo {
        let folder = loaded.data_dir.join("demo");
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::new(format!("{}: {error}; --demo keeps its ledgers there", folder.display())))?;
        let rules = settings::rules(&loaded.config.tool_policy(DEMO), None);
        publish(engine, DEMO, &Demo::definitions(), &rules);
        let slots = loaded.config.worker.slots as usize;
        let queue = loaded.config.tool_queue(DEMO);
        engine.slots().open(DEMO, crate::engine::slots::UpstreamLimits { concurrency: slots, ..settings::limits(queue) });
        executors.insert(DEMO.to_owned(), Arc::new(Demo::new(&folder)));
    }
    Ok(Runnable { executors, servers: Vec::new() })
}

fn publish(engine: &Engine, lane: &str, definitions: &[Box<serde_json::value::RawValue>], rules: &Rules) {
    let named = definitions.iter().filter_map(|definition| {
        let exposed = rules::name_of(definition)?;
        rules::offered(definition, lane, exposed, rules).map(Arc::new)
    });
    let offer = Offer { tools: named.collect(), ..Offer::default() };
    for collision in engine.catalog().publish(lane, offer) {
        tracing::warn!(tool = collision, "another tool has this name already; this one is left out");
    }
}

fn definition(name: &str, tool: &Command) -> Definition {
    let schema = |source: &Option<crate::config::json::JsonSource>| {
        source.as_ref().and_then(|source| source.object()).map(|object| object.get().to_owned())
    };
    Definition {
        name: name.to_owned(),
        title: tool.title.as_ref().map(|text| text.to_string()),
        description: tool.description.as_ref().map(|text| text.to_string()),
        input_schema: schema(&tool.input_schema),
        output_schema: schema(&tool.output_schema),
        // Plain hints always serialise.
        annotations: serde_json::to_string(&tool.annotations).ok(),
    }
}

fn command(loaded: &Loaded, tool: &Command) -> CommandTool {
    let mut argv = tool.command.iter().map(|word| word.to_string());
    let program = program(&loaded.base_dir, &argv.next().unwrap_or_default());
    let defaults = CommandTool::new(program, argv.map(OsString::from).collect());
    CommandTool {
        env: tool.env.iter().map(|(name, value)| (name.clone(), Secret::new(value.expose()))).collect(),
        cwd: tool.cwd.as_ref().map(|cwd| loaded.base_dir.join(&**cwd)),
        has_output_schema: tool.output_schema.is_some(),
        key_argument: tool.key_argument.as_ref().map(|name| name.to_string()),
        limits: CommandLimits { stdout_bytes: loaded.config.limits.result_bytes.len(), ..CommandLimits::default() },
        ..defaults
    }
}

/// A program with a path in its name is relative to the configuration; a bare name is looked for in `PATH`.
fn program(base_dir: &Path, name: &str) -> OsString {
    match name.contains('/') {
        true => base_dir.join(name).into_os_string(),
        false => name.into(),
    }
}

/// How to reach and run one configured server.
pub fn server_settings(loaded: &Loaded, name: &str, server: &Server, known: &[UpstreamRow]) -> UpstreamSettings {
    let config = &loaded.config;
    let transport = match (&server.command, &server.url) {
        (Some(command), _) => {
            let args = server.args.iter().map(|word| OsString::from(word.to_string())).collect();
            let env: BTreeMap<String, Secret> =
                server.env.iter().map(|(name, value)| (name.clone(), Secret::new(value.expose()))).collect();
            Transport::Stdio(StdioSettings {
                env,
                cwd: server.cwd.as_ref().map(|cwd| loaded.base_dir.join(PathBuf::from(cwd.to_string()))),
                ..StdioSettings::new(program(&loaded.base_dir, command), args)
            })
        }
        (None, url) => {
            let url = url.as_ref().map(|url| url.expose().to_owned()).unwrap_or_default();
            let headers = server.headers.iter().map(|(name, value)| (name.clone(), Secret::new(value.expose())));
            Transport::Http(HttpSettings { headers: headers.collect(), ..HttpSettings::new(url) })
        }
    };
    UpstreamSettings {
        restart: RestartSettings {
            initial_delay: settings::duration(server.restart.initial_interval),
            max_delay: settings::duration(server.restart.max_interval),
            healthy_after: settings::duration(server.restart.reset_after),
            ..RestartSettings::default()
        },
        limits: LegLimits {
            handshake_timeout: settings::duration(server.start_timeout),
            start_timeout: settings::duration(server.start_timeout),
            request_timeout: settings::duration(server.request_timeout),
            max_result_bytes: config.limits.result_bytes.len(),
            log_lines_per_second: config.limits.child_log_rate,
            ..LegLimits::default()
        },
        last_known: known.iter().find(|row| row.name == name).and_then(|row| crate::worker::publish::last_known(&row.snapshot)),
        ..UpstreamSettings::new(name, transport)
    }
}

/// The exposed name of a server's tool.
pub fn exposed_name(prefix: Option<&str>, server: &str, tool: &str, unchanged: bool) -> String {
    let naming = match (unchanged, prefix) {
        (true, _) => Naming::Unchanged,
        (false, prefix) => Naming::Prefixed(prefix.unwrap_or(server)),
    };
    names::exposed(naming, tool).into_owned()
}

/// The rules of one tool of a server.
pub fn server_rules(loaded: &Loaded, server: &str, tool: &str, exposed: &str) -> Rules {
    settings::rules(&loaded.config.server_policy(server, tool), namespaces(loaded, exposed))
}
