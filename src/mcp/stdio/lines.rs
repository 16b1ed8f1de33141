//! Lines of a pipe: one message each, bounded. Parses nothing.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// What was read of a line.
pub enum Line {
    /// All of it, its newline included.
    Whole,
    /// More than was permitted; nothing of it is kept.
    TooLong,
    /// There is nothing more.
    End,
}

/// Reads up to a newline; an over-long line is skipped to its end without keeping it.
pub async fn read_line<R: AsyncBufRead + Unpin>(
    input: &mut R,
    line: &mut Vec<u8>,
    bytes_max: usize,
) -> std::io::Result<Line> {
    let mut too_long = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(if line.is_empty() && !too_long {
                Line::End
            } else if too_long {
                Line::TooLong
            } else {
                Line::Whole
            });
        }
        let (piece, ends) = match available.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (available.len(), false),
        };
        if line.len() + piece > bytes_max + 1 {
            too_long = true;
            line.clear();
        }
        if !too_long {
            line.extend_from_slice(&available[..piece]);
        }
        input.consume(piece);
        if ends {
            return Ok(if too_long { Line::TooLong } else { Line::Whole });
        }
    }
}
