//! A proxy between an HTTP client and a server that lets a request through and cuts its answer: the client cannot know
//! whether it was done. Counts requests by route; changes no byte.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub struct CutProxy {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    requests: HashMap<String, usize>,
    cut_next: Option<String>,
    server_port: u16,
    connections: CancellationToken,
}

impl CutProxy {
    /// Listens on a free port, in front of the server at this one.
    pub async fn start(server_port: u16) -> CutProxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State { server_port, ..State::default() };
        let proxy = CutProxy { port, state: Arc::new(Mutex::new(state)) };
        let this = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server_port, open) = this.place();
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await {
                    let relaying = this.clone().relay(client, server);
                    tokio::spawn(async move { open.run_until_cancelled(relaying).await });
                }
            }
        });
        proxy
    }

    fn place(&self) -> (u16, CancellationToken) {
        let state = self.state.lock().unwrap();
        (state.server_port, state.connections.clone())
    }

    /// Cuts every connection; from now on clients reach another server.
    pub fn switch_to(&self, server_port: u16) {
        let mut state = self.state.lock().unwrap();
        state.server_port = server_port;
        std::mem::take(&mut state.connections).cancel();
    }

    /// The answer to the next request of this route never arrives.
    pub fn cut_next_answer(&self, route: &str) {
        self.state.lock().unwrap().cut_next = Some(route.to_owned());
    }

    pub fn requests(&self, route: &str) -> usize {
        self.state.lock().unwrap().requests.get(route).copied().unwrap_or_default()
    }

    /// Until either side closes, or an answer is to be cut.
    async fn relay(self, mut client: TcpStream, mut server: TcpStream) {
        let (mut up, mut down) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        let mut is_cut = false;
        loop {
            tokio::select! {
                read = client.read(&mut up) => match read {
                    Ok(read) if read > 0 => {
                        is_cut |= self.sees(&up[..read]);
                        if server.write_all(&up[..read]).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                },
                read = server.read(&mut down) => match read {
                    // The server has answered, so it is done.
                    Ok(read) if read > 0 && !is_cut => {
                        if client.write_all(&down[..read]).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                },
            }
        }
    }

    /// Counts the request that begins in these bytes; true when its answer is to be cut.
    fn sees(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let Some(route) = text.strip_prefix("POST ").and_then(|rest| rest.split(' ').next()) else { return false };
        let mut state = self.state.lock().unwrap();
        *state.requests.entry(route.to_owned()).or_default() += 1;
        state.cut_next.take_if(|wanted| wanted == route).is_some()
    }
}
