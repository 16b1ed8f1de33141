//! Real children: shell scripts that speak just enough of the protocol.

use crate::model::revision::Revision;
use std::path::Path;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::super::{
    CallError, Declared, LegLimits, Request, RestartSettings, Secret, Status, StdioSettings, Transport, Upstream,
    UpstreamSettings,
};
use super::{call, down, limits, lost, not_started, raw, ready, result, run, soon, status, tool_names};
use crate::engine::client::ClientContext;

/// Answers `initialize`, lists tools on two pages, dies or hangs on demand, and says what it sees of its environment.
pub(super) const SERVER: &str = r#"
starts=$(cat "$LEDGER" 2>/dev/null | wc -l | tr -d ' ')
echo start >>"$LEDGER"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) say '{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"sh"},"instructions":"use sh"}' ;;
    *'"tools/list"'*'"cursor":"two"'*) say '{"tools":[{"name":"die","x":1.0},{"nameless":1},{"name":"start'"$starts"'"}]}' ;;
    *'"tools/list"'*) say '{"tools":[{"name":"echo"}],"nextCursor":"two"}' ;;
    *'"name":"die"'*) kill -9 $$ ;;
    *'"name":"hang"'*) ;;
    *'"name":"close"'*) exec >/dev/null ;;
    *'"name":"change"'*) starts=changed; echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; say '{}' ;;
    *'"name":"env"'*) say "{\"canary\":\"$CANARY\",\"cargo\":\"$CARGO_MANIFEST_DIR\",\"path\":\"${PATH:+set}\"}" ;;
    *'"tools/call"'*) echo "a stray line"; say '{"content":[]}' ;;
  esac
done
"#;

pub(super) fn script(text: &str, ledger: &Path) -> StdioSettings {
    let mut stdio = StdioSettings::new("/bin/sh", vec!["-c".into(), text.into()]);
    stdio.guard = Vec::new();
    stdio.env.insert("LEDGER".to_owned(), Secret::new(ledger.to_str().unwrap()));
    stdio.kill_grace = Duration::from_millis(200);
    stdio
}

pub(super) fn settings(stdio: StdioSettings) -> UpstreamSettings {
    let mut settings = UpstreamSettings::new("sh", Transport::Stdio(stdio));
    settings.limits = limits();
    settings.restart = RestartSettings { initial_delay: Duration::from_millis(1), ..RestartSettings::default() };
    settings
}

fn start(text: &str) -> (Upstream, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let upstream = Upstream::start(settings(script(text, &dir.path().join("ledger"))));
    (upstream, dir)
}

#[tokio::test]
async fn a_child_is_started_listed_called_and_ended() {
    let (upstream, _dir) = start(SERVER);
    let Status::Ready(facts) = soon(upstream.first_start()).await else { panic!("not ready") };
    assert_eq!(facts.revision, Revision::V2025_03_26);
    assert_eq!(facts.instructions.as_deref(), Some("use sh"));
    assert_eq!(tool_names(&upstream), ["echo", "die", "start0"]);
    assert_eq!(upstream.tools().borrow().tools[1].raw.get(), r#"{"name":"die","x":1.0}"#);
    assert_eq!(result(run(&upstream, call("echo", "{}")).await), r#"{"content":[]}"#);
    soon(upstream.shutdown()).await;
    assert!(matches!(&*upstream.status().borrow(), Status::Stopped));
    assert!(not_started(run(&upstream, call("echo", "{}")).await).contains("stopped"));
}

#[tokio::test]
async fn a_death_in_a_call_settles_all_calls_at_once_and_the_next_call_works() {
    let (upstream, _dir) = start(SERVER);
    ready(&upstream).await;
    let hanging = {
        let upstream = upstream.clone();
        tokio::spawn(async move { run(&upstream, call("hang", "{}")).await })
    };
    // Both are written in this order: a round trip proves that the first one has left.
    tokio::task::yield_now().await;
    result(run(&upstream, call("echo", "{}")).await);
    lost(run(&upstream, call("die", "{}")).await);
    lost(soon(hanging).await.unwrap());
    result(run(&upstream, call("echo", "{}")).await);
    assert_eq!(tool_names(&upstream), ["echo", "die", "start1"], "it is another process");
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    let (upstream, _dir) = start(SERVER);
    ready(&upstream).await;
    let mut tools = upstream.tools();
    let generation = tools.borrow_and_update().generation;
    result(run(&upstream, call("change", "{}")).await);
    soon(tools.wait_for(|snapshot| snapshot.generation > generation)).await.unwrap();
    assert_eq!(tool_names(&upstream), ["echo", "die", "startchanged"]);
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn a_hanging_handshake_is_given_up_and_calls_do_not_wait_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(script("echo x >>\"$LEDGER\"; while read -r line; do :; done", &dir.path().join("l")));
    settings.limits = LegLimits {
        handshake_timeout: Duration::from_millis(100),
        start_timeout: Duration::from_millis(50),
        ..limits()
    };
    let upstream = Upstream::start(settings);
    not_started(run(&upstream, call("echo", "{}")).await);
    assert!(down(&upstream).await.contains("was not up after 100 ms"));
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn a_missing_command_and_an_early_exit_say_so() {
    let missing = StdioSettings { guard: Vec::new(), ..StdioSettings::new("/nonexistent/server", Vec::new()) };
    let upstream = Upstream::start(settings(missing));
    assert!(down(&upstream).await.contains("/nonexistent/server was not found"));
    let (upstream, _dir) = start("exit 3");
    assert_eq!(down(&upstream).await, "its process ended with exit code 3");
    let (upstream, dir) = start("exit 3");
    soon(upstream.first_start()).await;
    let mut lost_dir = script("", dir.path());
    lost_dir.cwd = Some(dir.path().join("missing"));
    let upstream = Upstream::start(settings(lost_dir));
    assert!(down(&upstream).await.contains("does not exist"));
}

#[tokio::test]
async fn the_child_sees_the_allowed_environment_only() {
    let dir = tempfile::tempdir().unwrap();
    let mut stdio = script(SERVER, &dir.path().join("ledger"));
    stdio.env.insert("CANARY".to_owned(), Secret::new("yellow"));
    let upstream = Upstream::start(settings(stdio));
    let seen = result(run(&upstream, call("env", "{}")).await);
    assert_eq!(seen, r#"{"canary":"yellow","cargo":"","path":"set"}"#);
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "the test proves nothing without it");
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn a_cancelled_call_that_waits_for_the_server_was_not_dispatched() {
    let (upstream, _dir) = start("while read -r line; do :; done");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let answer = soon(upstream.call(call("echo", "{}"), cancel, |_| {})).await;
    assert_eq!(answer.unwrap_err(), CallError::Cancelled { dispatched: false });
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn a_child_that_ignores_the_end_of_stdin_and_sigterm_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("trap '' TERM; echo $$ >\"$LEDGER.pid\"; {SERVER} while :; do sleep 1; done");
    let mut stdio = script(&text, &dir.path().join("ledger"));
    stdio.close_grace = Duration::from_millis(50);
    let upstream = Upstream::start(settings(stdio));
    ready(&upstream).await;
    let pid = super::guard::pid_in(&dir.path().join("ledger.pid"));
    soon(upstream.shutdown()).await;
    assert!(!super::guard::lives(pid));
}

#[tokio::test]
async fn dropping_the_last_handle_ends_the_server() {
    let (upstream, _dir) = start(SERVER);
    ready(&upstream).await;
    let mut status = upstream.status();
    drop(upstream);
    soon(status.wait_for(|status| matches!(status, Status::Stopped))).await.unwrap();
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_started_at_growing_intervals() {
    let (upstream, dir) = start("echo x >>\"$LEDGER\"; exit 1");
    let slow =
        |status: &Status| matches!(status, Status::Down { retry_in, .. } if *retry_in >= Duration::from_millis(16));
    status(&upstream, slow).await;
    let starts = std::fs::read_to_string(dir.path().join("ledger")).unwrap().lines().count();
    assert_eq!(starts, 5, "after 1, 2, 4 and 8 ms");
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn a_server_that_has_answered_a_call_is_started_again_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(script(SERVER, &dir.path().join("ledger")));
    // Any pause would be longer than the test.
    settings.restart.initial_delay = Duration::from_secs(3_600);
    settings.restart.max_delay = Duration::from_secs(3_600);
    settings.restart.max_delay_wanted = Duration::from_secs(3_600);
    let upstream = Upstream::start(settings);
    for _ in 0..3 {
        result(run(&upstream, call("echo", "{}")).await);
        lost(run(&upstream, call("die", "{}")).await);
    }
    // One that only dies waits.
    ready(&upstream).await;
    lost(run(&upstream, call("die", "{}")).await);
    let waits = |status: &Status| matches!(status, Status::Down { retry_in, .. } if retry_in.as_secs() == 3_600);
    status(&upstream, waits).await;
    soon(upstream.shutdown()).await;
}

#[tokio::test]
async fn a_waiting_call_cuts_the_back_off_short() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("if [ ! -e \"$LEDGER\" ]; then echo x >\"$LEDGER\"; exit 1; fi\n{SERVER}");
    let mut settings = settings(script(&text, &dir.path().join("ledger")));
    settings.restart.initial_delay = Duration::from_secs(3_600);
    settings.restart.max_delay = Duration::from_secs(3_600);
    settings.restart.max_delay_wanted = Duration::from_millis(1);
    settings.restart.max_delay_wanted_failing = Duration::from_millis(1);
    let upstream = Upstream::start(settings);
    down(&upstream).await;
    result(run(&upstream, call("echo", "{}")).await);
    soon(upstream.shutdown()).await;
}

/// A server whose client says who it is only when the test lets it; a call of `hang` is answered on demand.
fn start_before_client() -> (Upstream, tempfile::TempDir, impl Fn()) {
    let held = r#"held=$id; printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n' "$id" ;;
    *'"notifications/go"'*) id=$held; say '{"content":[]}' ;;"#;
    let hang = r#"*'"name":"hang"'*) "#;
    let text = SERVER.replace(&format!("{hang};;"), &format!("{hang}{held}"));
    assert!(text.contains("notifications/go"));
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(script(&text, &dir.path().join("ledger")));
    let (known, client) = watch::channel(None);
    settings.declared = Declared::Awaited(client, Duration::from_millis(1));
    let come = move || {
        let client = ClientContext { capabilities: Some(raw(r#"{"roots":{}}"#)), ..ClientContext::default() };
        known.send_replace(Some(client.into()));
    };
    (Upstream::start(settings), dir, come)
}

#[tokio::test]
async fn a_server_that_did_nothing_yet_is_started_anew_for_its_late_client() {
    let (upstream, _dir, come) = start_before_client();
    ready(&upstream).await;
    come();
    let mut tools = upstream.tools();
    soon(tools.wait_for(|tools| tools.tools.iter().any(|tool| tool.name == "start1"))).await.unwrap();
}

#[tokio::test]
async fn a_call_that_runs_when_the_client_comes_late_is_not_lost() {
    let (upstream, _dir, come) = start_before_client();
    ready(&upstream).await;
    let (goes, mut going) = mpsc::unbounded_channel();
    let running = tokio::spawn({
        let upstream = upstream.clone();
        async move { upstream.call(call("hang", "{}"), CancellationToken::new(), move |_| goes.send(()).unwrap()).await }
    });
    soon(going.recv()).await.unwrap();
    come();
    for _ in 0..100 {
        // What the news leads to happens in other tasks of this thread.
        tokio::task::yield_now().await;
    }
    soon(upstream.notify(&Request::new("notifications/go"))).await;
    result(soon(running).await.unwrap());
    assert!(tool_names(&upstream).contains(&"start0".to_owned()));
}
