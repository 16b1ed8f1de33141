//! `serve`: the process behind one HTTP listener.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::assembly::{Assembly, Shape};
use super::failure::Failure;
use super::upstreams::Own;
use super::{known_tools, settings, signals};
use crate::config::Loaded;
use crate::config::settings::{AuthMode, Config};
use crate::http::auth::{self, Auth};
use crate::http::front::Front;
use crate::http::guard::{Guard, GuardSettings};
use crate::http::listener;
use crate::http::local_token::LocalToken;
use crate::http::metrics::SessionCount;
use crate::http::proxy::{Proxy, ProxySettings};
use crate::http::router::{Parts, router};
use crate::http::token::Tokens;
use crate::mcp;

/// What `serve` was asked for.
pub struct ServeOptions {
    /// The configuration.
    pub loaded: Loaded,
    /// Offers the demo tools.
    pub demo: bool,
}

/// Serves until a signal asks it to end.
pub async fn serve(options: ServeOptions) -> Result<(), Failure> {
    let ServeOptions { loaded, demo } = options;
    let loaded = Arc::new(loaded);
    let config = &loaded.config;
    let roles = settings::roles(config);
    let stop = signals::follow().map_err(|error| Failure::new(format!("signals cannot be followed: {error}")))?;
    let mode = match config.auth.mode {
        AuthMode::None => auth::Mode::None,
        AuthMode::Token => auth::Mode::Token,
        AuthMode::Proxy => auth::Mode::Proxy,
    };
    auth::check_bind(config.server.listen, mode).map_err(Failure::usage)?;
    let listen = config.server.listen;
    let socket = TcpListener::bind(listen).await.map_err(|error| bind_failure(listen, &error))?;
    let listen = socket.local_addr().unwrap_or(listen);

    let assembly = Assembly::start(&loaded, Shape { roles, demo, wrap: false }).await?;
    let guard = GuardSettings {
        listen,
        hosts: config.server.allowed_hosts.iter().map(|host| host.to_string()).collect(),
        origins: config.server.allowed_origins.iter().map(|origin| origin.to_string()).collect(),
    };
    let mcp = match roles.mcp {
        true => {
            let face = &assembly.face;
            let mcp = mcp::http::router(face.clone(), &config.server.path, config.server.namespace_paths);
            config.server.sse_path.iter().fold(mcp, |mcp, path| mcp.merge(mcp::http::pair::router(face.clone(), path)))
        }
        false => axum::Router::new(),
    };
    let parts = Parts {
        engine: &assembly.engine,
        readiness: assembly.readiness.clone(),
        limits: settings::worker_limits(config),
        streams: settings::stream_limits(config),
        sources: known_tools::sources(&loaded),
        metrics: config.telemetry.metrics.then(|| sessions_of(&assembly)),
    };
    let front = Arc::new(Front {
        guard: Guard::new(&guard).map_err(Failure::usage)?,
        auth: authentication(&loaded, listen, &assembly)?,
        router: router(mcp, parts),
        mcp_paths: std::iter::once(&config.server.path)
            .chain(&config.server.sse_path)
            .map(|path| path.to_string())
            .collect(),
        namespaces: config.namespaces.keys().cloned().collect(),
        body_bytes_max: config.server.max_body_bytes.len(),
    });
    let limits = listener::Limits {
        connections_max: config.server.max_connections as usize,
        header_timeout: settings::duration(config.server.header_timeout),
        shutdown_grace: settings::duration(config.server.shutdown_grace),
        ..listener::Limits::default()
    };
    announce(&loaded, listen, &assembly, demo).await;

    let drain_delay = settings::duration(config.server.drain_delay);
    let closing = CancellationToken::new();
    let ended = async {
        let served = listener::serve(socket, front.clone(), limits, closing.clone());
        let ending = async {
            stop.soon.cancelled().await;
            assembly.readiness.drain();
            assembly.engine.drain();
            // Whoever balances the load looks at /readyz, and turns away before a connection is refused.
            tokio::time::sleep(drain_delay).await;
            closing.cancel();
            assembly.face.draining.cancel();
            hand_over(&assembly, limits.shutdown_grace);
            // Work whose caller does not wait for it gets the same time as work whose caller does.
            Instant::now() + limits.shutdown_grace
        };
        let ((), end) = tokio::join!(served, ending);
        front.auth.close();
        assembly.end(end.saturating_duration_since(Instant::now())).await;
    };
    tokio::select! {
        () = ended => tracing::info!("ended in order"),
        () = stop.now.cancelled() => tracing::warn!("ended at once; what was running is settled by the next start"),
    }
    Ok(())
}

fn sessions_of(assembly: &Assembly) -> SessionCount {
    let face = assembly.face.clone();
    Arc::new(move || face.sessions_in_memory())
}

/// Callers that still wait shortly before the end of the grace time are told where the call goes on, and are not cut.
fn hand_over(assembly: &Assembly, grace: Duration) {
    let face = assembly.face.clone();
    assembly.engine.spawn_until_stopped(async move {
        tokio::time::sleep(grace * 4 / 5).await;
        face.handing_over.cancel();
    });
}

fn bind_failure(listen: std::net::SocketAddr, error: &std::io::Error) -> Failure {
    let next = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program listens there; stop it, or choose another address with --listen"
        }
        std::io::ErrorKind::PermissionDenied => "choose a port above 1023 with --listen",
        _ => "choose another address with --listen",
    };
    Failure::new(format!("cannot listen on {listen}: {error}; {next}"))
}

fn authentication(loaded: &Loaded, listen: std::net::SocketAddr, assembly: &Assembly) -> Result<Auth, Failure> {
    let config: &Config = &loaded.config;
    Ok(match config.auth.mode {
        AuthMode::None => {
            let local = LocalToken::write(&loaded.data_dir, listen);
            let local = local.map_err(|error| {
                Failure::new(format!("{}: the local token cannot be written: {error}", loaded.data_dir.display()))
            })?;
            Auth::none(Some(local))
        }
        AuthMode::Token => Auth::token(Tokens::new(assembly.engine.store().clone(), assembly.engine.clock().clone())),
        AuthMode::Proxy => {
            let proxy = &config.auth.proxy;
            let settings = ProxySettings {
                principal_header: proxy.principal_header.to_string(),
                namespace_header: proxy.namespace_header.to_string(),
                scopes_header: proxy.scopes_header.to_string(),
                peers: proxy.peers.iter().map(|peer| peer.to_string()).collect(),
            };
            Auth::proxy(Proxy::new(&settings).map_err(Failure::usage)?)
        }
    })
}

/// Tells the operator that the endpoint is up, what it offers, and what to type next.
async fn announce(loaded: &Loaded, listen: std::net::SocketAddr, assembly: &Assembly, demo: bool) {
    let roles = settings::roles(&loaded.config);
    let own = Own::of(loaded, roles.worker);
    let listing = assembly.engine.catalog().listing();
    let path = if roles.mcp { &*loaded.config.server.path } else { "" };
    let url = format!("http://{listen}{path}");
    let mut said = vec![format!("durable-mcp {} listens on {url}", env!("CARGO_PKG_VERSION"))];
    if !(roles.mcp && roles.worker && roles.scheduler) {
        let named = loaded.config.server.roles.iter().map(|role| format!("{role:?}").to_lowercase());
        said.push(format!("  roles {}", named.collect::<Vec<_>>().join(", ")));
    }
    for tool in &listing.tools {
        let policy = &tool.policy;
        let (delivery, source) = (policy.delivery.as_str(), policy.delivery_source.as_str());
        said.push(format!("  tool {}  {delivery} ({source})", tool.exposed));
    }
    for (name, _) in loaded.config.servers.iter().filter(|(_, server)| server.enabled) {
        if !listing.tools.iter().any(|tool| tool.upstream == *name) {
            let how = if own.runs(name) { "starting" } else { "run elsewhere" };
            said.push(format!("  server {name}  {how}"));
        }
    }
    let example = match (demo, listing.tools.first()) {
        (true, _) => Some(("demo_echo".to_owned(), r#"{"message":"hello"}"#)),
        (false, Some(tool)) if tool.exposed == "word_count" => {
            Some((tool.exposed.clone(), r#"{"text":"did it happen"}"#))
        }
        (false, Some(tool)) => Some((tool.exposed.clone(), "{}")),
        (false, None) => None,
    };
    if let Some((tool, arguments)) = example.filter(|_| roles.mcp) {
        let program = std::env::args().next().unwrap_or_else(|| "durable-mcp".into());
        said.push(format!("Call one:\n  {program} call {tool} --args '{arguments}' --url {url}"));
    }
    // Written at once: whoever reads along finds no half of a line.
    let said = said.join("\n") + "\n";
    eprint!("{said}");
}
