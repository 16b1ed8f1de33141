//! Frames on a byte stream: one line, one message, bounded in size. Of a line over the bound only the id is kept, so
//! that the call it answered need not wait for its time-out. Knows nothing of processes.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// One line of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Whole(Vec<u8>),
    /// Longer than the bound; dropped. `id`: of the answer that it was, where that could be seen.
    TooLong {
        id: Option<u64>,
    },
}

/// Reads frames; safe to drop between two polls.
pub(super) struct Frames<R> {
    reader: BufReader<R>,
    max_bytes: usize,
    line: Vec<u8>,
    skipping: Option<TopLevelId>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub fn new(reader: R, max_bytes: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, reader), max_bytes, line: Vec::new(), skipping: None }
    }

    /// Reads the next line; `None` at the end of the stream. A last line without its line break counts.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                let rest = self.skipping.is_some() || !self.line.is_empty();
                return Ok(rest.then(|| self.take()));
            }
            let line_break = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..line_break.unwrap_or(chunk.len())];
            match &mut self.skipping {
                Some(scan) => scan.feed(part),
                None if self.line.len() + part.len() > self.max_bytes => {
                    let mut scan = TopLevelId::default();
                    scan.feed(&self.line);
                    scan.feed(part);
                    self.line = Vec::new();
                    self.skipping = Some(scan);
                }
                None => append(&mut self.line, part, self.max_bytes),
            }
            let used = line_break.map_or(chunk.len(), |at| at + 1);
            self.reader.consume(used);
            if line_break.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Frame {
        match self.skipping.take() {
            Some(scan) => Frame::TooLong { id: scan.answer_id() },
            None => Frame::Whole(std::mem::take(&mut self.line)),
        }
    }
}

/// From this length on a message gets room for the longest one at once.
const GROWS_TO_BYTES: usize = 1 << 20;

/// Appends to a message that is being read. A buffer that doubles is there twice while it is moved, and half empty in the
/// end; room that is never written to takes no memory.
pub(super) fn append(message: &mut Vec<u8>, part: &[u8], max_bytes: usize) {
    let len = message.len() + part.len();
    if len > message.capacity() && len > GROWS_TO_BYTES {
        // Where there is not so much room it grows as any other buffer does.
        let _ = message.try_reserve_exact(max_bytes.saturating_sub(message.len()));
    }
    message.extend_from_slice(part);
}

/// Finds the `id` member of the outermost object of a text that is too long to keep.
#[derive(Debug, Default)]
pub struct TopLevelId {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The last string or number token at depth 1, bounded.
    token: Vec<u8>,
    /// The member whose value is being read.
    member: Vec<u8>,
    after_colon: bool,
    id: Option<u64>,
    has_method: bool,
}

/// No member name or id that matters is longer.
const MAX_TOKEN_BYTES: usize = 32;

impl TopLevelId {
    /// Takes the next piece of the text.
    pub fn feed(&mut self, text: &[u8]) {
        for byte in text {
            self.step(*byte);
        }
    }

    /// Returns the id if the text was an answer to a request of ours.
    pub fn answer_id(mut self) -> Option<u64> {
        self.end_value();
        if self.has_method { None } else { self.id }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => self.push(byte),
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 {
                    self.token.clear();
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.member = std::mem::take(&mut self.token);
                self.after_colon = true;
            }
            b',' if self.depth == 1 => self.end_value(),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.push(byte),
        }
    }

    fn push(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < MAX_TOKEN_BYTES {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.after_colon {
            match self.member.as_slice() {
                b"id" => self.id = std::str::from_utf8(&self.token).ok().and_then(|text| text.parse().ok()),
                b"method" => self.has_method = true,
                _ => {}
            }
        }
        self.after_colon = false;
        self.token.clear();
    }
}
