//! A command whose streams are bytes and not lines, for tests about pipes. Collects nothing.

use std::process::Stdio;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::client::{Place, Target};

/// Starts a stdio server; whoever has its streams decides when they end. Killed when dropped.
pub fn start(target: &Target) -> (Child, ChildStdin, ChildStdout) {
    let Place::Command(argv) = &target.place else { panic!("not a command: {target:?}") };
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).envs(target.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, stdin, stdout)
}
