//! The wish to end: SIGTERM or SIGINT once to end in order, twice to end at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What the signals asked for.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// End in order.
    pub soon: CancellationToken,
    /// End at once.
    pub now: CancellationToken,
}

/// Follows the signals of this process from now on.
pub fn follow() -> std::io::Result<Stop> {
    let stop = Stop::default();
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let following = stop.clone();
    tokio::spawn(async move {
        for token in [&following.soon, &following.now] {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            token.cancel();
        }
    });
    Ok(stop)
}
