//! Server-sent events: bytes in any chunks to events (WHATWG HTML, "Parsing an event stream"), bounded in size.
//! Reads no network and no JSON.

use std::time::Duration;

use super::super::frames::append;

/// One event with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::worker::upstream) struct Event {
    /// The event's type; empty means `message`.
    pub kind: String,
    pub data: Vec<u8>,
}

/// The event or line is larger than the bound; the stream cannot be read on.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::worker::upstream) struct TooLong;

/// A longer event id is ignored: it would not fit into a request header.
const MAX_ID_BYTES: usize = 4 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The parser of one stream.
pub(in crate::worker::upstream) struct Parser {
    max_bytes: usize,
    line: Vec<u8>,
    first_line: bool,
    after_cr: bool,
    kind: String,
    data: Option<Vec<u8>>,
    id: Option<String>,
    last_event_id: Option<String>,
    retry: Option<Duration>,
}

impl Parser {
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            first_line: true,
            after_cr: false,
            kind: String::new(),
            data: None,
            id: None,
            last_event_id: None,
            retry: None,
        }
    }

    /// Returns the id of the last whole event that had one; `None` also after an empty id, which resets it.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Returns the pause that the server asked for.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes the next chunk and appends the events that it completes to `events`.
    ///
    /// # Errors
    /// [`TooLong`]; events completed before it are in `events`.
    pub fn feed(&mut self, mut chunk: &[u8], events: &mut Vec<Event>) -> Result<(), TooLong> {
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let end = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if held + part.len() > self.max_bytes {
                return Err(TooLong);
            }
            append(&mut self.line, part, self.max_bytes);
            let Some(end) = end else { return Ok(()) };
            self.after_cr = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            let mut line = std::mem::take(&mut self.line);
            self.take_line(&mut line, events);
            // The buffer is kept for the next line, unless it is data by now.
            self.line = line;
            self.line.clear();
        }
        Ok(())
    }

    fn take_line(&mut self, whole: &mut Vec<u8>, events: &mut Vec<Event>) {
        let mut line = &whole[..];
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            if let Some(id) = self.id.take() {
                self.last_event_id = Some(id);
            }
            let kind = std::mem::take(&mut self.kind);
            if let Some(data) = self.data.take() {
                events.push(Event { kind, data });
            }
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(0) => return,
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => {
                    let before = whole.len() - value.len();
                    whole.drain(..before);
                    self.data = Some(std::mem::take(whole));
                }
            },
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if value.len() <= MAX_ID_BYTES && !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                if let Some(retry_ms) = digits.and_then(|text| text.parse().ok()) {
                    self.retry = Some(Duration::from_millis(retry_ms));
                }
            }
            _ => {}
        }
    }
}
