//! Faults of ours as Sentry gets them: one event for one fault, with the id that the client was told, and nothing of what
//! the client sent. And the log of the same.

use serde_json::{Value, json};

use crate::cases_scene::{Caller, execution, id_of};
use crate::support::program::Setup;
use crate::support::stores::lose_execution;
use crate::support::{DEADLINE, eventually};
use crate::telemetry_scene::Collector;

#[tokio::test(flavor = "multi_thread")]
async fn an_internal_error_is_told_once_with_the_clients_id_and_no_payload() {
    let sentry = Collector::start().await;
    let dsn = sentry.url().replace("http://", "http://publickey@") + "/42";
    let setup = Setup::new(&format!("[telemetry]\nsentry_dsn = \"{dsn}\"\n")).flag("--demo");
    let mut program = setup.serve().await;
    let caller = Caller::modern(program.url());
    let done = caller.keyed("canary-key", "demo_echo", json!({"message": "canary-argument"})).await;
    assert_eq!(execution(&done)["state"], "completed");
    program.sigterm().await;
    assert_eq!(sentry.envelopes().len(), 0, "nothing went wrong so far");

    lose_execution(&setup.store_url(), &id_of(&done)).await;
    let mut program = setup.serve().await;
    let caller = Caller::modern(program.url());
    let answer = caller.keyed("canary-key", "demo_echo", json!({"message": "canary-argument"})).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let fault = answer["error"]["data"]["fault"].as_str().unwrap_or_else(|| panic!("{answer}"));
    eventually("sentry was told", DEADLINE, || !sentry.envelopes().is_empty()).await;
    program.sigterm().await;

    let told = sentry.envelopes();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].path, "42");
    assert!(told[0].auth.contains("sentry_key=publickey"), "{told:?}");
    let event = told[0].body.lines().find_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        value.get("tags").is_some().then_some(value)
    });
    let event = event.unwrap_or_else(|| panic!("no event: {told:?}"));
    // The level is `error` where none is written.
    assert_eq!((event.get("level"), &event["tags"]["fault"]), (None, &json!(fault)), "{event}");
    assert!(event["message"].as_str().unwrap().starts_with("internal fault at src/"), "{event}");
    assert!(event["release"].as_str().unwrap().starts_with("durable-mcp@"), "{event}");
    for canary in ["canary-argument", "canary-key"] {
        assert!(!sentry.heard_of(canary), "{told:?}");
    }
    // Who reads the log finds the whole story under the same id.
    assert!(program.stderr().contains(fault), "{}", program.stderr());
    assert!(!program.stderr().contains("canary-argument"), "{}", program.stderr());
    let shown = setup.cli(&["config", "show"]).await;
    assert!(shown.stdout.contains("sentry_dsn = \"***\""), "{}", shown.stdout);
    assert!(!shown.stdout.contains("publickey"), "{}", shown.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_dsn_is_said_at_the_start() {
    let setup = Setup::new("[telemetry]\nsentry_dsn = \"http://127.0.0.1/secretpart\"\n");
    let mut process = setup.start_serve(0);
    let status = process.exit(DEADLINE).await;
    assert_eq!(status.code(), Some(2), "{}", process.stderr());
    assert!(process.stderr().contains("telemetry.sentry_dsn"), "{}", process.stderr());
    assert!(!process.stderr().contains("secretpart"), "{}", process.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_the_log_name_the_trace_and_the_execution() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    for format in ["json", "text"] {
        let log = format!("[log]\nformat = \"{format}\"\nlevel = \"info,durable_mcp=debug\"\n");
        let mut program = Setup::new(&log).flag("--demo").serve().await;
        let meta = json!({"traceparent": format!("00-{TRACE}-b7ad6b7169203331-01")});
        let call = json!({"name": "demo_echo", "arguments": {"message": "canary"}, "_meta": meta});
        let id = id_of(&Caller::modern(program.url()).ask(call).await);
        program.sigterm().await;
        let stderr = program.stderr();
        let line = stderr.lines().find(|line| line.contains("an attempt was recorded"));
        let line = line.unwrap_or_else(|| panic!("{stderr}"));
        assert!(line.contains(TRACE) && line.contains(&id), "{line}");
        if format == "json" {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&line["span"]["execution"], &line["span"]["trace"]), (&json!(id), &json!(TRACE)), "{line}");
        }
        assert!(!stderr.contains("canary"), "{stderr}");
    }
}
