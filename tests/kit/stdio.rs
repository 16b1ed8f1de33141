//! The stdio transport: one message a line, every request on its own task, exit at the end of stdin as most servers do.
//! `--garbage` puts between the messages what real servers print there by mistake.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::protocol::{self, Message};
use crate::server::{Caller, Running, Server};

pub async fn serve(server: Arc<Server>) -> anyhow::Result<()> {
    let (lines, queue) = mpsc::unbounded_channel();
    tokio::spawn(write_lines(queue, server.options.garbage));
    let running = Arc::new(Running::default());
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).await? > 0 {
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        line.clear();
        if text.is_empty() {
            continue;
        }
        if let Ok(Message { id: Some(id), method: Some(method), .. }) = Message::parse(&text) {
            match method.as_str() {
                "tools/call" | "subscriptions/listen" => drop(running.begin(id.get())),
                // Clients of 2026-07-28 hear of changes only where they listen.
                "initialize" => announce_changes(&server, lines.clone()),
                _ => {}
            }
        }
        tokio::spawn(answer(server.clone(), running.clone(), text, lines.clone()));
    }
    std::process::exit(0)
}

async fn answer(server: Arc<Server>, running: Arc<Running>, text: String, lines: mpsc::UnboundedSender<String>) {
    let reply = match Message::parse(&text) {
        Err(refusal) => refusal,
        Ok(message) => {
            let caller = Caller { notify: lines.clone(), running: &running, headers: "{}" };
            protocol::handle(&server, &message, &caller).await
        }
    };
    if let Some(body) = reply.body {
        let _ = lines.send(body);
    }
}

fn announce_changes(server: &Server, lines: mpsc::UnboundedSender<String>) {
    let mut changes = server.tools_changed.subscribe();
    tokio::spawn(async move {
        while changes.recv().await.is_ok() {
            let _ = lines.send(protocol::notification("notifications/tools/list_changed", "{}"));
        }
    });
}

async fn write_lines(mut queue: mpsc::UnboundedReceiver<String>, garbage: bool) {
    let mut output = tokio::io::stdout();
    if garbage {
        let _ = output.write_all(b"Kit starting up...\n\n{\"jsonrpc\":\"2.0\",\"id\":\n[]\n\xff\xfe\x00\n").await;
    }
    while let Some(mut line) = queue.recv().await {
        if garbage {
            line.insert_str(0, "debug: about to answer {not json}\n");
        }
        line.push('\n');
        if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}
