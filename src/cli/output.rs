//! What goes to stdout: lines of data, or a table for a person at a terminal. Knows nothing of what it prints.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anstyle::AnsiColor;

use super::failure::{Exit, Failure};

/// Where data goes.
#[derive(Clone)]
pub struct Output {
    /// True when a person reads it.
    pub terminal: bool,
    colour: bool,
    sink: Sink,
}

#[derive(Clone)]
enum Sink {
    Stdout,
    /// What tests look at.
    Memory(Arc<Mutex<Vec<u8>>>),
}

impl Output {
    /// The stdout of this process.
    pub fn of_process() -> Output {
        let terminal = io::stdout().is_terminal();
        // Not when NO_COLOR is set, nor at a terminal that has none.
        let colour = terminal && anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        Output { terminal, colour, sink: Sink::Stdout }
    }

    /// A place in memory, and what was written there.
    pub fn in_memory(terminal: bool) -> (Output, Arc<Mutex<Vec<u8>>>) {
        let written = Arc::new(Mutex::new(Vec::new()));
        (Output { terminal, colour: false, sink: Sink::Memory(written.clone()) }, written)
    }

    /// Writes text as it is. Errors: nobody reads any more (silent), or the disk is full.
    pub fn write(&self, text: &str) -> Result<(), Failure> {
        let written = match &self.sink {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
            }
            Sink::Memory(written) => {
                written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text.as_bytes());
                Ok(())
            }
        };
        written.map_err(|error| match error.kind() {
            // `… | head` is no failure worth a word.
            io::ErrorKind::BrokenPipe => Failure::new(Exit::Failure, ""),
            _ => Failure::new(Exit::Failure, format!("stdout can not be written: {error}")),
        })
    }

    /// Writes a line.
    pub fn line(&self, text: &str) -> Result<(), Failure> {
        self.write(&format!("{text}\n"))
    }

    /// The name of a state, in its colour where there are colours.
    pub fn state(&self, name: &str) -> String {
        let colour = match name.trim_end() {
            "completed" => AnsiColor::Green,
            "failed" | "refused" => AnsiColor::Red,
            "unknown" => AnsiColor::Magenta,
            "leased" | "waiting" => AnsiColor::Cyan,
            "cancelled" => AnsiColor::BrightBlack,
            _ => AnsiColor::Yellow,
        };
        self.painted(name, colour)
    }

    /// The name of an event, in the colour of what it means.
    pub fn event(&self, name: &str) -> String {
        match name.trim_end() {
            "lost" => self.painted(name, AnsiColor::Magenta),
            "retried" | "rejected" | "conflicted" => self.painted(name, AnsiColor::Yellow),
            "completed" | "failed" | "cancelled" | "leased" => self.state(name),
            _ => name.to_owned(),
        }
    }

    fn painted(&self, text: &str, colour: AnsiColor) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let style = colour.on_default();
        format!("{style}{text}{style:#}")
    }

    /// Writes a table in which one column holds states, in their colours.
    pub fn table_of_states(&self, header: &[&str], rows: &[Vec<String>], column: usize) -> Result<(), Failure> {
        let widths = widths(header, rows);
        let mut text = aligned(header.iter().map(|cell| cell.to_string()), &widths);
        for row in rows {
            let cells = row.iter().enumerate().map(|(index, cell)| match index == column {
                // Escapes have no width, so the colour comes after the padding.
                true => self.state(&format!("{:width$}", printable(cell), width = widths[index])),
                false => printable(cell),
            });
            text.push_str(&aligned(cells, &widths));
        }
        self.write(&text)
    }

    /// Writes a table: columns as wide as their widest cell, the last one as it is.
    pub fn table(&self, header: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        let widths = widths(header, rows);
        let mut text = aligned(header.iter().map(|cell| cell.to_string()), &widths);
        for row in rows {
            text.push_str(&aligned(row.iter().map(|cell| printable(cell)), &widths));
        }
        self.write(&text)
    }
}

fn widths(header: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(printable(cell).chars().count());
        }
    }
    widths
}

fn aligned(cells: impl Iterator<Item = String>, widths: &[usize]) -> String {
    let padded: Vec<String> = cells.zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
    format!("{}\n", padded.join("  ").trim_end())
}

/// What a tool or a client named can hold control sequences; a terminal must not obey them.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
