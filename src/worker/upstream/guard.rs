//! The guard: a process of our own binary between us and a server's process tree, which ends the tree when we end, also
//! after a kill -9 of us. Relays no byte: the server inherits its stdin, stdout and stderr. Restarts nothing.
//!
//! It holds the read end of a pipe whose only write end is ours, so that our death is an end of file. The tree stays in
//! the guard's process group, which we can still kill if the guard itself is killed. On Linux it is also the subreaper
//! of the tree: descendants that left the group become its children and are found.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};

/// The hidden subcommand of our binary that is a guard.
pub const SUBCOMMAND: &str = "__guard";
/// Exit code where the command does not exist, as shells have it.
pub const EXIT_NOT_FOUND: i32 = 127;
/// Exit code where the command cannot be executed.
pub const EXIT_NOT_EXECUTABLE: i32 = 126;
const EXIT_USAGE: i32 = 2;

/// What is left of a tree whose root ended by itself gets less time: calls may hang on its open stdout.
const LEFTOVER_GRACE: Duration = Duration::from_millis(250);
/// Rounds of SIGKILL, 50 ms each at most: a tree that forks faster than it dies is given up then.
const KILL_ROUNDS: u32 = 40;

struct Arguments {
    control: u32,
    grace: Duration,
    program: OsString,
    args: Vec<OsString>,
}

/// Runs the guard; `argv` is what follows [`SUBCOMMAND`]: `FD GRACE_MS -- CMD ARGS…`. Returns the exit code for the
/// process: that of CMD, 128 + n after its death by signal n. Must be called before any runtime or thread is started.
pub fn guard_main(argv: Vec<OsString>) -> i32 {
    let Some(arguments) = parse(argv) else {
        eprintln!("durable-mcp: usage: {SUBCOMMAND} FD GRACE_MS -- CMD ARGS...");
        return EXIT_USAGE;
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("durable-mcp: the guard cannot start: {error}");
            return EXIT_USAGE;
        }
    };
    match runtime.block_on(guard(arguments)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("durable-mcp: the guard cannot start: {error}");
            EXIT_USAGE
        }
    }
}

fn parse(argv: Vec<OsString>) -> Option<Arguments> {
    let mut argv = argv.into_iter();
    let control = argv.next()?.to_str()?.parse().ok()?;
    let grace_ms = argv.next()?.to_str()?.parse().ok()?;
    (argv.next()? == "--").then_some(())?;
    let program = argv.next()?;
    Some(Arguments { control, grace: Duration::from_millis(grace_ms), program, args: argv.collect() })
}

async fn guard(arguments: Arguments) -> io::Result<i32> {
    // Opened by name, since only the operating system can vouch for a bare number. The inherited descriptor itself goes
    // on to the tree, which is harmless: a read end keeps no pipe alive.
    let mut control = pipe::Receiver::from_file(
        std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(format!("/dev/fd/{}", arguments.control))?,
    )?;
    // The group is killed as a whole in the end; it must not be the one of a shell that started us by hand.
    if rustix::process::getpgrp() != rustix::process::getpid() {
        rustix::process::setpgid(None, None)?;
    }
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut children = signal(SignalKind::child())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;

    let child = match Command::new(&arguments.program).args(&arguments.args).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("durable-mcp: cannot start {}: {error}", arguments.program.display());
            let missing = error.kind() == io::ErrorKind::NotFound;
            return Ok(if missing { EXIT_NOT_FOUND } else { EXIT_NOT_EXECUTABLE });
        }
    };
    let mut tree = Tree { root: child.id(), root_status: None };
    // Only the tree may hold stdout open, or its end would not be seen as one.
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;

    let grace = loop {
        tokio::select! {
            _ = children.recv() => {
                tree.reap();
                if tree.root_status.is_some() {
                    break arguments.grace.min(LEFTOVER_GRACE);
                }
            }
            // Nothing is ever written to the pipe; it can only end.
            _ = control.read_u8() => break arguments.grace,
            _ = term.recv() => break arguments.grace,
            _ = interrupt.recv() => break arguments.grace,
            _ = hang_up.recv() => break arguments.grace,
        }
    };
    if !tree.reap() {
        tree.signal(Signal::TERM);
        let end = Instant::now() + grace;
        loop {
            tokio::select! {
                _ = children.recv() => if tree.reap() { break },
                () = sleep_until(end) => break,
            }
        }
    }
    for _ in 0..KILL_ROUNDS {
        if tree.reap() {
            break;
        }
        tree.signal(Signal::KILL);
        let _ = timeout(Duration::from_millis(50), children.recv()).await;
    }
    Ok(tree.root_status.map_or(128 + Signal::KILL.as_raw(), exit_code))
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// The processes below the guard.
struct Tree {
    root: u32,
    root_status: Option<ExitStatus>,
}

impl Tree {
    /// Collects all that have ended; returns whether none is left.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() as u32 == self.root => {
                    self.root_status = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                // No child at all; on Linux, as the subreaper, that means no descendant either.
                Err(_) => return cfg!(target_os = "linux") || self.group_is_gone(),
            }
        }
    }

    /// Elsewhere than on Linux orphans are not ours to wait for, and the group always holds the guard itself.
    fn group_is_gone(&self) -> bool {
        false
    }

    fn signal(&self, signal: Signal) {
        let found = descendants();
        for pid in &found {
            let _ = rustix::process::kill_process(*pid, signal);
        }
        if found.is_empty() {
            // No /proc to look into. The guard survives a SIGTERM, and a SIGKILL is the last thing it does.
            let _ = rustix::process::kill_current_process_group(signal);
        }
    }
}

/// Finds all processes below this one, through /proc where there is one.
fn descendants() -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut parents: Vec<(i32, i32)> = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // "pid (name) state ppid …", and the name may hold any character.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if let Some(parent) = parent.and_then(|parent| parent.parse().ok()) {
            parents.push((pid, parent));
        }
    }
    let mut below = vec![rustix::process::getpid().as_raw_nonzero().get()];
    let mut next = 0;
    while next < below.len() {
        let parent = below[next];
        below.extend(parents.iter().filter(|(_, its_parent)| *its_parent == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    below.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}
