//! Pipes and sockets through the event loop, and what is left alone.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::fs::OFlags;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{input, output};

fn waits(stream: BorrowedFd<'_>) -> bool {
    !rustix::fs::fcntl_getfl(stream).unwrap().contains(OFlags::NONBLOCK)
}

/// More than a pipe or a socket holds, so that the writer has to wait for the reader.
const MUCH: usize = 4 << 20;

#[tokio::test]
async fn a_pipe_carries_much_and_its_inherited_ends_still_wait() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let (mut from, mut to) = (input(reader.as_fd()).unwrap().unwrap(), output(writer.as_fd()).unwrap().unwrap());
    let text: Vec<u8> = (0..MUCH).map(|n| n as u8).collect();
    let sent = text.clone();
    let writing = tokio::spawn(async move {
        to.write_all(&sent).await.unwrap();
        to.flush().await.unwrap();
    });
    let mut seen = vec![0; MUCH];
    from.read_exact(&mut seen).await.unwrap();
    writing.await.unwrap();
    assert!(seen == text);
    assert!(waits(reader.as_fd()) && waits(writer.as_fd()), "other processes may hold the same ends");
    drop(writer);
    assert_eq!(from.read(&mut seen).await.unwrap(), 0, "the end is seen");
}

#[tokio::test]
async fn a_socket_carries_much_both_ways() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut from, mut to) = (input(ours.as_fd()).unwrap().unwrap(), output(ours.as_fd()).unwrap().unwrap());
    let (mut back, mut forth) = (input(theirs.as_fd()).unwrap().unwrap(), output(theirs.as_fd()).unwrap().unwrap());
    let text: Vec<u8> = (0..MUCH).map(|n| (n / 7) as u8).collect();
    let (one, two) = (text.clone(), text.clone());
    let writing = tokio::spawn(async move { tokio::join!(to.write_all(&one), forth.write_all(&two)) });
    let (mut here, mut there) = (vec![0; MUCH], vec![0; MUCH]);
    let (read_here, read_there) = tokio::join!(from.read_exact(&mut here), back.read_exact(&mut there));
    assert_eq!((read_here.unwrap(), read_there.unwrap()), (MUCH, MUCH));
    let (to_there, to_here) = writing.await.unwrap();
    assert!(to_there.is_ok() && to_here.is_ok() && here == text && there == text);
    theirs.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(from.read(&mut here).await.unwrap(), 0, "the end is seen");
}

#[tokio::test]
async fn a_reader_that_is_gone_is_an_error_and_a_file_is_left_to_the_slow_way() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut to = output(ours.as_fd()).unwrap().unwrap();
    drop(theirs);
    assert!(to.write_all(b"x").await.is_err());
    let file = tempfile::tempfile().unwrap();
    assert!(input(file.as_fd()).unwrap().is_none() && output(file.as_fd()).unwrap().is_none());
}
