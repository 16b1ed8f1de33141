//! Field case A48: a secret under a rule of redaction goes through arguments, results, errors, progress, `_meta` and headers.
//! The tool and the caller get it; no file, row, log, metric, trace, answer of the API, export or page does. And what that
//! means for a call that would have to be run again. A fault of ours on the way tells Sentry none of it either.

use std::path::Path;

use serde_json::{Value, json};

use crate::cases_scene::{Caller, id_of, kit};
use crate::on_every_store;
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup, server_table};
use crate::support::raw_http::Request;
use crate::support::raw_worker::{self, RawWorker, local_token};
use crate::support::stores::{On, lose_execution};
use crate::support::{DEADLINE, eventually, eventually_async};
use crate::telemetry_scene::Collector;

/// Known by its form.
const FORM: &str = "canary-4812-by-form";
/// Known by its place only.
const PLACE: &str = "unseen-4812-by-place";

const RULES: &str = "[redaction]\npatterns = [\"canary-[0-9]+-by-form\"]\narguments = [\"/**/password\"]\n\
    results = [\"/structuredContent/n\", \"/content/0/password\"]\n";

#[track_caller]
fn assert_clean(what: &str, bytes: &[u8]) {
    for secret in [FORM, PLACE] {
        let at = bytes.windows(secret.len()).position(|window| window == secret.as_bytes());
        if let Some(at) = at {
            let around =
                String::from_utf8_lossy(&bytes[at.saturating_sub(300)..(at + 100).min(bytes.len())]).into_owned();
            panic!("{what} tells {secret}: …{around}…");
        }
    }
}

/// Every file below, its name included.
fn assert_folder_clean(folder: &Path) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += assert_folder_clean(&path);
        } else {
            let name = path.display().to_string();
            assert_clean("a file name", name.as_bytes());
            assert_clean(&name, &std::fs::read(&path).unwrap_or_default());
            files += 1;
        }
    }
    files
}

/// Every row of every table, as the database shows it.
async fn assert_database_clean(url: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let tables = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()";
    let mut rows = 0;
    for table in client.query(tables, &[]).await.unwrap() {
        let table: String = table.get(0);
        for row in client.query(&format!("SELECT t::text FROM \"{table}\" t"), &[]).await.unwrap() {
            let row: String = row.get(0);
            assert_clean(&table, row.as_bytes());
            // Bytes are shown as hex.
            for secret in [FORM, PLACE] {
                assert!(!row.contains(&hex::encode(secret)), "{table} has {secret} in bytes");
            }
            rows += 1;
        }
    }
    assert!(rows > 20, "{rows} rows");
}

async fn get(program: &Program, path: &str, bearer: Option<&str>) -> Vec<u8> {
    let url = program.at(path);
    let request = Request::new("GET", &url);
    let request = match bearer {
        Some(bearer) => request.header("Authorization", &format!("Bearer {bearer}")),
        None => request,
    };
    let response = request.exchange(&url).await;
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    response.body
}

fn tells_truth(what: &str, answer: &Value) {
    let text = answer.to_string();
    assert!(text.contains(FORM) && text.contains(PLACE), "{what}: {text}");
}

on_every_store! {
    a_secret_under_a_rule_is_kept_nowhere;
    a_call_whose_arguments_are_redacted_is_not_run_again_with_others;
}

async fn a_secret_under_a_rule_is_kept_nowhere(on: On) {
    let collector = Collector::start().await;
    let dsn = collector.url().replace("http://", "http://publickey@") + "/42";
    let setup = Setup::new("").on(on).await;
    let ledger = Ledger::in_folder(setup.folder());
    let telemetry = format!("[telemetry]\notlp_endpoint = \"{}\"\nsentry_dsn = \"{dsn}\"\n", collector.url());
    let shell = "[tools.shell]\ncommand = [\"sh\", \"-c\", \"cat >&2; exit 3\"]\n";
    let config =
        format!("{RULES}[log]\nlevel = \"trace\"\n{telemetry}{}{shell}", server_table("kit", &kit(setup.folder()), ""));
    let setup = setup.config(&config);
    let mut program = setup.serve().await;
    let caller = Caller::modern(program.url()).header("X-Secret", FORM).header("Cookie", &format!("session={FORM}"));

    let nested = json!({"deep": [{"password": PLACE, "note": format!("beside {FORM}")}], "again": PLACE});
    let meta = json!({"durable-mcp/idempotencyKey": "k", "app.example/token": FORM});
    let echo = json!({"name": "echo", "arguments": nested, "_meta": meta});
    let first = caller.ask(echo.clone()).await;
    tells_truth("who waits gets what the tool said", &first);
    let repeat = caller.ask(echo.clone()).await;
    assert_eq!(id_of(&repeat), id_of(&first), "the true arguments are compared");
    assert!(repeat.to_string().contains("[redacted]"), "a repeat gets what is kept: {repeat}");
    assert_clean("a repeat", repeat.to_string().as_bytes());
    let other = json!({"name": "echo", "arguments": {"deep": [{"password": "another one"}]}, "_meta": meta});
    assert_eq!(caller.ask(other).await["error"]["code"], -31409);

    let data = json!({"password": PLACE, "note": FORM});
    let error = caller.call("rpc_error", json!({"code": -32000, "message": FORM, "data": data})).await;
    tells_truth("an error", &error["error"]);
    let failed =
        caller.call("flaky", json!({"name": format!("{FORM} {PLACE}"), "failures": 9, "password": PLACE})).await;
    tells_truth("a tool error", &failed);
    let number = caller.call("structured", json!({"n": 481_248_124_812_u64})).await;
    assert_eq!(number["result"]["structuredContent"]["n"], 481_248_124_812_u64, "{number}");
    caller.call("shell", json!({"password": PLACE, "note": FORM})).await;
    caller.call("append", json!({"text": format!("{FORM} {PLACE}"), "password": PLACE})).await;
    assert_eq!(ledger.starts(&format!("{FORM} {PLACE}")).len(), 2, "the tool gets the true arguments");

    // A remote worker: progress, a step that can not be kept, and a result.
    let worker = RawWorker::registered(&program, &["remote"]).await;
    let waiting = raw_worker::call(&program, "remote", json!({"password": PLACE, "note": FORM}));
    let job = worker.job().await;
    tells_truth("a job", &job);
    let progress = json!({"progress": 1.0, "message": format!("{FORM} {PLACE}")});
    let beat = json!({"leases": [{"lease_token": job["lease_token"], "progress": progress}]});
    worker.ok("heartbeat", beat).await;
    let step = json!({"lease_token": job["lease_token"], "name": "one", "result": {"said": FORM}});
    worker.refused(("step", step), 422, "redacted").await;
    assert_eq!(worker.complete(&job, &format!("{FORM} {PLACE}")).await.status, 200);
    tells_truth("a remote result", &waiting.await.unwrap());

    let token = local_token(&program);
    for path in
        ["/metrics", "/api/v1/executions", "/api/v1/totals", "/api/v1/series", "/api/v1/tools", "/api/v1/workers", "/"]
    {
        assert_clean(path, &get(&program, path, Some(&token)).await);
    }
    let rows = program.executions().await;
    assert_eq!(rows.len(), 7, "{rows:?}");
    for row in &rows {
        let id = row["id"].as_str().unwrap();
        let path = format!("/api/v1/executions/{id}");
        assert_clean("an execution", &get(&program, &path, Some(&token)).await);
        for part in
            ["/events", "/why", "/payloads/arguments?piece=0", "/payloads/result?piece=0", "/payloads/error?piece=0"]
        {
            assert_clean(part, &get(&program, &(path.clone() + part), Some(&token)).await);
        }
        for command in ["show", "events", "why", "result"] {
            let ran = setup.cli(&["executions", command, id, "--store", &setup.store_url()]).await;
            assert_clean(command, (ran.stdout + &ran.stderr).as_bytes());
        }
    }
    let export = setup.cli(&["executions", "export", "--store", &setup.store_url()]).await;
    assert!(export.status.success() && export.stdout.contains("[redacted]"), "{}", export.stderr);
    let lines = export.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let structured =
        lines.into_iter().find(|line| line["execution"]["tool"] == "structured" || line["tool"] == "structured");
    let kept = structured.expect("the export has it")["result"].to_string();
    assert!(!kept.contains("481248124812") && kept.contains("[redacted]"), "a number is struck by its place: {kept}");
    assert_clean("the export", export.stdout.as_bytes());
    let checked = program.check_store().await;
    assert_eq!(checked.executions.len(), 7);
    let verified = setup.cli(&["db", "verify", "--store", &setup.store_url()]).await;
    assert!(verified.status.success(), "digests are those of what is kept: {}{}", verified.stdout, verified.stderr);

    // Once while it runs, the write-ahead log included, and once after its end.
    assert!(assert_folder_clean(&setup.data_dir()) >= 1);
    collector.wait_for("execution", 1).await;
    program.sigterm().await;
    assert_folder_clean(&setup.data_dir());
    if on == On::Postgres {
        assert_database_clean(&setup.store_url()).await;
    }
    assert!(program.stderr().contains("an attempt was recorded"), "the log is written");
    assert_clean("the log at its most talkative", program.stderr().as_bytes());

    // A fault of ours in a call that holds both: what is told of it leaves the house.
    assert!(collector.envelopes().is_empty(), "nothing went wrong so far");
    lose_execution(&setup.store_url(), &id_of(&first)).await;
    let mut program = setup.serve().await;
    let caller = Caller::modern(program.url()).header("X-Secret", FORM).header("Cookie", &format!("session={FORM}"));
    let faulty = caller.ask(echo).await;
    assert_eq!(faulty["error"]["code"], -32603, "{faulty}");
    assert_clean("what a client is told of a fault", faulty.to_string().as_bytes());
    let fault = faulty["error"]["data"]["fault"].as_str().unwrap();
    eventually("sentry was told", DEADLINE, || collector.heard_of(fault)).await;
    program.sigterm().await;
    assert_eq!(collector.envelopes().len(), 1, "{:?}", collector.envelopes());
    assert!(program.stderr().contains(fault), "{}", program.stderr());
    assert_clean("the log of a fault", program.stderr().as_bytes());
    assert_folder_clean(&setup.data_dir());
    for secret in [FORM, PLACE] {
        assert!(!collector.heard_of(secret), "a trace or a fault tells {secret}");
    }
}

async fn a_call_whose_arguments_are_redacted_is_not_run_again_with_others(on: On) {
    let setup = Setup::new("").on(on).await;
    let ledger = Ledger::in_folder(setup.folder());
    let one = "concurrency = 2\nqueue_timeout = \"10m\"\n";
    let config = format!("{RULES}{}", server_table("kit", &kit(setup.folder()), one));
    let setup = setup.config(&config);
    let mut program = setup.serve().await;
    let mut ids = Vec::new();
    for (tool, text) in [("slow", "once"), ("slow_idempotent", "again"), ("append", "never")] {
        let arguments = json!({"seconds": 600, "text": text, "password": PLACE});
        ids.push(raw_worker::submit(&program, tool, arguments).await);
        if tool != "append" {
            ledger.wait_for_start(text, DEADLINE).await;
        }
    }
    program.kill_9().await;
    let program = program.restart().await;
    // At most once: nobody knows what became of it. May be repeated, or never began: it can not be, and says so.
    for (id, state, code) in [
        (&ids[0], "unknown", "process_died"),
        (&ids[1], "failed", "arguments_redacted"),
        (&ids[2], "failed", "arguments_redacted"),
    ] {
        eventually_async(&format!("{id} is {state}"), DEADLINE, async || {
            program.executions().await.iter().any(|row| row["id"] == *id.as_str() && row["state"] == state)
        })
        .await;
        let shown = setup.cli(&["executions", "show", id, "--json", "--store", &setup.store_url()]).await;
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(shown["error"]["code"], code, "{shown}");
        let retried = setup.cli(&["executions", "retry", id, "--reason", "again", "--url", program.url()]).await;
        assert!(
            !retried.status.success() && retried.stderr.contains("redacted"),
            "{}{}",
            retried.stdout,
            retried.stderr
        );
    }
    for (text, starts) in [("once", 1), ("again", 1), ("never", 0)] {
        assert_eq!(ledger.starts(text).len(), starts, "{text}");
    }
    program.check_store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_can_not_work_is_said_at_the_start() {
    for (rules, place, reason) in [
        ("patterns = [\"(\"]", "redaction.patterns[0]", "regular expression: unclosed group"),
        ("patterns = [\"x*\"]", "redaction.patterns[0]", "empty text"),
        ("arguments = [\"password\"]", "redaction.arguments[0]", "begins with no `/`"),
        ("results = [\"/a/**\"]", "redaction.results[0]", "names nothing"),
    ] {
        let setup = Setup::new(&format!("[redaction]\n{rules}\n")).flag("--demo");
        let mut process = setup.start_serve(0);
        let status = process.exit(DEADLINE).await;
        let said = process.stderr();
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(said.contains(place) && said.contains(reason) && said.contains("2:"), "{rules}: {said}");
    }
    let warned = Setup::new(&format!("{RULES}[servers.kit]\ncommand = \"true\"\ndelivery = \"at_least_once\"\n"));
    let ran = warned.cli(&["config", "check"]).await;
    let said = ran.stdout + &ran.stderr;
    assert!(ran.status.success() && said.contains("redacted under `at_least_once`"), "{said}");
}
