//! `wrap`: a durable stdio server in front of one server, for one client.

#[cfg(test)]
mod tests;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::assembly::{Assembly, Shape};
use super::failure::Failure;
use super::{pipes, settings, signals};
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

/// What is read from the client at once.
const STDIN_BUFFER_BYTES: usize = 64 << 10;

/// Serves the client on stdin and stdout until it leaves, then lingers for what still runs.
pub async fn wrap(options: WrapOptions) -> Result<(), Failure> {
    let loaded = Arc::new(options.loaded);
    let stop = signals::follow().map_err(|error| Failure::new(format!("signals cannot be followed: {error}")))?;
    let roles = Roles { mcp: true, worker: true, scheduler: true };
    let assembly = Assembly::start(&loaded, Shape { roles, demo: false, wrap: true }).await?;
    let linger = settings::duration(loaded.config.wrap.linger);
    let (input, output) = (tokio::io::BufReader::with_capacity(STDIN_BUFFER_BYTES, pipes::stdin()), pipes::stdout());
    let face = assembly.face.clone();
    let served = async {
        let leaving = mcp::stdio::Leaving { linger, gone: reader_gone() };
        let ended = mcp::stdio::serve(face, input, output, leaving).await;
        if let Err(error) = ended.read {
            tracing::warn!("the client's pipe broke: {error}");
        }
        // Work whose caller left early gets what is left of the same time.
        let idle = async {
            while assembly.engine.running_count() > 0 {
                tokio::time::sleep(LINGER_LOOK).await;
            }
        };
        let _ = tokio::time::timeout_at(ended.linger_until, idle).await;
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

/// Ends once nobody reads our stdout any more: its reader has closed it, or is dead.
async fn reader_gone() {
    while !is_broken(rustix::stdio::stdout()) {
        tokio::time::sleep(LINGER_LOOK).await;
    }
}

/// Whether the other end of a pipe or socket is closed. Of a file or a terminal it never is.
fn is_broken(stream: BorrowedFd<'_>) -> bool {
    let mut looked_at = [PollFd::new(&stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let seen = rustix::event::poll(&mut looked_at, Some(&now)).unwrap_or(0);
    seen > 0 && looked_at[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}
