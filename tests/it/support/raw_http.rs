//! HTTP by hand: any bytes in any order, duplicate headers, half a body, a cut connection. Reads answers with a length,
//! in chunks, or until the end, and SSE event by event. Follows nothing, repairs nothing, keeps every byte of a body.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::DEADLINE;

/// A request as it goes over the wire. Nothing is added when it is sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// A bare request with `Host` only.
    pub fn new(method: &str, url: &str) -> Request {
        let (authority, path) = split(url);
        let headers = vec![("Host".to_owned(), authority.to_owned())];
        Request { method: method.to_owned(), path: path.to_owned(), headers, body: Vec::new() }
    }

    /// A POST as every MCP client sends it, whatever the revision.
    pub fn post(url: &str, body: impl Into<Vec<u8>>) -> Request {
        let mut request = Request::new("POST", url)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream");
        request.body = body.into();
        let length = request.body.len().to_string();
        request.header("Content-Length", &length)
    }

    /// A message of a legacy session; none on `initialize`.
    pub fn legacy(url: &str, session: Option<&str>, message: &str) -> Request {
        let request = Request::post(url, message);
        match session {
            Some(session) => request.header("Mcp-Session-Id", session).header("MCP-Protocol-Version", "2025-11-25"),
            None => request,
        }
    }

    /// A request of 2026-07-28: the envelope is added to `params._meta`, the headers are derived from the body.
    pub fn modern(url: &str, id: Value, method: &str, mut params: Value) -> Request {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "raw", "version": "1"});
        let name = params["name"].as_str().map(str::to_owned);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        Request::modern_text(url, method, name.as_deref(), &body)
    }

    /// A request of 2026-07-28 with a hand-written body.
    pub fn modern_text(url: &str, method: &str, name: Option<&str>, body: &str) -> Request {
        let request =
            Request::post(url, body).header("MCP-Protocol-Version", "2026-07-28").header("Mcp-Method", method);
        match name {
            Some(name) => request.header("Mcp-Name", name),
            None => request,
        }
    }

    /// Adds a header, beside one of the same name.
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes a header away, whatever its case.
    pub fn without(mut self, name: &str) -> Request {
        self.headers.retain(|(given, _)| !given.eq_ignore_ascii_case(name));
        self
    }

    pub fn with(self, name: &str, value: &str) -> Request {
        self.without(name).header(name, value)
    }

    /// Request line and headers, the empty line included.
    pub fn head(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    pub fn bytes(&self) -> Vec<u8> {
        [self.head(), self.body.clone()].concat()
    }

    /// Sends it over a connection of its own and reads the whole answer.
    pub async fn exchange(&self, url: &str) -> Response {
        let mut connection = Connection::open(url).await;
        connection.send(&self.bytes()).await;
        connection.response().await
    }
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The exact texts of the JSON-RPC messages: the body, or the data of each SSE event.
    pub fn messages(&self) -> Vec<String> {
        if !self.is_stream() {
            return if self.body.is_empty() { Vec::new() } else { vec![self.text()] };
        }
        let text = self.text();
        let events = text.split("\n\n").filter_map(Event::parse);
        events.map(|event| event.data).filter(|data| !data.is_empty()).collect()
    }

    /// The last message as JSON: the answer itself, JSON or SSE.
    pub fn answer(&self) -> Value {
        let messages = self.messages();
        let last = messages.last().unwrap_or_else(|| panic!("no message: {self:?}"));
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}"))
    }

    /// The exact text of the `result` of the last message.
    pub fn result_text(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Answer {
            result: Box<serde_json::value::RawValue>,
        }
        let messages = self.messages();
        let last = messages.last().unwrap_or_else(|| panic!("no message: {self:?}"));
        let answer: Answer = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}"));
        answer.result.get().to_owned()
    }

    fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

/// One SSE event; a comment is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub id: Option<String>,
    pub name: Option<String>,
    pub data: String,
}

impl Event {
    fn parse(block: &str) -> Option<Event> {
        let mut event = Event { id: None, name: None, data: String::new() };
        let mut any = false;
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => event.id = Some(value.to_owned()),
                "event" => event.name = Some(value.to_owned()),
                "data" if event.data.is_empty() => event.data = value.to_owned(),
                "data" => event.data = format!("{}\n{value}", event.data),
                _ => continue,
            }
            any = true;
        }
        any.then_some(event)
    }
}

/// One TCP connection.
pub struct Connection {
    stream: TcpStream,
    /// Bytes read and not yet used.
    buffer: Vec<u8>,
    framing: Framing,
    /// Body bytes, unframed, that no event has used yet.
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length(usize),
    Chunked,
    UntilEnd,
    Ended,
}

impl Connection {
    pub async fn open(url: &str) -> Connection {
        let stream = TcpStream::connect(split(url).0).await.unwrap_or_else(|error| panic!("{url}: {error}"));
        stream.set_nodelay(true).unwrap();
        Connection { stream, buffer: Vec::new(), framing: Framing::Ended, body: Vec::new() }
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        // The server may have answered and closed before it took everything; the answer tells.
        let _ = self.stream.write_all(bytes).await;
    }

    /// Ends the sending half, as a client that is done with its request.
    pub async fn finish_sending(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Cuts the connection as a crash does: the peer sees a reset.
    pub fn cut(self) {
        // Lingering for no time turns the close into a reset.
        let _ = self.stream.set_zero_linger();
    }

    /// Reads status and headers; the body follows with `event` or `rest`.
    pub async fn response_head(&mut self) -> Response {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            assert!(self.fill().await, "closed before an answer: {:?}", String::from_utf8_lossy(&self.buffer));
        };
        let head = String::from_utf8(self.buffer.drain(..end + 4).collect()).unwrap();
        let mut lines = head.lines();
        let status_line = lines.next().unwrap_or_default();
        let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let pairs = lines.filter_map(|line| line.split_once(':'));
        let headers = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        let status = status.unwrap_or_else(|| panic!("no status: {head:?}"));
        let response = Response { status, headers, body: Vec::new() };
        let chunked = response.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked"));
        let length = response.header("content-length").and_then(|length| length.parse().ok());
        self.framing = match (chunked, length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) if status == 204 || status == 304 || status == 202 || status < 200 => Framing::Ended,
            (false, None) => Framing::UntilEnd,
        };
        self.body.clear();
        response
    }

    /// Reads a whole answer.
    pub async fn response(&mut self) -> Response {
        let mut response = self.response_head().await;
        response.body = self.rest().await;
        response
    }

    /// The body from here to its end.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.more_body().await {}
        std::mem::take(&mut self.body)
    }

    /// The next SSE event, comments skipped; `None` at the end of the stream.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            match self.block().await? {
                block if block.starts_with(':') && !block.contains('\n') => continue,
                block => {
                    if let Some(event) = Event::parse(&block) {
                        return Some(event);
                    }
                }
            }
        }
    }

    /// The next SSE event that carries a message: neither a comment nor the empty first event of a stream that can be
    /// taken up again.
    pub async fn message(&mut self) -> Option<Event> {
        loop {
            match self.event().await? {
                event if event.data.is_empty() => {}
                event => return Some(event),
            }
        }
    }

    /// The next block of the stream as it is, a comment (`: keep-alive`) included; `None` at the end.
    pub async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = find(&self.body, b"\n\n") {
                let block: Vec<u8> = self.body.drain(..end + 2).collect();
                return Some(String::from_utf8(block).unwrap().trim_end().to_owned());
            }
            if !self.more_body().await {
                return None;
            }
        }
    }

    /// Waits until the peer has closed; panics if it says anything more or does not close.
    pub async fn closed(&mut self, deadline: Duration) {
        let mut byte = [0];
        let read = timeout(deadline, self.stream.read(&mut byte)).await;
        let read = read.unwrap_or_else(|_| panic!("still open after {deadline:?}"));
        assert!(matches!(read, Ok(0) | Err(_)), "it says more");
    }

    /// Waits until the peer has closed, whatever it says before; panics if it does not close.
    pub async fn ended(&mut self, deadline: Duration) {
        let mut rest = Vec::new();
        let read = timeout(deadline, self.stream.read_to_end(&mut rest)).await;
        // A reset is an end too.
        let _ = read.unwrap_or_else(|_| panic!("still open after {deadline:?}"));
    }

    /// Moves some body bytes from the wire into `body`; false at the end of the body.
    async fn more_body(&mut self) -> bool {
        match self.framing {
            Framing::Ended => false,
            Framing::UntilEnd => {
                let more = !self.buffer.is_empty() || self.fill().await;
                self.body.append(&mut self.buffer);
                more
            }
            Framing::Length(0) => {
                self.framing = Framing::Ended;
                false
            }
            Framing::Length(left) => {
                if self.buffer.is_empty() && !self.fill().await {
                    self.framing = Framing::Ended;
                    return false;
                }
                let taken = left.min(self.buffer.len());
                self.body.extend(self.buffer.drain(..taken));
                self.framing = Framing::Length(left - taken);
                true
            }
            Framing::Chunked => self.more_chunk().await,
        }
    }

    async fn more_chunk(&mut self) -> bool {
        loop {
            if let Some(line_end) = find(&self.buffer, b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..line_end]).into_owned();
                let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
                let size = size.unwrap_or_else(|_| panic!("no chunk size: {line:?}"));
                let whole = line_end + 2 + size + 2;
                if self.buffer.len() >= whole {
                    self.body.extend_from_slice(&self.buffer[line_end + 2..line_end + 2 + size]);
                    self.buffer.drain(..whole);
                    if size == 0 {
                        self.framing = Framing::Ended;
                    }
                    return size > 0;
                }
            }
            if !self.fill().await {
                self.framing = Framing::Ended;
                return false;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        let mut chunk = vec![0; 64 * 1024];
        let read = timeout(DEADLINE, self.stream.read(&mut chunk)).await;
        match read.unwrap_or_else(|_| panic!("silent for {DEADLINE:?}")) {
            Ok(read) if read > 0 => {
                self.buffer.extend_from_slice(&chunk[..read]);
                true
            }
            _ => false,
        }
    }
}

/// Opens a legacy session by hand and answers its id (`None` if the server mints none).
pub async fn open_session(url: &str, revision: &str) -> Option<String> {
    open_session_of(url, revision, &json!({}), &[]).await
}

/// As `open_session`, for a client that can do this and sends these headers.
pub async fn open_session_of(
    url: &str,
    revision: &str,
    capabilities: &Value,
    headers: &[(String, String)],
) -> Option<String> {
    let own = |request: Request| headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "raw", "version": "1"}}});
    let response = own(Request::legacy(url, None, &hello.to_string())).exchange(url).await;
    assert_eq!(response.status, 200, "{response:?}");
    let session = response.header("mcp-session-id").map(str::to_owned);
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let request = Request::legacy(url, session.as_deref(), initialized).with("MCP-Protocol-Version", revision);
    assert_eq!(own(request).exchange(url).await.status, 202);
    session
}

/// Authority and path of an `http://` URL.
fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, "/"),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
