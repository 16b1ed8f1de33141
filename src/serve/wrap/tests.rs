//! How the death of a client is seen without writing to it.

use std::os::fd::AsFd;

use super::is_broken;

#[test]
fn a_stream_is_broken_once_its_reader_is_gone() {
    let (reader, writer) = std::io::pipe().unwrap();
    assert!(!is_broken(writer.as_fd()));
    drop(reader);
    assert!(is_broken(writer.as_fd()));
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(!is_broken(ours.as_fd()));
    drop(theirs);
    assert!(is_broken(ours.as_fd()));
    let file = tempfile::tempfile().unwrap();
    assert!(!is_broken(file.as_fd()));
}
