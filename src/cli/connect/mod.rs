//! `connect`: a stdio MCP server that carries a client's messages to a running `serve` and back, byte for byte, in both
//! eras. Runs no tool, stores nothing, and answers for itself only while the server can not.

mod bridge;
mod keys;
mod line;
mod outage;
mod server;

#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use self::bridge::{Bridge, Rules};
use self::line::LINE_BYTES_MAX;
use super::address::{Address, DEFAULT};
use super::args::ConnectArgs;
use super::client::{Client, TOKEN_VARIABLE};
use super::failure::{Exit, Failure};
use crate::mcp::stdio::{Line as Read, read_line};
use crate::serve::pipes;

/// How long running calls may still be answered after the client has closed its end.
const LINGER: Duration = Duration::from_secs(5);
/// Lines that may wait for a client that does not read.
const LINES_MAX: usize = 1_024;
/// What is read from the client at once.
const STDIN_BUFFER_BYTES: usize = 64 << 10;

/// Runs the command until the client leaves.
pub async fn run(args: ConnectArgs) -> Result<Exit, Failure> {
    let address = Address::parse(args.server.url.as_deref().unwrap_or(DEFAULT))?;
    let bearer = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
    let client = Client::new(address, bearer)?;
    let patience = Duration::from_millis(u64::try_from(args.patience.0).unwrap_or_default());
    let (lines, waiting) = mpsc::channel(LINES_MAX);
    let bridge = Bridge::new(client, Rules { patience, keys: !args.no_keys }, lines);
    let writer = tokio::spawn(write(waiting));
    let listener = tokio::spawn(bridge.clone().listen());
    let mut input = BufReader::with_capacity(STDIN_BUFFER_BYTES, pipes::stdin());
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match read_line(&mut input, &mut bytes, LINE_BYTES_MAX).await {
            Ok(Read::Whole) if bytes.iter().all(u8::is_ascii_whitespace) => {}
            Ok(Read::Whole) => match std::str::from_utf8(&bytes) {
                Ok(text) => bridge.take(text.trim_end_matches(['\n', '\r']).to_owned()).await,
                Err(_) => eprintln!("connect: a line is not UTF-8 and was dropped"),
            },
            Ok(Read::TooLong) => eprintln!("connect: a line is longer than {LINE_BYTES_MAX} bytes and was dropped"),
            Ok(Read::End) | Err(_) => break,
        }
    }
    bridge.tracker.close();
    // What is not answered by then goes on in the server, and is found there by its key or by `durable_result`.
    let _ = tokio::time::timeout(LINGER, bridge.tracker.wait()).await;
    listener.abort();
    let _ = listener.await;
    bridge.leave().await;
    // Requests that are not done hold their end of the channel.
    match bridge.tracker.is_empty() {
        true => drop(bridge),
        false => writer.abort(),
    }
    let _ = writer.await;
    Ok(Exit::Ok)
}

async fn write(mut waiting: mpsc::Receiver<String>) {
    let mut stdout = pipes::stdout();
    let mut lines = Vec::new();
    while waiting.recv_many(&mut lines, 64).await > 0 {
        let text: String = lines.drain(..).collect();
        let written = async {
            stdout.write_all(text.as_bytes()).await?;
            stdout.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}
