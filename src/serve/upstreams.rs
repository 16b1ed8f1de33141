//! From the configured servers and commands to executors and offers in the catalog.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::assembly::{Shape, private_folder};
use super::failure::Failure;
use super::{http_tools, settings};
use crate::config::redaction::Redaction;
use crate::config::tools::{OwnTool, Server};
use crate::config::{Config, Loaded};
use crate::engine::Engine;
use crate::engine::remote::RemoteTool;
use crate::engine::slots::UpstreamLimits;
use crate::mcp::names::{self, Naming};
use crate::worker::command::{CommandTool, Definition, Limits as CommandLimits};
use crate::worker::demo::{self, Demo};
use crate::worker::executor::Executor;
use crate::worker::forwarder::{ForwardedElsewhere, UpstreamForwarder};
use crate::worker::legs::{Isolation, LegSettings, Legs};
use crate::worker::publish::{self, ExposedName, Publisher, RulesOf};
use crate::worker::reconcile;
use crate::worker::remote_tools::{RemoteRulesOf, RemoteTools};
use crate::worker::rules::Rules;
use crate::worker::upstream::{
    HttpSettings, LegLimits, RestartSettings, Secret, Snapshot, StdioSettings, Transport, Upstream, UpstreamSettings,
};
use crate::worker::upstream_executor::{Reach, UpstreamExecutor};

/// What this process can run.
pub struct Runnable {
    /// One executor per upstream name.
    pub executors: HashMap<String, Arc<dyn Executor>>,
    /// The servers among them.
    pub servers: Vec<Upstream>,
}

/// Which of what is configured a process runs itself; it offers all of it.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    loaded: &'a Loaded,
    worker: bool,
}

impl<'a> Own<'a> {
    /// Of a process with or without the role `worker`.
    pub fn of(loaded: &'a Loaded, worker: bool) -> Own<'a> {
        Own { loaded, worker }
    }

    /// Whether it runs the server, or the tool of its own, of this name.
    pub fn runs(self, name: &str) -> bool {
        let chosen = &self.loaded.config.worker.runs;
        self.worker && chosen.as_ref().is_none_or(|chosen| chosen.iter().any(|wanted| **wanted == *name))
    }
}

/// Everything the operator configured that runs tools: commands and demo tools are offered at once, servers start in the
/// background and are offered as they were last known. What this process does not run it offers all the same, and queues
/// for those that do; no child is started for it.
pub async fn start(engine: &Arc<Engine>, loaded: &Arc<Loaded>, shape: Shape) -> Result<Runnable, Failure> {
    let Shape { demo, wrap, roles } = shape;
    let own = Own::of(loaded, roles.worker);
    let publisher = publisher(engine, loaded, wrap);
    if !wrap {
        engine.attach_offers(Arc::new(RemoteTools::new(engine, remote_rules(loaded))));
        engine.refresh_workers().await.map_err(|error| Failure::new(error.to_string()))?;
    }
    let mut runnable = offer_own_tools(engine, loaded, &publisher, (own, demo))?;
    let known = engine.store().upstreams().await.map_err(|error| Failure::new(error.to_string()))?;
    let (mut elsewhere, mut patience) = (Vec::new(), Duration::ZERO);
    for (name, server) in loaded.config.servers.iter().filter(|(_, server)| server.enabled) {
        if !own.runs(name) {
            engine.slots().open_elsewhere(name, settings::limits(loaded.config.server_queue(name)));
            engine.forwarders().set(name, Arc::new(ForwardedElsewhere));
            elsewhere.push(name.clone());
            patience = patience.max(settings::duration(server.start_timeout));
            continue;
        }
        engine.slots().open(name, settings::limits(loaded.config.server_queue(name)));
        let row = known.iter().find(|row| row.name == *name);
        let last_known = row.and_then(|row| publish::last_known(&row.snapshot));
        let settings = UpstreamSettings {
            restarts: engine.meter().restarts(name),
            ..server_settings(loaded, name, server, last_known)
        };
        let legs = Legs::start(engine, settings, legs(server, wrap));
        publisher.follow(legs.shared().clone());
        engine.forwarders().set(name, UpstreamForwarder::new(legs.clone()));
        let reach = if server.command.is_some() { Reach::Child } else { Reach::Connection };
        let executor = UpstreamExecutor::new(Arc::downgrade(engine), legs.clone(), reach, key_arguments(server));
        runnable.executors.insert(name.clone(), Arc::new(executor));
        runnable.servers.push(legs.shared().clone());
    }
    let followed = publisher.follow_stored(elsewhere, patience).await;
    followed.map_err(|error| Failure::new(error.to_string()))?;
    Ok(runnable)
}

/// Whose calls share a leg to a server.
fn legs(server: &Server, wrap: bool) -> LegSettings {
    use crate::config::tools::Isolation as Configured;

    let isolation = match server.isolation {
        Some(Configured::Shared) => Isolation::Shared,
        Some(Configured::Principal) => Isolation::Principal,
        Some(Configured::Session) => Isolation::Session,
        Some(Configured::Call) => Isolation::Call,
        None if wrap => Isolation::Session,
        None => Isolation::Shared,
    };
    let (legs_max, idle) = (server.max_isolated as usize, settings::duration(server.isolated_idle));
    LegSettings { isolation, legs_max, idle, only_client: wrap }
}

/// The rules for asking what became of lost calls. An unreadable rule is a mistake of the operator's.
pub fn reconcile_rules(loaded: &Loaded) -> Result<reconcile::Rules, Failure> {
    let mut rules = reconcile::Rules::new();
    for (name, server) in loaded.config.servers.iter().filter(|(_, server)| server.enabled) {
        for tool in server.tools.keys() {
            let policy = loaded.config.server_policy(name, tool);
            let Some(configured) = settings::rules(&policy, None).reconcile else { continue };
            let rule = reconcile::Rule::parse(&configured)
                .map_err(|error| Failure::usage(format!("servers.{name}.tools.{tool}.reconcile: {error}")))?;
            rules.insert((name.clone(), tool.clone()), rule);
        }
    }
    Ok(rules)
}

fn publisher(engine: &Arc<Engine>, loaded: &Arc<Loaded>, wrap: bool) -> Arc<Publisher> {
    let exposed = exposed_name(loaded, wrap);
    let rules = tool_rules(loaded, &exposed);
    Publisher::new(engine.clone(), rules, exposed)
}

/// The names clients call tools by.
pub(super) fn exposed_name(loaded: &Arc<Loaded>, wrap: bool) -> ExposedName {
    let named = loaded.clone();
    let exposed = move |upstream: &str, tool: &str| match named.config.servers.get(upstream) {
        Some(_) if wrap => tool.to_owned(),
        Some(server) => {
            let default = || format!("{upstream}{}", names::SEPARATOR);
            let prefix = server.prefix.as_ref().map_or_else(default, |prefix| prefix.to_string());
            names::exposed(Naming::Prefixed(&prefix), tool).into_owned()
        }
        None => tool.to_owned(),
    };
    Arc::new(exposed)
}

/// What the operator said about tools.
pub(super) fn tool_rules(loaded: &Arc<Loaded>, exposed: &ExposedName) -> RulesOf {
    let (ruled, naming) = (loaded.clone(), exposed.clone());
    let rules = move |upstream: &str, tool: &str| {
        let policy = match ruled.config.servers.contains_key(upstream) {
            true => ruled.config.server_policy(upstream, tool),
            false => ruled.config.tool_policy(tool),
        };
        settings::rules(&policy, namespaces(&ruled, &naming(upstream, tool)))
    };
    Arc::new(rules)
}

/// The rules for tools of remote workers.
fn remote_rules(loaded: &Arc<Loaded>) -> RemoteRulesOf {
    let loaded = loaded.clone();
    Arc::new(move |offer: &RemoteTool| {
        let tool = &offer.tool;
        let policy = loaded.config.worker_tool_policy(&tool.name, tool.timeout_ms, tool.max_attempts);
        let allowed = namespaces(&loaded, &tool.name);
        let visible = allowed.is_none_or(|allowed| allowed.contains(&offer.namespace));
        let namespaces = visible.then(|| offer.namespace.clone()).into_iter().collect();
        Rules { registered_delivery: tool.delivery, ..settings::rules(&policy, Some(namespaces)) }
    })
}

/// The arguments that carry keys, by tool.
fn key_arguments(server: &Server) -> HashMap<String, String> {
    let named = |(tool, rules): (&String, &crate::config::tools::ServerTool)| {
        Some((tool.clone(), rules.key_argument.as_ref()?.to_string()))
    };
    server.tools.iter().filter_map(named).collect()
}

/// The names of everything that offers tools, in the order they are listed.
pub fn names(loaded: &Loaded, demo: bool) -> Vec<String> {
    let config = &loaded.config;
    let servers = config.servers.iter().filter(|(_, server)| server.enabled).map(|(name, _)| name.clone());
    let commands = config.tools.iter().filter(|(_, tool)| tool.enabled).map(|(name, _)| command_lane(name));
    servers.chain(commands).chain(demo.then(|| demo::UPSTREAM.to_owned())).collect()
}

/// The lane of one command: each has its own slots and queue.
pub(super) fn command_lane(tool: &str) -> String {
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

fn offer_own_tools(
    engine: &Engine,
    loaded: &Loaded,
    publisher: &Publisher,
    (own, demo): (Own<'_>, bool),
) -> Result<Runnable, Failure> {
    let mut executors: HashMap<String, Arc<dyn Executor>> = HashMap::new();
    for (name, tool) in loaded.config.tools.iter().filter(|(_, tool)| tool.enabled) {
        let lane = command_lane(name);
        let definition = definition(name, tool).tool_object().map_err(|error| Failure::usage(error.to_string()))?;
        let limits = settings::limits(loaded.config.tool_queue(name));
        publisher.offer_own(&lane, &[definition]);
        if !own.runs(name) {
            engine.slots().open_elsewhere(&lane, limits);
            continue;
        }
        engine.slots().open(&lane, limits);
        let executor: Arc<dyn Executor> = match tool.url.is_some() {
            true => Arc::new(http_tools::executor(loaded, name, tool)?),
            false => Arc::new(command(loaded, tool)),
        };
        executors.insert(lane, executor);
    }
    if demo {
        let folder = loaded.data_dir.join("demo");
        private_folder(&folder)?;
        let limits = settings::limits(loaded.config.tool_queue(demo::UPSTREAM));
        // The demo tools share the process's slots and have no bound of their own.
        let concurrency = loaded.config.worker.slots as usize;
        engine.slots().open(demo::UPSTREAM, UpstreamLimits { concurrency, ..limits });
        publisher.offer_own(demo::UPSTREAM, &Demo::definitions());
        if own.worker {
            executors.insert(demo::UPSTREAM.to_owned(), Arc::new(Demo::new(&folder)));
        }
    }
    Ok(Runnable { executors, servers: Vec::new() })
}

pub(super) fn definition(name: &str, tool: &OwnTool) -> Definition {
    let schema = |source: &Option<crate::config::json::JsonSource>| {
        source.as_ref().and_then(|source| source.object()).map(|object| object.get().to_owned())
    };
    let mut annotations = tool.annotations.clone();
    if tool.url.is_some() && http_tools::is_safe(tool.method) {
        // Delivery follows the hint, and clients see it too.
        annotations.read_only.get_or_insert(true);
    }
    Definition {
        name: name.to_owned(),
        title: tool.title.as_ref().map(|text| text.to_string()),
        description: tool.description.as_ref().map(|text| text.to_string()),
        input_schema: schema(&tool.input_schema),
        output_schema: schema(&tool.output_schema),
        // Plain hints always serialise.
        annotations: serde_json::to_string(&annotations).ok(),
    }
}

fn command(loaded: &Loaded, tool: &OwnTool) -> CommandTool {
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
pub fn program(base_dir: &Path, name: &str) -> OsString {
    match name.contains('/') {
        true => base_dir.join(name).into_os_string(),
        false => name.into(),
    }
}

/// The one server of a `wrap` and how it is run, when it is a command.
pub fn wrapped_command(loaded: &Loaded) -> Option<(String, StdioSettings)> {
    let (name, server) = loaded.config.servers.iter().find(|(_, server)| server.enabled)?;
    match server_settings(loaded, name, server, None).transport {
        Transport::Stdio(settings) => Some((name.clone(), settings)),
        Transport::Http(_) => None,
    }
}

/// What is struck in any call of a server.
fn redaction_of(config: &Config, server: &Server) -> Redaction {
    let tools = server.tools.values().map(|tool| &tool.policy.redaction);
    let own = std::iter::once(&server.policy.redaction).chain(tools);
    own.fold(config.redaction.clone(), |all, own| all.with(own))
}

/// How to reach and run one configured server.
pub fn server_settings(loaded: &Loaded, name: &str, server: &Server, last_known: Option<Snapshot>) -> UpstreamSettings {
    let config = &loaded.config;
    let transport = match (&server.command, &server.url) {
        (Some(command), _) => {
            let args = server.args.iter().map(|word| OsString::from(word.to_string())).collect();
            let env: BTreeMap<String, Secret> =
                server.env.iter().map(|(name, value)| (name.clone(), Secret::new(value.expose()))).collect();
            Transport::Stdio(StdioSettings {
                env,
                cwd: server.cwd.as_ref().map(|cwd| loaded.base_dir.join(PathBuf::from(cwd.to_string()))),
                redact: Arc::new(redaction_of(config, server).rules()),
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
        last_known,
        ..UpstreamSettings::new(name, transport)
    }
}
