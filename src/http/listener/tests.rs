//! A real listener: keep-alive, limits, and the end.

use std::collections::BTreeSet;

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::http::auth::Auth;
use crate::http::guard::{Guard, GuardSettings};

struct Server {
    address: std::net::SocketAddr,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

async fn start(router: Router, limits: Limits) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let guard = Guard::new(&GuardSettings { listen: address, hosts: vec![], origins: vec![] }).unwrap();
    let auth = Auth::none(None);
    let front = Arc::new(Front {
        guard,
        auth,
        router,
        mcp_paths: vec!["/mcp".into()],
        namespaces: BTreeSet::new(),
        body_bytes_max: 1 << 20,
    });
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, front, limits, shutdown.clone()));
    Server { address, shutdown, serving }
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Reads until the text is there, or the end.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.contains(wanted) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(length) => text.push_str(std::str::from_utf8(&buffer[..length]).unwrap()),
        }
    }
    text
}

const GET: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request_until_the_server_ends() {
    let server = start(Router::new().route("/", get(async || "hello")), Limits::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for _ in 0..3 {
        send(&mut stream, GET).await;
        assert!(read_until(&mut stream, "hello").await.starts_with("HTTP/1.1 200"));
    }
    server.shutdown.cancel();
    assert_eq!(read_until(&mut stream, "never").await, "");
    server.serving.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn an_open_request_ends_within_the_grace_time() {
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, wait) = (entered.clone(), go.clone());
    let slow = async move || {
        inside.notify_one();
        wait.notified().await;
        "done"
    };
    let server = start(Router::new().route("/", get(slow)), Limits::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    send(&mut stream, GET).await;
    entered.notified().await;
    server.shutdown.cancel();
    go.notify_one();
    assert!(read_until(&mut stream, "done").await.ends_with("done"));
    server.serving.await.unwrap();
}

#[tokio::test]
async fn a_request_that_outlives_the_grace_time_is_cut() {
    let entered = Arc::new(Notify::new());
    let inside = entered.clone();
    let endless = async move || {
        inside.notify_one();
        std::future::pending::<&str>().await
    };
    let limits = Limits { shutdown_grace: Duration::from_millis(20), ..Limits::default() };
    let server = start(Router::new().route("/", get(endless)), limits).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    send(&mut stream, GET).await;
    entered.notified().await;
    server.shutdown.cancel();
    server.serving.await.unwrap();
    assert_eq!(read_until(&mut stream, "never").await, "");
}

#[tokio::test]
async fn a_head_that_is_too_large_or_too_slow_ends_the_connection() {
    let limits = Limits { head_bytes_max: 1_024, header_timeout: Duration::from_millis(50), ..Limits::default() };
    let server = start(Router::new().route("/", get(async || "hello")), limits).await;
    let mut large = TcpStream::connect(server.address).await.unwrap();
    send(&mut large, &format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "x".repeat(2_000))).await;
    assert!(read_until(&mut large, "431").await.starts_with("HTTP/1.1 431"));
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    send(&mut slow, "GET / HTTP/1.1\r\nhost: loc").await;
    assert!(!read_until(&mut slow, "never").await.contains("200"));
    server.shutdown.cancel();
    server.serving.await.unwrap();
}

#[tokio::test]
async fn a_connection_over_the_limit_waits_for_another_to_end() {
    let limits = Limits { connections_max: 1, ..Limits::default() };
    let server = start(Router::new().route("/", get(async || "hello")), limits).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    send(&mut first, GET).await;
    read_until(&mut first, "hello").await;
    let mut second = TcpStream::connect(server.address).await.unwrap();
    send(&mut second, GET).await;
    let waited = tokio::time::timeout(Duration::from_millis(30), read_until(&mut second, "hello")).await;
    assert!(waited.is_err(), "{waited:?}");
    drop(first);
    assert!(read_until(&mut second, "hello").await.ends_with("hello"));
    server.shutdown.cancel();
    server.serving.await.unwrap();
}
