//! The process of a stdio server: started under a guard with a bare environment, its stderr into the log, its whole tree
//! ended with it. Knows nothing of the protocol.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::frames::{Frame, Frames};
use super::guard;
use super::leg::{LegContext, StartError};
use super::log_budget::{LogBudget, Unloggable, loggable};
use super::overheard::Overheard;
use super::peer::Peer;
use super::settings::{INHERITED_VARIABLES, StdioSettings};

/// A longer line of stderr is dropped.
const MAX_STDERR_LINE_BYTES: usize = 16 * 1024;
/// What the guard may need beyond its grace, and a killed process to be gone.
const END_SLACK: Duration = Duration::from_secs(2);

/// A running server process. Dropping it ends the process tree in the background.
pub(super) struct Child {
    process: Mutex<Option<Process>>,
    end: CancellationToken,
    gone: CancellationToken,
    exit: Arc<Mutex<Exit>>,
}

/// The ends of the process that speak the protocol.
pub(super) struct Streams {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
}

#[derive(Default)]
struct Exit {
    text: String,
    by_itself: bool,
}

struct Process {
    child: tokio::process::Child,
    group: Option<Pid>,
    /// The write end that the guard watches; its drop tells the guard to end the tree. Without a guard there is none.
    control: Option<io::PipeWriter>,
    close_grace: Duration,
    kill_grace: Duration,
}

impl Child {
    /// Starts the process. It must be given to [`Child::watch_over`] then.
    ///
    /// # Errors
    /// Says why the process could not be started.
    pub fn start(settings: &StdioSettings, context: &LegContext) -> Result<(Self, Streams), StartError> {
        if settings.program.is_empty() {
            return Err(StartError::permanent("its command is empty"));
        }
        if let Some(cwd) = settings.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(StartError::passing(format!("its working directory {} does not exist", cwd.display())));
        }
        let (command, control) = command(settings).map_err(|error| failed(settings, &error))?;
        let mut command = Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(control.is_none());
        let mut child = command.spawn().map_err(|error| failed(settings, &error))?;
        // The read end is the guard's alone from here on.
        let control = control.map(|(reader, writer)| {
            drop(reader);
            writer
        });
        let streams = match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Streams { stdin, stdout },
            _ => return Err(StartError::passing("its stdin and stdout cannot be opened")),
        };
        if let Some(stderr) = child.stderr.take() {
            let unloggable = Unloggable::of(settings);
            let log = LogBudget::new(context.limits.log_lines_per_second);
            tokio::spawn(log_stderr(stderr, (context.name.clone(), log), unloggable, context.overheard.clone()));
        }
        let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let process =
            Process { child, group, control, close_grace: settings.close_grace, kill_grace: settings.kill_grace };
        let child = Self {
            process: Mutex::new(Some(process)),
            end: CancellationToken::new(),
            gone: CancellationToken::new(),
            exit: Arc::default(),
        };
        Ok((child, streams))
    }

    /// Sees the process through to its end: by itself, at the end of its stdout, or by [`Child::end`].
    pub fn watch_over(&self, peer: &Arc<Peer>) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(process) = process {
            let (end, gone, exit) = (self.end.clone(), self.gone.clone(), self.exit.clone());
            tokio::spawn(process.see_through(peer.clone(), end, move |text, by_itself| {
                *exit.lock().unwrap_or_else(PoisonError::into_inner) = Exit { text, by_itself };
                gone.cancel();
            }));
        }
    }

    /// Whether the process is known to have ended without our doing.
    pub fn ended_by_itself(&self) -> bool {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner).by_itself
    }

    /// Ends the process tree, waits until it is gone, and says how it ended.
    pub async fn end(&self) -> String {
        self.end.cancel();
        self.gone.cancelled().await;
        self.exit.lock().unwrap_or_else(PoisonError::into_inner).text.clone()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// The pipe that the guard watches. Its read end is to be dropped once the guard has it; the end of its write end ends
/// the tree.
pub type Control = (io::PipeReader, io::PipeWriter);

/// The command line of a server, under its guard where it has one, with its environment and folder and in a process
/// group of its own; its streams are the caller's matter.
pub fn command(settings: &StdioSettings) -> io::Result<(std::process::Command, Option<Control>)> {
    let (mut command, control) = match settings.guard.split_first() {
        Some((program, args)) => {
            let (reader, writer) = io::pipe()?;
            // The guard inherits the read end. Another process that is started at this very moment may inherit it too,
            // which is harmless: only the write end, which nobody inherits, keeps the pipe alive.
            fcntl_setfd(&reader, FdFlags::empty())?;
            let mut command = std::process::Command::new(program);
            command
                .arg0("durable-mcp")
                .args(args)
                .arg(reader.as_raw_fd().to_string())
                .arg(settings.kill_grace.as_millis().to_string())
                .arg("--")
                .arg(&settings.program);
            (command, Some((reader, writer)))
        }
        None => (std::process::Command::new(&settings.program), None),
    };
    command
        .args(&settings.args)
        .env_clear()
        .envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .envs(settings.env.iter().map(|(name, value)| (name, value.expose())))
        .process_group(0);
    if let Some(cwd) = &settings.cwd {
        command.current_dir(cwd);
    }
    Ok((command, control))
}

/// Names the command, never its arguments: they may hold secrets.
fn failed(settings: &StdioSettings, error: &io::Error) -> StartError {
    let program = settings.program.display();
    StartError::passing(match error.kind() {
        _ if !settings.guard.is_empty() => format!("the guard of its command {program} cannot be started: {error}"),
        io::ErrorKind::NotFound => format!("its command {program} was not found"),
        _ => format!("its command {program} cannot be started: {error}"),
    })
}

impl Process {
    async fn see_through(mut self, peer: Arc<Peer>, end: CancellationToken, done: impl FnOnce(String, bool)) {
        let closed = peer.closed();
        let mut status = None;
        let mut by_itself = true;
        tokio::select! {
            biased;
            ended = self.child.wait() => status = ended.ok(),
            () = closed.cancelled() => {}
            () = end.cancelled() => by_itself = false,
        }
        peer.hang_up();
        if status.is_none() {
            status = self.wait(self.close_grace).await;
        }
        if status.is_none() {
            by_itself = false;
            status = match self.control.take() {
                // The guard sends SIGTERM, waits for the grace, sends SIGKILL, and needs a moment for it.
                Some(control) => {
                    drop(control);
                    self.wait(self.kill_grace + END_SLACK).await
                }
                None => {
                    self.signal_group(Signal::TERM);
                    self.wait(self.kill_grace).await
                }
            };
        }
        // What is still in the group has outlived its root or its guard.
        self.signal_group(Signal::KILL);
        if status.is_none() {
            status = self.wait(END_SLACK).await;
        }
        peer.process_ended();
        done(describe(status), by_itself);
    }

    async fn wait(&mut self, at_most: Duration) -> Option<ExitStatus> {
        timeout(at_most, self.child.wait()).await.ok()?.ok()
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

fn describe(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "its process does not end".to_owned() };
    match (status.code(), status.signal()) {
        (Some(guard::EXIT_NOT_FOUND), _) => "its command was not found".to_owned(),
        (Some(guard::EXIT_NOT_EXECUTABLE), _) => "its command cannot be executed".to_owned(),
        // The guard reports a death by signal as shells do.
        (Some(code @ 129..=159), _) => format!("its process was killed by signal {}", code - 128),
        (Some(code), _) => format!("its process ended with exit code {code}"),
        (None, Some(signal)) => format!("its process was killed by signal {signal}"),
        (None, None) => "its process ended".to_owned(),
    }
}

async fn log_stderr(
    stderr: ChildStderr,
    (upstream, mut log): (String, LogBudget),
    unloggable: Unloggable,
    overheard: Arc<Overheard>,
) {
    let mut frames = Frames::new(stderr, MAX_STDERR_LINE_BYTES);
    while let Ok(Some(frame)) = frames.next().await {
        let Frame::Whole(line) = frame else { continue };
        if let Some(dropped) = log.take() {
            let line = loggable(&line, &unloggable);
            overheard.stderr(&line);
            debug!(upstream, dropped, line, "stderr");
        }
    }
}
