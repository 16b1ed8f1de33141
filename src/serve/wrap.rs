//! `wrap`: a durable stdio server in front of one server, for one client.

use std::sync::Arc;
use std::time::Duration;

use super::assembly::{Assembly, Shape};
use super::failure::Failure;
use super::{settings, signals};
use crate::config::Loaded;
use crate::engine::Roles;
use crate::mcp;

/// What `wrap` was asked for; the configuration holds the one server.
pub struct WrapOptions {
    /// The configuration.
    pub loaded: Loaded,
}

/// How often a lingering process looks whether something still runs.
const LINGER_LOOK: Duration = Duration::from_millis(50);

/// What is read from the client at once: each read is a hop to another thread.
const STDIN_BUFFER_BYTES: usize = 64 << 10;

/// Serves the client on stdin and stdout until it leaves, then lingers for what still runs.
pub async fn wrap(options: WrapOptions) -> Result<(), Failure> {
    let loaded = Arc::new(options.loaded);
    let stop = signals::follow().map_err(|error| Failure::new(format!("signals cannot be followed: {error}")))?;
    let roles = Roles { mcp: true, worker: true, scheduler: true };
    let assembly = Assembly::start(&loaded, Shape { roles, demo: false, wrap: true }).await?;
    let linger = settings::duration(loaded.config.wrap.linger);
    let (input, output) =
        (tokio::io::BufReader::with_capacity(STDIN_BUFFER_BYTES, tokio::io::stdin()), tokio::io::stdout());
    let face = assembly.face.clone();
    let served = async {
        if let Err(error) = mcp::stdio::serve(face, input, output, linger).await {
            tracing::warn!("the client's pipe broke: {error}");
        }
        // Work whose caller left early goes on as long.
        let idle = async {
            while assembly.engine.running_count() > 0 {
                tokio::time::sleep(LINGER_LOOK).await;
            }
        };
        let _ = tokio::time::timeout(linger, idle).await;
    };
    tokio::select! {
        () = served => {}
        // A signal settles now: the child ends, and what it was doing is recorded as what it is.
        () = stop.soon.cancelled() => {}
    }
    tokio::select! {
        () = assembly.end(Duration::ZERO) => {}
        () = stop.now.cancelled() => {}
    }
    Ok(())
}
