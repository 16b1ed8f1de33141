//! The local token's file.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn the_file_is_private_found_by_loopback_names_only_and_removed_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let token = LocalToken::write(&data_dir, "127.0.0.1:7400".parse().unwrap()).unwrap();
    let path = data_dir.join("servers/127.0.0.1_7400.token");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(data_dir.join("servers")).unwrap().permissions().mode() & 0o777, 0o700);
    for host in ["127.0.0.1", "localhost", "LOCALHOST"] {
        assert!(token.matches(&find(&data_dir, host, 7400).unwrap()), "{host}");
    }
    for (host, port) in [("127.0.0.1", 7401), ("10.0.0.1", 7400), ("evil.example", 7400), ("localhost.evil", 7400)] {
        assert_eq!(find(&data_dir, host, port), None, "{host}:{port}");
    }
    assert!(!token.matches("") && !token.matches("dmcp_local_"));
    token.remove();
    assert!(!path.exists());
}

#[test]
fn a_server_leaves_the_token_of_its_successor() {
    let folder = tempfile::tempdir().unwrap();
    let listen: SocketAddr = "[::1]:7400".parse().unwrap();
    let first = LocalToken::write(folder.path(), listen).unwrap();
    let second = LocalToken::write(folder.path(), listen).unwrap();
    first.remove();
    assert!(second.matches(&find(folder.path(), "[::1]", 7400).unwrap()));
    assert!(!first.matches(&find(folder.path(), "::1", 7400).unwrap()));
}
