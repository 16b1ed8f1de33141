//! Processes a careless tool leaves behind, and the sudden death of the server itself. Deliberately waits for none.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

/// Starts a child in a process group of its own, one in a session of its own where `setsid` exists, and with `orphan`
/// one whose parent has already exited; answers their pids.
pub async fn grandchildren(orphan: bool) -> std::io::Result<Value> {
    let group = quiet("sleep").arg("1000").process_group(0).spawn()?.id();
    let session = quiet("setsid").args(["sleep", "1000"]).spawn().ok().and_then(|child| child.id());
    let mut pids = json!({"group": group, "session": session});
    if orphan {
        let mut shell = quiet("sh");
        // The sleep must not hold the pipe, or reading it would take as long.
        shell.args(["-c", "sleep 1000 >/dev/null & echo $!"]).stdout(Stdio::piped());
        let printed = shell.spawn()?.wait_with_output().await?.stdout;
        pids["orphan"] = json!(String::from_utf8_lossy(&printed).trim().parse::<u32>().ok());
    }
    Ok(pids)
}

/// Ends this process as `kill -9` does: nothing is flushed and nobody is told.
pub fn kill_myself() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
