//! The messages of PostgreSQL's protocol 3, as far as the proxy has to understand them. Reads and makes bytes; decides
//! nothing.

use tokio::io::{AsyncRead, AsyncReadExt};

/// A message after the start of a connection: its kind, and its bytes with kind and length.
#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: u8,
    pub bytes: Vec<u8>,
}

/// What a connection opens with.
pub enum Opening {
    /// Asks for TLS or GSSAPI; one byte answers it.
    Encryption,
    /// The startup message, or a request to cancel.
    Start(Vec<u8>),
}

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// No message of a test is longer.
const LENGTH_MAX: usize = 256 * 1024 * 1024;

pub async fn read_opening(from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Opening> {
    let length = from.read_u32().await?;
    let mut bytes = length.to_be_bytes().to_vec();
    read_rest(from, &mut bytes, length as usize).await?;
    let code = bytes.get(4..8).map(|code| u32::from_be_bytes(code.try_into().expect("four bytes")));
    match code {
        Some(SSL_REQUEST | GSS_REQUEST) => Ok(Opening::Encryption),
        _ => Ok(Opening::Start(bytes)),
    }
}

/// Not safe to be dropped half way: the reader is a task of its own.
pub async fn read_frame(from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Frame> {
    let kind = from.read_u8().await?;
    let length = from.read_u32().await?;
    let mut bytes = vec![kind];
    bytes.extend(length.to_be_bytes());
    read_rest(from, &mut bytes, length as usize).await?;
    Ok(Frame { kind, bytes })
}

/// The length counts itself, which is read already.
async fn read_rest(from: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>, length: usize) -> std::io::Result<()> {
    let rest = length.checked_sub(4).filter(|rest| *rest <= LENGTH_MAX);
    let rest = rest.ok_or_else(|| std::io::Error::other(format!("a message of {length} bytes")))?;
    let at = bytes.len();
    bytes.resize(at + rest, 0);
    from.read_exact(&mut bytes[at..]).await.map(drop)
}

impl Frame {
    fn body(&self) -> &[u8] {
        &self.bytes[5..]
    }

    /// The texts, each ended by a zero byte, that a message begins with.
    pub fn texts(&self, count: usize) -> Vec<String> {
        let texts = self.body().split(|byte| *byte == 0).take(count);
        texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    /// The statement of a `Query` or a `Parse`, changed.
    pub fn with_statement(&self, change: impl Fn(&str) -> String) -> Frame {
        let place = usize::from(self.kind == b'P');
        let mut parts: Vec<Vec<u8>> = self.body().splitn(place + 2, |byte| *byte == 0).map(<[u8]>::to_vec).collect();
        parts[place] = change(&String::from_utf8_lossy(&parts[place])).into_bytes();
        frame(self.kind, &parts.join(&0))
    }

    /// The state of the transaction that a `ReadyForQuery` tells: `I`, `T` or `E`.
    pub fn state(&self) -> Option<u8> {
        (self.kind == b'Z').then(|| self.body().first().copied()).flatten()
    }
}

pub fn frame(kind: u8, body: &[u8]) -> Frame {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    Frame { kind, bytes }
}

/// A simple query.
pub fn query(sql: &str) -> Frame {
    frame(b'Q', &[sql.as_bytes(), &[0]].concat())
}

/// An error as the server tells it.
pub fn error(code: &str, message: &str) -> Frame {
    let fields = [("S", "ERROR"), ("V", "ERROR"), ("C", code), ("M", message)];
    let mut body: Vec<u8> =
        fields.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes(), &[0]].concat()).collect();
    body.push(0);
    frame(b'E', &body)
}
