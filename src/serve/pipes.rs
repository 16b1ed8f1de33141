//! The client's ends of stdin and stdout, read and written by the event loop: `tokio::io::stdin` hands each read to a
//! thread of its own, which costs two changes of thread a message. A pipe is opened a second time, since who else holds the
//! inherited end must not find it changed; a socket is made non-blocking unless stderr is the same one; all else, files
//! and terminals, is read the slow way.

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream as Socket;

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// What is read from.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// What is written to.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Our stdin. Must be called inside a tokio runtime.
pub fn stdin() -> Input {
    // Whatever is special about a stream, the slow way can read it.
    input(rustix::stdio::stdin()).ok().flatten().unwrap_or_else(|| Box::new(tokio::io::stdin()))
}

/// Our stdout. Must be called inside a tokio runtime.
pub fn stdout() -> Output {
    output(rustix::stdio::stdout()).ok().flatten().unwrap_or_else(|| Box::new(tokio::io::stdout()))
}

fn input(stream: BorrowedFd<'_>) -> io::Result<Option<Input>> {
    Ok(match kind(stream)? {
        Kind::Pipe(path) => Some(Box::new(pipe::OpenOptions::new().open_receiver(path)?)),
        Kind::Socket(socket) => Some(Box::new(UnixStream::from_std(socket)?)),
        Kind::Other => None,
    })
}

fn output(stream: BorrowedFd<'_>) -> io::Result<Option<Output>> {
    Ok(match kind(stream)? {
        Kind::Pipe(path) => Some(Box::new(pipe::OpenOptions::new().open_sender(path)?)),
        Kind::Socket(socket) => Some(Box::new(UnixStream::from_std(socket)?)),
        Kind::Other => None,
    })
}

enum Kind {
    /// With a name under which it can be opened again: the new end has flags of its own, while the one that was inherited
    /// may belong to other processes too.
    Pipe(String),
    /// That does not wait any more.
    Socket(Socket),
    Other,
}

fn kind(stream: BorrowedFd<'_>) -> io::Result<Kind> {
    let facts = rustix::fs::fstat(stream)?;
    match FileType::from_raw_mode(facts.st_mode) {
        // Elsewhere such a name stands for the inherited end itself.
        FileType::Fifo if cfg!(target_os = "linux") => Ok(Kind::Pipe(format!("/proc/self/fd/{}", stream.as_raw_fd()))),
        FileType::Socket => {
            let socket = Socket::from(stream.try_clone_to_owned()?);
            let is_stderr =
                rustix::fs::fstat(rustix::stdio::stderr()).is_ok_and(|stderr| stderr.st_ino == facts.st_ino);
            // The log is written by waiting. And only a Unix socket tells its address as one.
            if is_stderr || socket.local_addr().is_err() {
                return Ok(Kind::Other);
            }
            socket.set_nonblocking(true)?;
            Ok(Kind::Socket(socket))
        }
        _ => Ok(Kind::Other),
    }
}
