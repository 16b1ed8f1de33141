//! One HTTP connection as a load generator needs it: little work per request, and cut when it is dropped. Plain HTTP only;
//! follows nothing, retries nothing.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

/// The largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens.
    #[error("no connection: {0}")]
    Connect(std::io::Error),
    /// The connection ended before the answer was whole.
    #[error("the connection broke: {0}")]
    Cut(String),
    /// The answer does not end.
    #[error("the answer is too large to read")]
    TooLarge,
}

/// An open connection. Dropped: closed at once, whatever is on its way.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    _driver: AbortOnDropHandle<()>,
}

impl Connection {
    /// Connects to `host:port`.
    pub async fn open(authority: &str) -> Result<Connection, Error> {
        let stream = TcpStream::connect(authority).await.map_err(Error::Connect)?;
        stream.set_nodelay(true).map_err(Error::Connect)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(cut)?;
        let driver = tokio::spawn(async move {
            // How it ended is told to whoever waits for an answer.
            let _ = connection.await;
        });
        Ok(Connection { sender, _driver: AbortOnDropHandle::new(driver) })
    }

    /// Sends a request and returns when the head of the answer is there.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Error> {
        self.sender.ready().await.map_err(cut)?;
        self.sender.send_request(request).await.map_err(cut)
    }
}

/// The whole rest of a body.
pub async fn whole(mut body: Incoming) -> Result<Bytes, Error> {
    let mut first: Option<Bytes> = None;
    let mut all: Vec<u8> = Vec::new();
    while let Some(chunk) = chunk(&mut body).await? {
        if all.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(Error::TooLarge);
        }
        // Most answers are one chunk, which is not copied.
        match (first.take(), all.is_empty()) {
            (None, true) => first = Some(chunk),
            (held, _) => {
                all.extend_from_slice(held.as_deref().unwrap_or_default());
                all.extend_from_slice(&chunk);
            }
        }
    }
    Ok(first.unwrap_or_else(|| all.into()))
}

/// The next piece of a body; `None` at its end.
pub async fn chunk(body: &mut Incoming) -> Result<Option<Bytes>, Error> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(cut(error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn cut(error: hyper::Error) -> Error {
    Error::Cut(error.to_string())
}
