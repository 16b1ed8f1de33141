//! The API against its own description, by somebody else's tool: schemathesis makes requests that the OpenAPI document
//! permits and some that it does not, and holds every answer against the document. Bounded in examples and in time.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use crate::skip_loudly;
use crate::support::program::Setup;
use crate::support::raw_http::Request;
use crate::support::raw_worker::{RawWorker, tool};
use crate::support::{clients_are_set_up, clients_folder};

/// A run takes half a minute where nothing else runs.
const LONGEST: Duration = Duration::from_secs(300);

/// A document can not say that a reason may not be empty once trimmed, or that a cursor is one that the server gave out: a 400
/// for such a request is right. All other checks hold.
const NOT_ASKED: &str = "positive_data_acceptance";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_one_that_the_document_describes() {
    skip_loudly!(clients_are_set_up());
    let program = Setup::new("[auth]\nmode = \"token\"\n").flag("--demo").serve().await;
    let ran = program.setup.cli(&["token", "create", "--principal", "ann", "--scope", "admin"]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    let bearer = format!("Authorization: Bearer {}", ran.stdout.trim());
    // Something is there to be shown.
    let worker = RawWorker::with(&program, ran.stdout.trim());
    worker.register(json!([tool("charge", "at_most_once")])).await;
    for tool in ["demo_echo", "charge"] {
        let params = json!({"name": tool, "arguments": {"message": "x"}, "_meta": {"durable-mcp/wait": 0}});
        let request = Request::modern(program.url(), json!(1), "tools/call", params);
        let answer = request.header("Authorization", bearer.trim_start_matches("Authorization: "));
        assert_eq!(answer.exchange(program.url()).await.status, 200);
    }
    let running = Command::new(clients_folder().join(".venv/bin/schemathesis"))
        .args(["run", &program.at("/api/v1/openapi.json")])
        .args(["--header", &bearer, "--exclude-checks", NOT_ASKED, "--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", "8", "--generation-deterministic", "--request-timeout", "70"])
        .args(["--continue-on-failure", "--no-color"])
        .current_dir(program.setup.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output();
    let output = timeout(LONGEST, running).await.expect("schemathesis ends in time").unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    // It looked at what there is: neither none of it, nor only at refusals of its credential.
    assert!(told.contains("No issues found") || told.contains("Tested: "), "{told}");
    assert!(!told.contains("401 Unauthorized"), "{told}");
    assert!(program.readyz().await == 200 && !program.stderr().contains("panicked"), "{}", program.stderr());
}
