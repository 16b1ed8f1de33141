//! What stands between a client and the program in the field: a proxy that cuts a connection on which nothing came from
//! the server for a while. Reads no HTTP.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The URL of a proxy in front of `url` that cuts a connection after so long without a byte from the server.
pub async fn idle_cut(url: &str, idle: Duration) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}/{path}", listener.local_addr().unwrap());
    let authority = authority.to_owned();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&authority).await.unwrap();
            tokio::spawn(pass(client, server, idle));
        }
    });
    proxy
}

async fn pass(client: TcpStream, server: TcpStream, idle: Duration) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(Ok(read @ 1..)) = timeout(idle, from_server.read(&mut bytes)).await {
        if to_client.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
    up.abort();
}
