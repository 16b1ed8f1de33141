//! A child process of a test: started with its lines collected, awaited by a readiness line, killed when dropped. Ends
//! only the process it started; what that process started itself is the business of `process_tree`.

use std::ffi::OsStr;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{DEADLINE, eventually};

pub struct Process {
    child: Child,
    pid: u32,
    lines: Arc<Lines>,
}

/// Everything the process has printed so far, stdout and stderr apart.
#[derive(Default)]
struct Lines {
    printed: Mutex<Printed>,
    news: Notify,
}

#[derive(Default)]
struct Printed {
    stdout: Vec<String>,
    stderr: Vec<String>,
    closed: u8,
}

impl Process {
    /// Starts the program; its stdin is a pipe, and both outputs are read all the time.
    pub fn start(program: impl AsRef<OsStr>, arguments: &[&str], env: &[(&str, &str)]) -> Process {
        let mut command = Command::new(program);
        command.args(arguments).envs(env.iter().copied());
        Process::start_command(command)
    }

    pub fn start_command(mut command: Command) -> Process {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", command.as_std()));
        let pid = child.id().expect("just started");
        let lines = Arc::<Lines>::default();
        tokio::spawn(lines.clone().collect(child.stdout.take().unwrap(), |printed| &mut printed.stdout));
        tokio::spawn(lines.clone().collect(child.stderr.take().unwrap(), |printed| &mut printed.stderr));
        Process { child, pid, lines }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn take_stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("stdin taken once")
    }

    /// Ends stdin, which asks a stdio server to leave.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for a line on stdout or stderr that contains `part`, and answers it.
    pub async fn line_with(&self, part: &str) -> String {
        self.line_within(part, DEADLINE).await
    }

    /// The same for what takes long.
    pub async fn line_within(&self, part: &str, limit: Duration) -> String {
        let found = async {
            loop {
                let news = self.lines.news.notified();
                {
                    let printed = self.lines.printed.lock().unwrap();
                    let mut all = printed.stdout.iter().chain(&printed.stderr);
                    if let Some(line) = all.find(|line| line.contains(part)) {
                        return Some(line.clone());
                    }
                    if printed.closed == 2 {
                        return None;
                    }
                }
                news.await;
            }
        };
        match timeout(limit, found).await {
            Ok(Some(line)) => line,
            Ok(None) => panic!("it ended without a line with {part:?}:\n{}", self.output()),
            Err(_) => panic!("no line with {part:?}:\n{}", self.output()),
        }
    }

    pub fn stdout(&self) -> String {
        self.lines.printed.lock().unwrap().stdout.join("\n")
    }

    pub fn stderr(&self) -> String {
        self.lines.printed.lock().unwrap().stderr.join("\n")
    }

    fn output(&self) -> String {
        format!("stdout:\n{}\nstderr:\n{}", self.stdout(), self.stderr())
    }

    /// Sends a signal: `Signal::STOP`, `Signal::CONT`, `Signal::TERM`, …
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid as i32).expect("a pid is not 0");
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Stops it (SIGSTOP), and waits until every thread of it stands.
    pub async fn stop(&self) {
        self.signal(Signal::STOP);
        let pid = Pid::from_raw(self.pid as i32).expect("a pid is not 0");
        // Not waited for in the kernel's sense: who awaits the end of the process has to hear of it still.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        eventually("it stands", DEADLINE, || waitid(WaitId::Pid(pid), options).unwrap().is_some()).await;
    }

    /// `kill -9`, and waits until the process is gone.
    pub async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits for the end; panics with the output when it does not come.
    pub async fn exit(&mut self, deadline: Duration) -> ExitStatus {
        match timeout(deadline, self.child.wait()).await {
            Ok(status) => {
                // The readers end with their pipes, unless a grandchild holds these open.
                let _ = timeout(Duration::from_millis(500), self.lines.all_read()).await;
                status.unwrap()
            }
            Err(_) => panic!("still running after {deadline:?}:\n{}", self.output()),
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Lines {
    async fn collect(self: Arc<Lines>, from: impl AsyncRead + Unpin, into: fn(&mut Printed) -> &mut Vec<String>) {
        let mut reader = BufReader::new(from);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            into(&mut self.printed.lock().unwrap()).push(text);
            self.news.notify_waiters();
            line.clear();
        }
        self.printed.lock().unwrap().closed += 1;
        self.news.notify_waiters();
    }

    async fn all_read(&self) {
        loop {
            let news = self.news.notified();
            if self.printed.lock().unwrap().closed == 2 {
                return;
            }
            news.await;
        }
    }
}
