//! Commands that are real programs: what they get, what their end means, and that nothing of them is left.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::*;
use crate::model::decide::FailureKind;
use crate::model::id::ExecutionId;

fn sh(script: &str) -> CommandTool {
    let mut tool = CommandTool::new("sh", vec!["-c".into(), script.into()]);
    tool.guard = Vec::new();
    tool
}

fn job(arguments: &str) -> Job {
    Job {
        attempt: 2,
        fencing_token: 7,
        effect_key: ExecutionId::new(1, &[2; 10]),
        ..Job::of_nobody(ExecutionId::new(1, &[1; 10]), "t", arguments)
    }
}

async fn run(tool: &CommandTool, job: Job) -> Outcome {
    tool.run(job, &|_| {}).await
}

async fn result_text(tool: &CommandTool, arguments: &str) -> String {
    match run(tool, job(arguments)).await {
        Outcome::Result(result) => result.to_string(),
        other => panic!("no result: {other:?}"),
    }
}

async fn result(tool: &CommandTool, arguments: &str) -> Value {
    serde_json::from_str(&result_text(tool, arguments).await).unwrap()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

async fn failure(tool: &CommandTool) -> (FailureKind, String) {
    match run(tool, job("{}")).await {
        Outcome::Failed(failure) => (failure.kind, failure.error.code),
        other => panic!("an answer: {other:?}"),
    }
}

#[tokio::test]
async fn stdout_is_the_answer_and_stdin_the_arguments_byte_for_byte() {
    let arguments = r#"{ "n":1.0, "big":123456789012345678901234567890, "text":"é\u00e9\n" }"#;
    let result = result(&sh("cat"), arguments).await;
    assert_eq!(result, json!({ "content": [{ "type": "text", "text": arguments }] }));
}

#[tokio::test]
async fn a_whole_result_on_stdout_passes_byte_for_byte_on_one_line() {
    let printed = r#"{"content":[{"type":"text","text":"a\nb","x":1.0}],"_meta":{"n":10000000000000000000000.50}}"#;
    assert_eq!(result_text(&sh(&format!("printf '%s\n' '{}'", printed)), "{}").await, printed);
    let pretty = "{\n  \"content\": [],\n  \"structuredContent\": {\"n\": 1.0}\n}\n";
    let got = result_text(&sh(&format!("printf '%s' '{pretty}'")), "{}").await;
    assert_eq!(got, r#"{   "content": [],   "structuredContent": {"n": 1.0} }"#);
}

#[tokio::test]
async fn structured_content_alone_gets_its_text_as_content() {
    let got = result(&sh(r#"echo '{"structuredContent":{"n":1.50}}'"#), "{}").await;
    assert_eq!(text(&got), r#"{"n":1.50}"#);
    assert_eq!(got["structuredContent"], json!({ "n": 1.5 }));
}

#[tokio::test]
async fn json_that_is_no_tool_result_is_text() {
    for printed in [r#"{"a":1}"#, r#"[1]"#, r#"{"content":"x"}"#, r#"{"content":["x"]}"#, r#"{"content":[],"#, "7"] {
        let got = result(&sh(&format!("printf '%s' '{printed}'")), "{}").await;
        assert_eq!(got, json!({ "content": [{ "type": "text", "text": printed }] }));
    }
}

#[tokio::test]
async fn an_output_schema_makes_structured_content_of_an_object_and_an_error_of_text() {
    let mut tool = sh(r#"printf '{"n":1.0}'"#);
    tool.has_output_schema = true;
    assert_eq!(
        result_text(&tool, "{}").await,
        r#"{"content":[{"type":"text","text":"{\"n\":1.0}"}],"structuredContent":{"n":1.0}}"#
    );
    let mut tool = sh("echo hello");
    tool.has_output_schema = true;
    let got = result(&tool, "{}").await;
    assert_eq!(got["isError"], json!(true));
    assert!(text(&got).contains("hello"));
    assert!(got.get("structuredContent").is_none());
}

#[tokio::test]
async fn output_that_is_not_utf_8_is_still_an_answer() {
    assert_eq!(text(&result(&sh(r"printf 'a\377b'"), "{}").await), "a\u{fffd}b");
}

#[tokio::test]
async fn an_exit_code_is_an_error_result_with_both_outputs() {
    let got = result(&sh("echo out; echo why >&2; exit 3"), "{}").await;
    assert_eq!(got["isError"], json!(true));
    assert_eq!(text(&got), "The command failed with exit code 3.\nstderr:\nwhy\nstdout:\nout");
}

#[tokio::test]
async fn an_error_result_of_its_own_passes_with_an_exit_code() {
    let printed = r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#;
    assert_eq!(result_text(&sh(&format!("echo '{printed}'; exit 1")), "{}").await, printed);
    let claims_success = r#"{"content":[{"type":"text","text":"fine"}]}"#;
    let got = result(&sh(&format!("echo '{claims_success}'; exit 1")), "{}").await;
    assert_eq!(got["isError"], json!(true));
}

#[tokio::test]
async fn only_the_end_of_a_long_stderr_is_kept() {
    let mut tool = sh("i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1");
    tool.limits.stderr_bytes = 100;
    let got = result(&tool, "{}").await;
    let text = text(&got);
    assert!(text.len() < 200, "{text}");
    assert!(text.ends_with("line 1999"), "{text}");
}

#[tokio::test]
async fn a_missing_program_never_started() {
    for program in ["durable-mcp-no-such-program", "./no-such-program", "/no/such/program"] {
        let mut tool = CommandTool::new(program, Vec::new());
        assert_eq!(failure(&tool).await, (FailureKind::NotStarted, "command_not_found".into()), "{program}");
        tool.guard = Vec::new();
        assert_eq!(failure(&tool).await, (FailureKind::NotStarted, "command_not_found".into()), "{program}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_executable_never_started() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plain"), "x").unwrap();
    for program in ["./plain", "./"] {
        let mut tool = CommandTool::new(program, Vec::new());
        tool.cwd = Some(folder.path().into());
        assert_eq!(failure(&tool).await, (FailureKind::NotStarted, "command_not_executable".into()), "{program}");
    }
}

#[tokio::test]
async fn a_script_whose_interpreter_is_missing_never_started() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut tool = CommandTool::new(script, Vec::new());
    tool.guard = Vec::new();
    assert_eq!(failure(&tool).await.0, FailureKind::NotStarted);
}

#[tokio::test]
async fn a_missing_working_directory_never_started() {
    let mut tool = sh("true");
    tool.cwd = Some("/no/such/folder".into());
    assert_eq!(failure(&tool).await, (FailureKind::NotStarted, "command_not_startable".into()));
}

#[tokio::test]
async fn a_relative_program_is_found_in_its_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("tool");
    std::fs::write(&script, "#!/bin/sh\npwd\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut tool = CommandTool::new("./tool", Vec::new());
    tool.guard = Vec::new();
    tool.cwd = Some(folder.path().into());
    let here = folder.path().canonicalize().unwrap();
    assert_eq!(text(&result(&tool, "{}").await).trim_end(), here.to_str().unwrap());
}

#[tokio::test]
async fn a_death_by_signal_is_a_lost_attempt() {
    assert_eq!(failure(&sh("kill -9 $$")).await, (FailureKind::Lost, "command_killed".into()));
    // As a shell, or the guard, reports the death of what it ran.
    assert_eq!(failure(&sh("exit 137")).await, (FailureKind::Lost, "command_killed".into()));
}

#[tokio::test]
async fn too_much_output_stops_the_command_and_is_an_error_result() {
    let mut tool = sh("while :; do echo 0123456789; done");
    tool.limits.stdout_bytes = 1000;
    let got = result(&tool, "{}").await;
    assert_eq!(got["isError"], json!(true));
    assert!(text(&got).contains("more than 1000 bytes"));
    // Exactly the limit is not too much, one byte more is, however soon the command ends.
    let mut tool = sh("printf 0123456789");
    tool.limits.stdout_bytes = 10;
    assert_eq!(text(&result(&tool, "{}").await), "0123456789");
    tool.limits.stdout_bytes = 9;
    assert_eq!(result(&tool, "{}").await["isError"], json!(true));
}

#[tokio::test]
async fn a_command_that_reads_nothing_of_its_arguments_still_answers() {
    let arguments = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(text(&result(&sh("exec 0<&-; echo done"), &arguments).await), "done\n");
}

#[tokio::test]
async fn a_command_that_talks_while_it_reads_does_not_block() {
    let arguments = format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 20));
    assert_eq!(text(&result(&sh("tee /dev/stderr"), &arguments).await), arguments);
}

#[tokio::test]
async fn it_learns_keys_and_token_and_none_of_our_secrets() {
    let mut tool = sh("env");
    tool.env.insert("GIVEN".into(), Secret::new("given"));
    tool.env.insert("DURABLE_MCP_ATTEMPT".into(), Secret::new("forged"));
    let got = result(&tool, "{}").await;
    let lines: Vec<&str> = text(&got).lines().collect();
    let job = job("{}");
    for expected in [
        format!("DURABLE_MCP_IDEMPOTENCY_KEY={}", job.effect_key),
        format!("DURABLE_MCP_EXECUTION_ID={}", job.id),
        "DURABLE_MCP_FENCING_TOKEN=7".into(),
        "DURABLE_MCP_ATTEMPT=2".into(),
        "GIVEN=given".into(),
    ] {
        assert!(lines.contains(&expected.as_str()), "{expected} in {lines:?}");
    }
    // Cargo sets variables for tests, which stand for our secrets; the shell itself adds some.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")));
    let shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    for line in lines {
        let name = line.split('=').next().unwrap();
        let allowed = INHERITED.contains(&name)
            || shell.contains(&name)
            || name.starts_with("LC_")
            || name.starts_with("DURABLE_MCP_")
            || name == "GIVEN";
        assert!(allowed, "{name} was inherited");
    }
}

#[tokio::test]
async fn a_key_argument_is_filled_in_and_a_given_one_is_kept() {
    let mut tool = sh("cat");
    tool.key_argument = Some("request_id".into());
    let key = job("{}").effect_key;
    assert_eq!(text(&result(&tool, r#"{"a":1.0}"#).await), format!(r#"{{"a":1.0,"request_id":"{key}"}}"#));
    assert_eq!(text(&result(&tool, r#"{"request_id": "mine"}"#).await), r#"{"request_id": "mine"}"#);
}

/// A command with a grandchild, both deaf to SIGTERM. The pipe ends when the last of them is gone.
async fn stubborn(folder: &tempfile::TempDir) -> (CommandTool, PathBuf) {
    let fifo = folder.path().join("alive");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut tool = sh("trap '' TERM; exec 3>alive; sleep 600 & echo ready >&3; wait");
    tool.cwd = Some(folder.path().into());
    tool.limits.kill_grace = Duration::from_millis(20);
    (tool, fifo)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn ready(fifo: PathBuf) -> BufReader<File> {
    blocking(move || {
        let mut reader = BufReader::new(File::open(fifo).unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        reader
    })
    .await
}

async fn all_gone(mut reader: BufReader<File>) {
    blocking(move || reader.read_to_end(&mut Vec::new()).unwrap()).await;
}

#[tokio::test]
async fn a_cancel_ends_the_whole_process_tree() {
    let folder = tempfile::tempdir().unwrap();
    let (tool, fifo) = stubborn(&folder).await;
    let job = job("{}");
    let cancel = job.cancel.clone();
    let (outcome, ()) = tokio::join!(run(&tool, job), async {
        let alive = ready(fifo).await;
        cancel.cancel();
        all_gone(alive).await;
    });
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.kind, failure.error.code.as_str()), (FailureKind::Lost, "command_stopped"));
}

#[tokio::test]
async fn a_dropped_attempt_ends_the_whole_process_tree() {
    let folder = tempfile::tempdir().unwrap();
    let (tool, fifo) = stubborn(&folder).await;
    let running = tokio::spawn(async move { run(&tool, job("{}")).await });
    let alive = ready(fifo).await;
    running.abort();
    all_gone(alive).await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut tool, fifo) = stubborn(&folder).await;
    tool.args = vec!["-c".into(), "exec 3>alive; sleep 600 & echo ready >&3; echo done".into()];
    let (got, ()) = tokio::join!(result(&tool, "{}"), async { all_gone(ready(fifo).await).await });
    assert_eq!(text(&got), "done\n");
}

#[tokio::test]
async fn a_call_cancelled_before_its_start_never_started() {
    let job = job("{}");
    job.cancel.cancel();
    let Outcome::Failed(failure) = run(&sh("echo ran"), job).await else { panic!("ran") };
    assert_eq!(failure.kind, FailureKind::NotStarted);
}

/// The same under a guard: this test binary, run again. Its harness adds words of its own to stdout.
fn guarded(mut tool: CommandTool) -> CommandTool {
    let own = std::env::current_exe().unwrap();
    tool.guard = vec![own.into()];
    let arguments = ["--exact", "worker::upstream::tests::guard::acts_as_guard", "--nocapture", "--"];
    tool.guard.extend(arguments.map(OsString::from));
    tool.env.insert("TEST_GUARD".into(), Secret::new("1"));
    tool
}

#[tokio::test]
async fn a_guarded_command_answers_as_an_unguarded_one() {
    let got = result(&guarded(sh("cat; exit 3")), r#"{"a":1.0}"#).await;
    assert!(text(&got).starts_with("The command failed with exit code 3."), "{got}");
    assert!(text(&got).contains(r#"{"a":1.0}"#), "{got}");
    assert_eq!(failure(&guarded(sh("kill -9 $$"))).await, (FailureKind::Lost, "command_killed".into()));
}

#[tokio::test]
async fn a_guarded_script_whose_interpreter_is_missing_never_started() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let tool = guarded(CommandTool::new(script, Vec::new()));
    assert_eq!(failure(&tool).await, (FailureKind::NotStarted, "command_not_startable".into()));
    let got = result(&guarded(sh("exit 127")), "{}").await;
    assert_eq!(got["isError"], json!(true));
}

#[tokio::test]
async fn a_cancel_ends_a_guarded_process_tree() {
    let folder = tempfile::tempdir().unwrap();
    let (tool, fifo) = stubborn(&folder).await;
    let tool = guarded(tool);
    let job = job("{}");
    let cancel = job.cancel.clone();
    let (outcome, ()) = tokio::join!(run(&tool, job), async {
        let alive = ready(fifo).await;
        cancel.cancel();
        all_gone(alive).await;
    });
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.kind, failure.error.code.as_str()), (FailureKind::Lost, "command_stopped"));
}

#[test]
fn a_description_becomes_a_tool_object_with_its_schemas_byte_for_byte() {
    let definition = Definition {
        name: "thumbnail".into(),
        description: Some("Makes it \"small\".".into()),
        input_schema: Some(
            "{\n\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"number\",\"maximum\":1.0}}}".into(),
        ),
        annotations: Some(r#"{"idempotentHint":true}"#.into()),
        ..Definition::default()
    };
    assert_eq!(
        definition.tool_object().unwrap().get(),
        concat!(
            r#"{"name":"thumbnail","description":"Makes it \"small\".","inputSchema":{ "type":"object","#,
            r#""properties":{"n":{"type":"number","maximum":1.0}}},"annotations":{"idempotentHint":true}}"#
        )
    );
    let bare = Definition { name: "t".into(), ..Definition::default() };
    assert_eq!(bare.tool_object().unwrap().get(), r#"{"name":"t","inputSchema":{"type":"object"}}"#);
}

#[test]
fn a_schema_that_is_none_of_objects_is_refused() {
    let with = |input: &str| Definition { name: "t".into(), input_schema: Some(input.into()), ..Definition::default() };
    let codes: Vec<_> = ["[]", "{", r#"{"type":"array"}"#, "{}"]
        .into_iter()
        .map(|text| with(text).tool_object().unwrap_err().code())
        .collect();
    assert_eq!(
        codes,
        ["definition_not_object", "definition_not_object", "definition_not_of_objects", "definition_not_of_objects"]
    );
}
