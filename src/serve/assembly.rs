//! One process put together: store, engine, worker, upstreams, protocol face. Listens nowhere.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::settings;
use super::telemetry::otlp;
use super::upstreams::{self, Runnable};
use crate::config::Loaded;
use crate::engine::clock::Clock;
use crate::engine::{Engine, Roles};
use crate::http::health::{Readiness, Startup};
use crate::mcp::face::Face;
use crate::store::{self, Store};
use crate::worker::Worker;
use crate::worker::left_tasks::LeftTasks;
use crate::worker::reconcile::{self, Reconciler};
use crate::worker::upstream::{Status, Upstream};

/// How a process is put together.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What it does.
    pub roles: Roles,
    /// Offers the demo tools.
    pub demo: bool,
    /// Fronts one server for one client: names unchanged, executions bound to this process, `durable_retry` on.
    pub wrap: bool,
}

/// A process, running.
pub struct Assembly {
    /// The verbs.
    pub engine: Arc<Engine>,
    /// The protocol face.
    pub face: Arc<Face>,
    /// What is known of its readiness.
    pub readiness: Arc<Readiness>,
    servers: Vec<Upstream>,
    traces: otlp::Delivery,
}

impl Assembly {
    /// Opens the store and starts everything; what a dead process left is settled before anything new begins.
    pub async fn start(loaded: &Arc<Loaded>, shape: Shape) -> Result<Assembly, Failure> {
        // What is wrong with the configuration is said before anything is touched.
        let rules = upstreams::reconcile_rules(loaded)?;
        let (spans, traces) = otlp::start(&loaded.config)?;
        let store = open_store(loaded).await?;
        let names = upstreams::names(loaded, shape.demo);
        let mut settings = settings::engine(&loaded.config, shape.wrap);
        settings.traces = spans;
        if !shape.roles.worker {
            settings.slots = 0;
        }
        let engine = Engine::open(store, Clock::System, settings, &names).await.map_err(unusable)?;
        let readiness = Readiness::new(&[]);
        let Runnable { executors, servers } = upstreams::start(&engine, loaded, shape).await?;
        if shape.roles.scheduler {
            engine.settle_due().await.map_err(unusable)?;
        }
        let mut runs: Vec<String> = executors.keys().cloned().collect();
        runs.sort_unstable();
        let reconciler = Reconciler::new(engine.clone(), executors.clone(), rules, reconcile::Settings::default());
        let left = LeftTasks::new(engine.clone(), executors.clone());
        let worker = Worker::new(engine.clone(), executors);
        engine.start_loops(shape.roles.scheduler);
        let announced = engine.clone().announce_process(shape.roles, runs);
        if shape.wrap {
            // A client waits for the first answer; who runs its calls can be said a moment later.
            engine.spawn(announced);
        } else {
            announced.await;
        }
        if shape.roles.worker {
            worker.start();
            reconciler.start();
            left.start();
        }
        for server in &servers {
            readiness.set(server.name(), Startup::Starting);
            engine.spawn(report_start(server.clone(), readiness.clone(), engine.stopping().clone()));
        }
        let mut face = settings::face(&loaded.config, shape.wrap);
        face.exposure = settings::exposure(&loaded.config, shape.wrap);
        face.anonymous = loaded.config.auth.mode == crate::config::settings::AuthMode::None;
        let face = Face::new(engine.clone(), face);
        engine.spawn(face.clone().tend_sessions());
        Ok(Assembly { engine, face, readiness, servers, traces })
    }

    /// Lets what runs end within `grace`, records the rest as what it is, then ends the upstreams.
    pub async fn end(self, grace: Duration) {
        self.face.draining.cancel();
        self.engine.close(grace).await;
        futures_util::future::join_all(self.servers.iter().map(Upstream::shutdown)).await;
        self.traces.finish().await;
    }
}

/// The store of this process.
pub async fn open_store(loaded: &Loaded) -> Result<Arc<dyn Store>, Failure> {
    let config = &loaded.config;
    let url = config.store.url.as_ref().map(|url| url.expose().to_owned()).unwrap_or_default();
    if let Some(path) = url.strip_prefix("sqlite:")
        && let Some(folder) = Path::new(path).parent()
    {
        private_folder(folder)?;
    }
    store::open(&url, &settings::store(config))
        .await
        .map_err(|error| Failure::new(format!("{}: {error}", crate::config::mask_url(&url))))
}

/// Makes a folder that only its owner reads; one that exists stays as it is.
pub fn private_folder(folder: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;

    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| Failure::new(format!("{}: the folder cannot be made: {error}", folder.display())))
}

fn unusable(error: crate::engine::Error) -> Failure {
    Failure::new(format!("the store cannot be used: {error}"))
}

async fn report_start(server: Upstream, readiness: Arc<Readiness>, stop: CancellationToken) {
    let status = tokio::select! {
        status = server.first_start() => status,
        () = stop.cancelled() => return,
    };
    let startup = match status {
        Status::Ready(_) => Startup::Up,
        _ => Startup::Failed,
    };
    readiness.set(server.name(), startup);
}
