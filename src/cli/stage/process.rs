//! A child process under the guard of this program: it ends when it is dropped, when this process ends in any way, and is
//! killed, stopped and continued by its own id. Its stderr goes to a file. Knows nothing of what it runs.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal};

use super::super::failure::{Exit, Failure};
use crate::worker::upstream::guard;

/// What a tree gets between SIGTERM and SIGKILL when we are gone.
const GUARD_GRACE_MS: u32 = 300;
/// How long a start may take to name its process.
const PID_DEADLINE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long the guard of a killed process may take.
const END_DEADLINE: Duration = Duration::from_secs(3);

/// Tells its id on stderr, then becomes the program: the guard's child has to be known by its own id.
const TELL_AND_BECOME: &str = r#"echo $$ >&2; exec "$0" "$@""#;

/// What to start.
#[derive(Debug)]
pub struct Program<'a> {
    /// Name of its log in the folder.
    pub log: String,
    /// Where the log goes.
    pub folder: &'a Path,
    /// Where it starts; absent: in that folder.
    pub cwd: Option<&'a Path>,
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Set on top of this process's environment, which is otherwise passed on without `DURABLE_MCP_…`.
    pub env: Vec<(&'static str, OsString)>,
    /// Whether stdin and stdout are pipes; else there are none.
    pub piped: bool,
}

/// A running child. Dropped: killed, its tree included.
#[derive(Debug)]
pub struct Process {
    guard: Child,
    /// Its end, also by our death, tells the guard to end the tree.
    _control: io::PipeWriter,
    pid: Pid,
    log: PathBuf,
}

/// This program.
pub fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Failure, format!("this program can not find itself: {error}")))
}

impl Process {
    /// Starts it and learns its id. Errors: it can not be started.
    pub fn start(program: Program<'_>) -> Result<Process, Failure> {
        let name = program.log.clone();
        let failed = |error: io::Error| Failure::new(Exit::Failure, format!("{name} can not be started: {error}"));
        let log = program.folder.join(format!("{}.log", program.log));
        let stderr = File::options().create_new(true).append(true).mode(0o600).open(&log).map_err(failed)?;
        let (reader, writer) = io::pipe().map_err(failed)?;
        // For the guard to inherit; what else inherits it at this moment keeps nothing alive by a read end.
        fcntl_setfd(&reader, FdFlags::empty()).map_err(|error| failed(error.into()))?;
        let own = own_program()?;
        let mut command = Command::new(&own);
        command.arg(guard::SUBCOMMAND).arg(reader.as_raw_fd().to_string()).arg(GUARD_GRACE_MS.to_string());
        command.arg("--").args(["sh", "-c", TELL_AND_BECOME]).args(&program.argv);
        for (variable, _) in std::env::vars_os() {
            if variable.to_str().is_some_and(|variable| variable.starts_with("DURABLE_MCP_")) {
                command.env_remove(variable);
            }
        }
        command.envs(program.env).current_dir(program.cwd.unwrap_or(program.folder)).stderr(stderr);
        let pipe = || if program.piped { Stdio::piped() } else { Stdio::null() };
        command.stdin(pipe()).stdout(pipe());
        // A Ctrl-C at the terminal is ours to handle.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut guard = command.spawn().map_err(failed)?;
        drop(reader);
        match told_pid(&log, &mut guard) {
            Some(pid) => Ok(Process { guard, _control: writer, pid, log }),
            None => {
                drop(writer);
                let _ = guard.wait();
                Err(Failure::new(Exit::Failure, format!("{name} did not start: {}", last_lines(&log))))
            }
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// What it has written to stderr so far, without the line that told its id.
    pub fn log(&self) -> String {
        let text = std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        text.unwrap_or_default().split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
    }

    /// The last of what it wrote, on one line.
    pub fn last_words(&self) -> String {
        last_lines(&self.log)
    }

    /// True until it, or its guard, has ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.guard.try_wait(), Ok(None))
    }

    /// The pipes to it, once.
    pub fn take_pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.guard.stdin.take().zip(self.guard.stdout.take())
    }

    /// Sends a signal to it alone.
    pub fn signal(&self, signal: Signal) {
        // Gone already is as good.
        let _ = rustix::process::kill_process(self.pid, signal);
    }

    /// SIGTERM, and waits for its end; SIGKILL after the time given.
    pub fn end(mut self, within: Duration) -> bool {
        self.signal(Signal::TERM);
        wait(&mut self.guard, within)
    }

    /// SIGKILL, and waits until it is gone with everything below it.
    pub fn kill(&mut self) {
        // After the wait its id may be another process's.
        if self.is_running() {
            self.signal(Signal::KILL);
            wait(&mut self.guard, END_DEADLINE);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn wait(guard: &mut Child, within: Duration) -> bool {
    let end = Instant::now() + within;
    loop {
        match guard.try_wait() {
            Ok(None) if Instant::now() < end => std::thread::sleep(LOOK_EVERY),
            Ok(None) => return false,
            _ => return true,
        }
    }
}

fn told_pid(log: &Path, guard: &mut Child) -> Option<Pid> {
    let end = Instant::now() + PID_DEADLINE;
    loop {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if let Some((first, _)) = text.split_once('\n') {
            return first.trim().parse().ok().and_then(Pid::from_raw);
        }
        if Instant::now() >= end || !matches!(guard.try_wait(), Ok(None)) {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(3)..];
    super::super::output::printable(&last.join(" | "))
}
