//! One run of a command: the process in a group of its own and under the guard, its three streams, and its end. Says what
//! happened; what that means is not decided here.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::Access;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::CommandTool;

/// What the guard may need beyond its grace, and a killed process to be gone.
const END_SLACK: Duration = Duration::from_secs(2);
/// How long somebody who left the process tree may hold the streams of a command that has ended.
const DRAIN: Duration = Duration::from_millis(500);
/// Where programs are looked for when no `PATH` says.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command with the environment of one attempt.
pub(super) struct Program<'a> {
    pub tool: &'a CommandTool,
    pub env: Vec<(OsString, OsString)>,
}

/// Why a command provably never ran.
pub(super) struct Unstartable {
    pub code: &'static str,
    pub message: String,
}

/// How a run ended.
#[derive(Debug)]
pub(super) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// We stopped it, since nobody wants it any more.
    CutOff,
    /// We stopped it, since it wrote too much.
    TooMuch,
}

/// What a run left.
#[derive(Debug)]
pub(super) struct Output {
    pub end: End,
    pub stdout: Vec<u8>,
    /// The end of what it wrote to stderr.
    pub stderr: Vec<u8>,
}

/// A run that goes on by itself until its end; dropping this stops it.
pub(super) struct Running {
    task: JoinHandle<Output>,
    _stop: DropGuard,
}

impl Running {
    /// Waits for the end; `None` when the run was lost with its runtime.
    pub async fn output(self) -> Option<Output> {
        self.task.await.ok()
    }
}

impl Program<'_> {
    /// Starts the command; `stop` ends its whole tree.
    ///
    /// # Errors
    /// Says why it provably never ran. Names the program, never its arguments: they may hold secrets.
    pub fn start(&self, input: String, stop: CancellationToken) -> Result<Running, Unstartable> {
        let path = self.resolve()?;
        let (mut child, control) = self.spawn(&path).map_err(|error| match self.tool.guard.is_empty() {
            true => unstartable(&path, &error),
            false => Unstartable {
                code: "command_not_startable",
                message: format!("the guard of the command {} cannot be started: {error}", path.display()),
            },
        })?;
        let streams = Streams {
            input: feed(child.stdin.take(), input),
            stdout: Capture::new(child.stdout.take(), Keep::First(self.tool.limits.stdout_bytes)),
            stderr: Capture::new(child.stderr.take(), Keep::Last(self.tool.limits.stderr_bytes)),
        };
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let process = Process { child, control, group, grace: self.tool.limits.kill_grace };
        let task = tokio::spawn(process.see_through(streams, stop.clone()));
        Ok(Running { task, _stop: stop.drop_guard() })
    }

    /// Finds the program as the command's own environment has it. Under the guard this is the only way to tell a missing
    /// program from a program that answers with the exit code of a missing one.
    fn resolve(&self) -> Result<PathBuf, Unstartable> {
        let program = Path::new(&self.tool.program);
        let base = match &self.tool.cwd {
            Some(cwd) if !cwd.is_dir() => {
                let message = format!("the working directory {} of the command does not exist", cwd.display());
                return Err(Unstartable { code: "command_not_startable", message });
            }
            Some(cwd) => cwd.clone(),
            None => std::env::current_dir().unwrap_or_default(),
        };
        if self.tool.program.as_encoded_bytes().contains(&b'/') {
            let path = base.join(program);
            return executable(&path).map(|()| path.clone()).map_err(|error| unstartable(&path, &error));
        }
        let path = self.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let mut reason = io::Error::from(io::ErrorKind::NotFound);
        for folder in std::env::split_paths(path.unwrap_or(OsStr::new(PATH_DEFAULT))) {
            let candidate = base.join(folder).join(program);
            match executable(&candidate) {
                Ok(()) => return Ok(candidate),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => reason = error,
            }
        }
        Err(unstartable(program, &reason))
    }

    /// Starts `program` under the guard where there is one. The second value is the write end of the pipe the guard
    /// watches: its end, also by our death, ends the tree.
    fn spawn(&self, program: &Path) -> io::Result<(Child, Option<io::PipeWriter>)> {
        let tool = self.tool;
        let (mut command, control) = match tool.guard.split_first() {
            Some((guard, args)) => {
                let (reader, writer) = io::pipe()?;
                // For the guard to inherit. A process started elsewhere at this moment may inherit it too, and keeps
                // nothing alive by it: that takes a write end.
                fcntl_setfd(&reader, FdFlags::empty())?;
                let mut command = Command::new(guard);
                let grace_ms = tool.limits.kill_grace.as_millis().to_string();
                command
                    .arg0("durable-mcp")
                    .args(args)
                    .arg(reader.as_raw_fd().to_string())
                    .arg(grace_ms)
                    .arg("--")
                    .arg(program);
                (command, Some((reader, writer)))
            }
            None => (Command::new(program), None),
        };
        command
            .args(&tool.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(tool.guard.is_empty());
        if let Some(cwd) = &tool.cwd {
            command.current_dir(cwd);
        }
        let child = command.spawn()?;
        Ok((child, control.map(|(_, writer)| writer)))
    }
}

fn executable(path: &Path) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(rustix::fs::access(path, Access::EXEC_OK)?)
}

fn unstartable(program: &Path, error: &io::Error) -> Unstartable {
    let program = program.display();
    let (code, message) = match error.kind() {
        io::ErrorKind::NotFound => ("command_not_found", format!("the command {program} was not found")),
        io::ErrorKind::PermissionDenied => {
            ("command_not_executable", format!("the command {program} is not executable"))
        }
        _ => ("command_not_startable", format!("the command {program} cannot be started: {error}")),
    };
    Unstartable { code, message }
}

struct Process {
    child: Child,
    control: Option<io::PipeWriter>,
    group: Option<Pid>,
    grace: Duration,
}

struct Streams<F> {
    input: F,
    stdout: Capture,
    stderr: Capture,
}

impl Process {
    async fn see_through(mut self, streams: Streams<impl Future<Output = ()>>, stop: CancellationToken) -> Output {
        let Streams { input, mut stdout, mut stderr } = streams;
        let mut fed = false;
        tokio::pin!(input);
        let end = loop {
            tokio::select! {
                biased;
                status = self.child.wait() => match status {
                    Ok(status) => break End::Exited(status),
                    Err(_) => break End::CutOff,
                },
                () = stop.cancelled() => break match self.child.try_wait() {
                    // It had ended before it was told to stop, and nobody had looked yet: its answer is evidence.
                    Ok(Some(status)) => End::Exited(status),
                    _ => End::CutOff,
                },
                () = stdout.fill(), if stdout.more => if stdout.too_much {
                    break End::TooMuch;
                },
                () = stderr.fill(), if stderr.more => {}
                () = &mut input, if !fed => fed = true,
            }
        };
        if !matches!(end, End::Exited(_)) {
            self.stop().await;
        }
        // Whoever is left in the group has outlived the command or its guard, and may hold the streams.
        self.signal_group(Signal::KILL);
        let rest = async { tokio::join!(stdout.fill(), stderr.fill()) };
        let _ = timeout(DRAIN, rest).await;
        let end = if matches!(end, End::Exited(_)) && stdout.too_much { End::TooMuch } else { end };
        Output { end, stdout: stdout.bytes, stderr: stderr.bytes }
    }

    async fn stop(&mut self) {
        let grace = match self.control.take() {
            // The guard sends SIGTERM, waits for the grace, sends SIGKILL and needs a moment for it.
            Some(control) => {
                drop(control);
                self.grace + END_SLACK
            }
            None => {
                self.signal_group(Signal::TERM);
                self.grace
            }
        };
        if timeout(grace, self.child.wait()).await.is_err() {
            self.signal_group(Signal::KILL);
            let _ = timeout(END_SLACK, self.child.wait()).await;
        }
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An empty group is what is wanted.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

async fn feed(stdin: Option<ChildStdin>, input: String) {
    if let Some(mut stdin) = stdin {
        // A tool that does not read all of its arguments is free to do so.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
}

#[derive(Clone, Copy)]
enum Keep {
    First(usize),
    Last(usize),
}

/// What a stream brought so far, within bounds.
struct Capture {
    pipe: Option<Box<dyn AsyncRead + Send + Unpin>>,
    keep: Keep,
    bytes: Vec<u8>,
    /// The stream has not ended.
    more: bool,
    /// It brought more than may be kept of its beginning.
    too_much: bool,
}

impl Capture {
    fn new(pipe: Option<impl AsyncRead + Send + Unpin + 'static>, keep: Keep) -> Capture {
        let pipe = pipe.map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>);
        Capture { more: pipe.is_some(), pipe, keep, bytes: Vec::new(), too_much: false }
    }

    /// Reads until the end of the stream or the bound. What was read stays when the future is dropped.
    async fn fill(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        while self.more {
            match pipe.read_buf(&mut self.bytes).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => self.more = false,
            }
            match self.keep {
                Keep::First(most) if self.bytes.len() > most => {
                    self.too_much = true;
                    self.more = false;
                    self.bytes.truncate(most);
                }
                // Twice the bound, so that not every read moves the rest.
                Keep::Last(most) if self.bytes.len() > 2 * most || !self.more => {
                    self.bytes.drain(..self.bytes.len().saturating_sub(most));
                }
                Keep::First(_) | Keep::Last(_) => {}
            }
        }
    }
}
