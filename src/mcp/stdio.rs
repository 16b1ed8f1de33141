//! MCP over stdin and stdout: one client, one connection, both eras. Each request runs on a task of its own, so that a
//! slow call delays no cancellation. At the end of stdin running calls may linger; the work never depends on the pipe.

mod lines;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use self::lines::{Line, read_line};
use super::call::Hold;
use super::connection::{Connection, Heads, Opening, Outgoing};
use super::face::Face;
use super::reject::{RpcError, code};
use crate::model::principal::Principal;

/// Messages written with one system call, when so many wait.
const LINES_AT_ONCE: usize = 64;

/// What ends the waiting for answers once stdin has ended.
pub struct Leaving<G> {
    /// Running calls get so long.
    pub linger: Duration,
    /// Ends when the client is seen to be gone. The end of stdin alone says only that it has nothing more to ask.
    pub gone: G,
}

/// How a conversation ended.
pub struct Ended {
    /// Whether stdin ended in order.
    pub read: std::io::Result<()>,
    /// When the time to linger is over.
    pub linger_until: Instant,
}

/// Serves one client until its stdin ends, then until its running calls are answered, it is gone, or its time has passed.
pub async fn serve<R, W, G>(face: Arc<Face>, input: R, output: W, leaving: Leaving<G>) -> Ended
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
    G: Future<Output = ()>,
{
    let (connection, inbox, changes) = Opening::new(&face, Principal::anonymous(), true).announce();
    let writer = tokio::spawn(write(output, inbox));
    let read = read(&connection, &face, input).await;
    let linger_until = Instant::now() + leaving.linger;
    changes.abort();
    connection.read_out.cancel();
    connection.requests().close();
    let answered = tokio::select! {
        biased;
        () = connection.requests().wait() => true,
        () = face.draining.cancelled() => false,
        () = leaving.gone => {
            // As with a connection that is cut: the callers leave, and each tool's policy says what that means.
            connection.left.cancel();
            connection.requests().wait().await;
            false
        }
        // The callers are gone too; their executions go on or are settled by the process's end.
        () = tokio::time::sleep_until(linger_until) => false,
    };
    drop(connection);
    if !answered {
        // Requests that still run hold their end of the channel, so that the writer would wait for them.
        writer.abort();
    }
    // A writer that was ended with its client has nothing to report.
    let _ = writer.await;
    Ended { read, linger_until }
}

async fn write<W: AsyncWrite + Unpin>(mut output: W, mut inbox: mpsc::Receiver<Outgoing>) {
    let mut waiting: Vec<Outgoing> = Vec::with_capacity(LINES_AT_ONCE);
    let mut lines = String::new();
    while inbox.recv_many(&mut waiting, LINES_AT_ONCE).await > 0 {
        lines.clear();
        let written = async {
            for outgoing in &waiting {
                lines.push_str(&outgoing.line);
                if !outgoing.rest.is_empty() {
                    output.write_all(lines.as_bytes()).await?;
                    lines.clear();
                    for piece in &outgoing.rest {
                        output.write_all(piece).await?;
                    }
                }
            }
            output.write_all(lines.as_bytes()).await?;
            output.flush().await
        };
        if written.await.is_err() {
            // The client closed its end: whoever still answers finds a closed channel.
            return;
        }
        waiting.drain(..).filter_map(|outgoing| outgoing.hold).for_each(Hold::written);
    }
}

async fn read<R: AsyncBufRead + Unpin>(connection: &Arc<Connection>, face: &Face, mut input: R) -> std::io::Result<()> {
    let bytes_max = face.settings.envelope.bytes_max;
    let mut line = Vec::new();
    loop {
        line.clear();
        match read_line(&mut input, &mut line, bytes_max).await? {
            Line::End => return Ok(()),
            Line::TooLong => {
                let words = format!("the message is longer than {bytes_max} bytes");
                connection.send_error(None, &RpcError::new(code::INVALID_REQUEST, words)).await;
            }
            Line::Whole if line.iter().all(u8::is_ascii_whitespace) => {}
            Line::Whole => connection.take(&line, Heads::default()).await,
        }
    }
}
