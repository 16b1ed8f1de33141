//! `wrap --shadow`: the server runs as it would without us, every byte passes as it came, and at the end a report says
//! what DurableMCP would have done. Opens no store, runs nothing twice, answers nothing.

mod ledger;
mod lines;
mod relay;
pub mod report;
#[cfg(test)]
mod tests;
mod watch;

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::failure::Failure;
use super::{settings, signals, upstreams};
use crate::config::Loaded;
use crate::engine::clock::Clock;
use crate::worker::upstream::{self, StdioSettings};
use relay::{Direction, Piece, Pump, Tap};
use report::{End, Report};
use watch::Watch;

/// Bytes of copies that wait for the watcher: the bound on the memory they take.
const QUEUED_BYTES_MAX: usize = 16 << 20;
/// How long the server may take to end after a signal before the report is made: the client's patience is not long.
const SIGNAL_GRACE: Duration = Duration::from_millis(1_500);
/// How long whoever left the process tree may hold the output of a server that has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// What `wrap --shadow` was asked for; the configuration holds the one server.
pub struct ShadowOptions {
    /// The configuration.
    pub loaded: Loaded,
    /// Where the report goes as JSON, besides stderr.
    pub report: Option<PathBuf>,
}

/// A conversation that is over.
pub struct Watched {
    /// What was seen.
    pub report: Report,
    /// The exit code of the server, which is that of this process: 128 + n after a death by signal n.
    pub exit: u8,
}

/// Passes the conversation through until it ends.
pub async fn shadow(options: ShadowOptions) -> Result<Watched, Failure> {
    let ShadowOptions { loaded, report } = options;
    let loaded = Arc::new(loaded);
    let stop = signals::follow().map_err(|error| Failure::new(format!("signals cannot be followed: {error}")))?;
    let (name, stdio) = upstreams::wrapped_command(&loaded).ok_or_else(|| {
        Failure::usage("--shadow watches a server over stdio; put its command after --, or leave --shadow out")
    })?;
    let config = Arc::new(loaded.config.clone());
    let watch = Arc::new(Mutex::new(Watch::new(&name, config, Clock::System.now_ms())));
    let unwatched = Arc::new(AtomicU64::new(0));
    let (sender, pieces) = channel();
    let queued = Arc::new(AtomicUsize::new(0));
    let tap = Tap { sender, queued: queued.clone(), queued_max: QUEUED_BYTES_MAX, unwatched: unwatched.clone() };

    let Started { mut child, stdin, stdout, control } = start(&stdio)?;
    let (own_stdin, own_stdout) = own_streams()?;
    let input = pump(Pump { direction: Direction::ToServer, from: own_stdin, to: stdin }, tap.clone());
    let output = pump(Pump { direction: Direction::ToClient, from: stdout, to: own_stdout }, tap.clone());
    let watcher = std::thread::spawn({
        let watch = watch.clone();
        move || follow(&watch, &pieces, &queued)
    });
    let exited = tokio::task::spawn_blocking(move || child.wait());
    tokio::pin!(exited);

    let linger = settings::duration(loaded.config.wrap.linger);
    let so_far = |end| lock(&watch).report(end, Clock::System.now_ms(), unwatched.load(Ordering::Relaxed));
    let mut status = None;
    let came_to_its_end = input.came_to_its_end;
    let by_whom = || match came_to_its_end.load(Ordering::SeqCst) {
        true => End::ClientLeft,
        false => End::ServerEnded,
    };
    let client_left = async {
        let _ = input.end.await;
        // A client that kills next leaves at least this.
        report.as_deref().map_or(Ok(()), |path| write(path, &so_far(End::None)))
    };
    tokio::pin!(client_left);
    let mut end = tokio::select! {
        ended = &mut exited => {
            status = ended.ok().and_then(Result::ok);
            by_whom()
        }
        left = &mut client_left => {
            left?;
            by_whom()
        }
        () = stop.soon.cancelled() => End::Signal,
    };
    if status.is_none() && end != End::Signal {
        tokio::select! {
            ended = &mut exited => status = ended.ok().and_then(Result::ok),
            // A server that stays gets as long as `wrap` would give its calls.
            () = tokio::time::sleep(linger) => {}
            () = stop.soon.cancelled() => end = End::Signal,
        }
    }
    // Asks what is left of the tree to end.
    drop(control);
    if status.is_none() {
        status = timeout(SIGNAL_GRACE, &mut exited).await.ok().and_then(Result::ok).and_then(Result::ok);
    }
    let _ = timeout(DRAIN, output.end).await;
    let _ = tokio::task::spawn_blocking(move || {
        let _ = tap.sender.send(Piece::Finish);
        watcher.join()
    })
    .await;
    lock(&watch).end(end, Clock::System.now_ms());
    let made = so_far(end);
    if let Some(path) = &report {
        write(path, &made)?;
    }
    Ok(Watched { report: made, exit: exit_code(status) })
}

struct Started {
    child: std::process::Child,
    stdin: File,
    stdout: File,
    /// Its drop ends the tree.
    control: Option<std::io::PipeWriter>,
}

fn start(settings: &StdioSettings) -> Result<Started, Failure> {
    let program = settings.program.to_string_lossy().into_owned();
    let failed = |error: std::io::Error| Failure::new(format!("the command {program} cannot be started: {error}"));
    let (mut command, control) = upstream::command(settings).map_err(failed)?;
    // What the server writes to stderr goes where it went without us.
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().map_err(failed)?;
    let control = control.map(|(_, writer)| writer);
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => {
            let (stdin, stdout) = (File::from(OwnedFd::from(stdin)), File::from(OwnedFd::from(stdout)));
            Ok(Started { child, stdin, stdout, control })
        }
        _ => Err(Failure::new("the server's stdin and stdout cannot be opened")),
    }
}

/// Our own stdin and stdout without a buffer that would hold half a line back.
fn own_streams() -> Result<(File, File), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("stdin and stdout cannot be used: {error}"));
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let stdout = std::io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    Ok((stdin.into(), stdout.into()))
}

/// Pumps on a thread of its own, since a read of a terminal or a pipe cannot be taken back.
fn pump(mut pump: Pump, tap: Tap) -> Pumped {
    let (ended, end) = oneshot::channel();
    let came_to_its_end = Arc::new(AtomicBool::new(false));
    let told = came_to_its_end.clone();
    std::thread::spawn(move || {
        let direction = pump.direction;
        // Known before the other side can see the end and act on it.
        told.store(pump.run(&tap), Ordering::SeqCst);
        drop(pump);
        let _ = tap.sender.send(Piece::Closed(direction, Clock::System.now_ms()));
        let _ = ended.send(());
    });
    Pumped { came_to_its_end, end }
}

/// A direction that is being pumped.
struct Pumped {
    /// True once the source has ended, which is not the same as a target that is gone.
    came_to_its_end: Arc<AtomicBool>,
    end: oneshot::Receiver<()>,
}

fn follow(watch: &Mutex<Watch>, pieces: &Receiver<Piece>, queued: &AtomicUsize) {
    while let Ok(piece) = pieces.recv() {
        if matches!(piece, Piece::Finish) {
            return;
        }
        lock(watch).take(&piece);
        queued.fetch_sub(piece.weight(), Ordering::Relaxed);
    }
}

fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whole or not at all: a reader never sees half a report.
fn write(path: &Path, report: &Report) -> Result<(), Failure> {
    let draft = path.with_extension(format!("{}.part", std::process::id()));
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(report.json().as_bytes()))
        .and_then(|()| std::fs::rename(&draft, path));
    written.map_err(|error| Failure::new(format!("{}: the report cannot be written: {error}", path.display())))
}

fn exit_code(status: Option<ExitStatus>) -> u8 {
    let Some(status) = status else { return 128 + 15 };
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}
