//! A balancer in front of several HTTP servers, as clouds have them: every request over a connection of its own, to one
//! server after the other, unless a cookie says which. Marks each answer that had no cookie; changes nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Balancer {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Balancer {
    /// Listens on a free port, in front of the servers at these.
    pub async fn start(servers: Vec<u16>) -> Balancer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(relay(client, servers.clone(), number));
            }
        });
        Balancer { port, connections }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Connections so far, which is requests.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// One request and its answer; a side that closes ends it.
async fn relay(mut client: TcpStream, servers: Vec<u16>, number: usize) -> Option<()> {
    let (head, rest) = head_of(&mut client).await?;
    let marked = servers.iter().position(|server| head.contains(&format!("instance={server}")));
    let server = servers[marked.unwrap_or(number % servers.len())];
    let mut upstream = TcpStream::connect(("127.0.0.1", server)).await.ok()?;
    let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    upstream.write_all(&[head.as_bytes(), &rest].concat()).await.ok()?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_upstream, mut to_upstream) = upstream.into_split();
    let up = async {
        let _ = tokio::io::copy(&mut from_client, &mut to_upstream).await;
    };
    let down = async {
        let (head, rest) = head_of(&mut from_upstream).await?;
        let mark = match marked {
            Some(_) => "\r\n".to_owned(),
            None => format!("\r\nSet-Cookie: instance={server}; Path=/; HttpOnly\r\n"),
        };
        let head = head.replacen("\r\n", &mark, 1);
        to_client.write_all(&[head.as_bytes(), &rest].concat()).await.ok()?;
        tokio::io::copy(&mut from_upstream, &mut to_client).await.ok()
    };
    tokio::select! {
        () = up => {}
        _ = down => {}
    }
    Some(())
}

/// Up to the empty line, and what came behind it.
async fn head_of(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Some((String::from_utf8(bytes).ok()?, rest));
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
