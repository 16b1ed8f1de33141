//! A private PostgreSQL: the newest of the installed binaries, on a free port of this machine's loopback, without syncing.
//! It ends with the test, also when the test is killed. PostgreSQL refuses to run as root: as root it runs as `postgres`.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Where Debian keeps the programs of each release.
const INSTALLED: &str = "/usr/lib/postgresql";

/// A running cluster. Dropped: stopped at once, and gone.
pub(super) struct Cluster {
    server: Child,
    programs: PathBuf,
    port: u16,
    folder: TempDir,
}

impl Cluster {
    /// Starts one; `None`, with a loud line, where PostgreSQL is not installed. In CI that is a failure.
    pub(super) fn start() -> Option<Cluster> {
        let Some(programs) = programs() else {
            let ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
            assert!(!ci, "PostgreSQL is not installed below {INSTALLED}");
            eprintln!("\n=== SKIPPED: PostgreSQL is not installed below {INSTALLED} ===\n");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        // The other user has to get through, and into a folder of its own.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let data = folder.path().join("data");
        let made = as_user(&programs.join("initdb"))
            .args(["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = serve(&programs, &data, port);
        let mut cluster = Cluster { server, programs, port, folder };
        cluster.wait();
        Some(cluster)
    }

    /// Stops it at once, as a power cut would.
    pub(super) fn stop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// Starts it again on what it had stored.
    pub(super) fn start_again(&mut self) {
        let data = self.folder.path().join("data");
        // What was killed leaves this behind, and its number may be another process's by now.
        let _ = std::fs::remove_file(data.join("postmaster.pid"));
        self.server = serve(&self.programs, &data, self.port);
        self.wait();
    }

    /// Reads its log until it says that it takes connections, and from then on so that it never fills up.
    fn wait(&mut self) {
        let mut log = BufReader::new(self.server.stderr.take().unwrap()).lines();
        let mut told = Vec::new();
        loop {
            let line = log.next().unwrap_or_else(|| panic!("PostgreSQL does not start:\n{}", told.join("\n"))).unwrap();
            if line.contains("ready to accept connections") {
                break;
            }
            told.push(line);
        }
        std::thread::spawn(move || log.for_each(drop));
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Its children end when they see that it is gone.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn serve(programs: &Path, data: &Path, port: u16) -> Child {
    as_user(&programs.join("postgres"))
        .arg("-D")
        .arg(data)
        .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-F", "-c", "max_connections=200"])
        .args(["-c", "unix_socket_directories=", "-c", "synchronous_commit=off", "-c", "autovacuum=off"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The newest release that has a server.
fn programs() -> Option<PathBuf> {
    let releases = std::fs::read_dir(INSTALLED).ok()?;
    let programs = releases.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    programs.filter(|programs| programs.join("postgres").exists()).max()
}

/// A program that ends with this process; as another user when this one is root.
fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig=QUIT");
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    }
    command.arg("--").arg(program).current_dir("/");
    command
}
