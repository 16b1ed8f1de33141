//! Ports that servers of tests listen on. The system gives none of them to a connection or to whoever asks for any port, and
//! no other test has them: a server that is started again finds its port as it left it.

use std::fs::{self, File};
use std::net::TcpListener;
use std::ops::Range;
use std::sync::Mutex;

use rustix::process::getuid;

/// Below those that Linux and macOS give by themselves.
const PORTS: Range<u16> = 20_000..24_000;

/// The locks of this process, each on the file of a port.
static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port that nobody listens on, this test's own until its process ends.
pub fn free_port() -> u16 {
    let folder = std::env::temp_dir().join(format!("durable-mcp-ports-{}", getuid().as_raw()));
    fs::create_dir_all(&folder).expect("a folder for the locks of ports");
    let mut taken = TAKEN.lock().unwrap();
    let first = std::process::id() as usize * 37;
    for n in first..first + PORTS.len() {
        let port = PORTS.start + (n % PORTS.len()) as u16;
        let lock = File::create(folder.join(port.to_string())).expect("the file of a port");
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.push(lock);
            return port;
        }
    }
    panic!("every port of {PORTS:?} is taken");
}
