//! Lines out of pieces of a stream, bounded: of a line over the bound only the id of its message is kept. Reads no more of
//! a line than that.

use crate::worker::upstream::TopLevelId;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its line break.
    Whole(Vec<u8>),
    /// Longer than the bound; the id of the answer it was, where that could be seen.
    TooLong(Option<u64>),
}

/// Puts lines together.
#[derive(Debug)]
pub struct Lines {
    bytes_max: usize,
    line: Vec<u8>,
    too_long: Option<TopLevelId>,
    /// The rest of a line whose beginning was not watched is skipped.
    lost: bool,
}

impl Lines {
    /// Lines of at most so many bytes.
    pub fn new(bytes_max: usize) -> Lines {
        Lines { bytes_max, line: Vec::new(), too_long: None, lost: false }
    }

    /// Takes the next piece and gives each line that ends in it to `take`.
    pub fn feed(&mut self, mut bytes: &[u8], after_gap: bool, mut take: impl FnMut(Line)) {
        if after_gap {
            self.line = Vec::new();
            self.too_long = None;
            self.lost = true;
        }
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            self.keep(&bytes[..at]);
            bytes = &bytes[at + 1..];
            if !std::mem::take(&mut self.lost) {
                take(self.taken());
            }
        }
        self.keep(bytes);
    }

    /// What is left at the end of the stream: a last line without its line break.
    pub fn rest(&mut self) -> Option<Line> {
        let any = !self.lost && (self.too_long.is_some() || !self.line.is_empty());
        any.then(|| self.taken())
    }

    fn keep(&mut self, part: &[u8]) {
        if self.lost {
            return;
        }
        match &mut self.too_long {
            Some(scan) => scan.feed(part),
            None if self.line.len() + part.len() > self.bytes_max => {
                let mut scan = TopLevelId::default();
                scan.feed(&self.line);
                scan.feed(part);
                self.line = Vec::new();
                self.too_long = Some(scan);
            }
            None => self.line.extend_from_slice(part),
        }
    }

    fn taken(&mut self) -> Line {
        match self.too_long.take() {
            Some(scan) => Line::TooLong(scan.answer_id()),
            None => Line::Whole(std::mem::take(&mut self.line)),
        }
    }
}
