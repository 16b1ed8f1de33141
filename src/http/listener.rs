//! Serves HTTP/1.1 on one listener until it is told to stop: limits on connections, heads and time, TCP_NODELAY, and a
//! graceful end. What is answered is `front.rs`'s.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::auth::Connection;
use super::front::Front;

#[cfg(test)]
mod tests;

/// Bounds of one listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once; more wait in the system's queue.
    pub connections_max: usize,
    /// Bytes of the head of a request.
    pub head_bytes_max: usize,
    /// How long a connection may take to send the head of a request, the wait for its first byte included; so an unused
    /// connection is closed after this time too.
    pub header_timeout: Duration,
    /// How long open requests get at the end.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            head_bytes_max: 64 << 10,
            // Longer than the 60 to 90 s for which common clients and proxies keep a connection: whoever closes it first
            // should be the one who sends the next request.
            header_timeout: Duration::from_secs(120),
            shutdown_grace: Duration::from_secs(5),
        }
    }
}

/// Serves until `shutdown`; then accepts nothing more, lets open requests end within the grace time and cuts the rest.
pub async fn serve(listener: TcpListener, front: Arc<Front>, limits: Limits, shutdown: CancellationToken) {
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    let (open, cut) = (TaskTracker::new(), CancellationToken::new());
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        match accepted {
            Ok((stream, connection, permit)) => {
                let serving = Serving { front: front.clone(), limits, shutdown: shutdown.clone() };
                let cut = cut.clone();
                open.spawn(async move {
                    let _permit = permit;
                    tokio::select! {
                        () = cut.cancelled() => {}
                        () = serving.run(stream, connection) => {}
                    }
                });
            }
            Err(error) => {
                // A client that was gone at once is everyday life; without file handles only waiting helps.
                let gone = matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset);
                if !gone {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
    drop(listener);
    open.close();
    if tokio::time::timeout(limits.shutdown_grace, open.wait()).await.is_err() {
        tracing::info!(connections = open.len(), "connections are cut at the end of the grace time");
        cut.cancel();
        open.wait().await;
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, Connection, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    // Small answers must not wait for the acknowledgement of the ones before.
    stream.set_nodelay(true)?;
    let connection = Connection { peer, local: stream.local_addr()? };
    Ok((stream, connection, permit))
}

struct Serving {
    front: Arc<Front>,
    limits: Limits,
    shutdown: CancellationToken,
}

impl Serving {
    async fn run(self, stream: TcpStream, connection: Connection) {
        let front = self.front;
        let service = service_fn(|request| {
            let front = front.clone();
            async move { Ok::<_, Infallible>(front.handle(request, connection).await) }
        });
        let mut serving = std::pin::pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(self.limits.header_timeout)
                .max_header_size(self.limits.head_bytes_max)
                .serve_connection(TokioIo::new(stream), service)
        );
        tokio::select! {
            ended = serving.as_mut() => note(ended),
            () = self.shutdown.cancelled() => {
                serving.as_mut().graceful_shutdown();
                note(serving.await);
            }
        }
    }
}

/// Broken connections are the other side's business.
fn note(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
