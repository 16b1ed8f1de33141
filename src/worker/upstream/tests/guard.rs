//! The guard: this test binary is run again as one, and process trees are left to it.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::super::guard::guard_main;
use super::super::{Secret, StdioSettings, Upstream};
use super::child::{SERVER, script, settings};
use super::{call, down, lost, ready, result, run, soon};

const MARK: &str = "TEST_GUARD";
const OWNER: &str = "TEST_OWNER";

/// Is no test by itself: the tests below start it as their guard process.
#[test]
fn acts_as_guard() {
    if std::env::var_os(MARK).is_some() {
        let argv = std::env::args_os().skip_while(|argument| argument != "--").skip(1).collect();
        std::process::exit(guard_main(argv));
    }
}

fn guarded(mut stdio: StdioSettings) -> StdioSettings {
    let own = std::env::current_exe().unwrap();
    stdio.guard = vec![own.into()];
    let arguments = ["--exact", "worker::upstream::tests::guard::acts_as_guard", "--nocapture", "--"];
    stdio.guard.extend(arguments.map(Into::into));
    stdio.env.insert(MARK.to_owned(), Secret::new("1"));
    stdio
}

pub(super) fn pid_in(file: &Path) -> Pid {
    Pid::from_raw(std::fs::read_to_string(file).unwrap().trim().parse().unwrap()).unwrap()
}

/// Whether the process runs (a zombie does not).
pub(super) fn lives(pid: Pid) -> bool {
    match std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        Ok(stat) => !stat.rsplit_once(')').unwrap().1.trim_start().starts_with(['Z', 'X']),
        Err(_) => !Path::new("/proc/self").exists() && rustix::process::test_kill_process(pid).is_ok(),
    }
}

/// Waits until the process is gone; its end sends no signal to us, so that it is looked for.
async fn gone(pid: Pid) {
    soon(async {
        while lives(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A server that outlives its stdin, with a descendant in its group and, where there is `setsid`, one that left the group and ignores SIGTERM.
fn tree(dir: &Path) -> StdioSettings {
    let text = format!(
        "echo $$ >\"$LEDGER.root\"; sleep 600 >/dev/null & echo $! >\"$LEDGER.same\"\n\
         if command -v setsid >/dev/null; then setsid sh -c 'trap \"\" TERM; echo $$ >\"$LEDGER.left\"; while :; do sleep 600; done' >/dev/null & fi\n\
         while [ ! -s \"$LEDGER.left\" ] && command -v setsid >/dev/null; do sleep 0.01; done\n{SERVER}\n\
         while :; do sleep 600; done"
    );
    let mut stdio = guarded(script(&text, &dir.join("ledger")));
    stdio.close_grace = Duration::from_millis(20);
    stdio
}

fn pids(dir: &Path) -> Vec<Pid> {
    ["root", "same", "left"]
        .iter()
        .map(|name| dir.join(format!("ledger.{name}")))
        .filter(|file| file.exists() && (cfg!(target_os = "linux") || !file.ends_with("ledger.left")))
        .map(|file| pid_in(&file))
        .collect()
}

fn parent_of(pid: Pid) -> Pid {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    let parent = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    Pid::from_raw(parent).unwrap()
}

#[tokio::test]
async fn a_guarded_server_works_and_its_whole_tree_ends_with_the_leg() {
    let dir = tempfile::tempdir().unwrap();
    let upstream = Upstream::start(settings(tree(dir.path())));
    ready(&upstream).await;
    result(run(&upstream, call("echo", "{}")).await);
    let pids = pids(dir.path());
    assert!(pids.len() >= 2 && pids.iter().all(|pid| lives(*pid)));
    soon(upstream.shutdown()).await;
    for pid in pids {
        assert!(!lives(pid), "{pid:?} outlived its leg");
    }
}

#[tokio::test]
async fn a_death_under_guard_is_seen_at_once_and_takes_the_tree_along() {
    let dir = tempfile::tempdir().unwrap();
    let upstream = Upstream::start(settings(tree(dir.path())));
    ready(&upstream).await;
    let pids = pids(dir.path());
    lost(run(&upstream, call("die", "{}")).await);
    result(run(&upstream, call("echo", "{}")).await);
    for pid in pids {
        assert!(!lives(pid), "{pid:?} outlived its root");
    }
    soon(upstream.shutdown()).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_death_of_the_guard_takes_the_group_along() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("echo $$ >\"$LEDGER.root\"; sleep 600 & echo $! >\"$LEDGER.same\"; {SERVER}");
    let upstream = Upstream::start(settings(guarded(script(&text, &dir.path().join("ledger")))));
    ready(&upstream).await;
    let pids = pids(dir.path());
    let hanging = {
        let upstream = upstream.clone();
        tokio::spawn(async move { run(&upstream, call("hang", "{}")).await })
    };
    tokio::task::yield_now().await;
    result(run(&upstream, call("echo", "{}")).await);
    rustix::process::kill_process(parent_of(pids[0]), Signal::KILL).unwrap();
    lost(soon(hanging).await.unwrap());
    for pid in pids {
        gone(pid).await;
    }
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn the_guard_does_not_hold_the_servers_stdout_open() {
    let dir = tempfile::tempdir().unwrap();
    let upstream = Upstream::start(settings(tree(dir.path())));
    ready(&upstream).await;
    assert_eq!(lost(run(&upstream, call("close", "{}")).await), "the server closed its stdout");
    result(run(&upstream, call("echo", "{}")).await);
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn the_guard_says_that_a_command_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let mut stdio = guarded(script("", &dir.path().join("ledger")));
    stdio.program = "/nonexistent/server".into();
    let upstream = Upstream::start(settings(stdio));
    assert_eq!(down(&upstream).await, "its command was not found");
    soon(upstream.shutdown()).await;
}

/// Is no test by itself: the test below starts it as the owner of a tree.
#[tokio::test]
async fn acts_as_owner() {
    if let Some(dir) = std::env::var_os(OWNER) {
        let upstream = Upstream::start(settings(tree(Path::new(&dir))));
        ready(&upstream).await;
        println!("\nready");
        std::future::pending::<()>().await;
    }
}

#[tokio::test]
async fn the_tree_ends_when_its_owner_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut owner = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "worker::upstream::tests::guard::acts_as_owner", "--nocapture"])
        .env(OWNER, dir.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    while soon(lines.next_line()).await.unwrap().expect("the owner ended early") != "ready" {}
    let pids = pids(dir.path());
    assert!(pids.len() >= 2 && pids.iter().all(|pid| lives(*pid)));
    owner.start_kill().unwrap();
    owner.wait().await.unwrap();
    for pid in pids {
        gone(pid).await;
    }
}
