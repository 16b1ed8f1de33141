//! Ends what a test started when the test is gone, also after `kill -9`: a small shell that reads a pipe nobody writes to,
//! or asks for a process, then ends the server and removes its folder. Starts nothing.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Whose end it waits for.
pub enum Until {
    /// The returned [`Watcher`] is dropped, or this process ends.
    Dropped,
    /// This process ends.
    Gone(u32),
}

/// The folder holds `pid` (the server) and perhaps `frozen` (processes that stand and could not end by themselves).
const SCRIPT: &str = r#"
if [ "$2" = - ]; then cat >/dev/null; else while kill -0 "$2" 2>/dev/null; do sleep 0.5; done; fi
[ -r "$1/frozen" ] && kill -KILL $(cat "$1/frozen") 2>/dev/null
pid=$(cat "$1/pid" 2>/dev/null)
is_ours() { case "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null || ps -o args= -p "$pid")" in *"$1"*) ;; *) false ;; esac; }
if [ -n "$pid" ] && is_ours "$1"; then
    kill -QUIT "$pid"
    tries=0
    while kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
    is_ours "$1" && kill -KILL "$pid"
fi
rm -rf "$1"
"#;

/// Holds the pipe. Dropped: what it watches over ends.
pub struct Watcher(#[allow(dead_code, reason = "its pipe closes when it is dropped")] Child);

/// Watches over the server whose process and files are in `folder`.
pub fn watch(folder: &Path, until: Until) -> Watcher {
    use std::os::unix::process::CommandExt;
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT, "watcher"]).arg(folder);
    match until {
        Until::Dropped => shell.arg("-").stdin(Stdio::piped()),
        Until::Gone(pid) => shell.arg(pid.to_string()).stdin(Stdio::null()),
    };
    // A signal for the tests' process group is not for it, and it must not keep their outputs open.
    shell.stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/").process_group(0);
    Watcher(shell.spawn().expect("sh"))
}
