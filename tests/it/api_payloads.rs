//! A result of thirty megabytes: its row and the list stay small, its pieces are its exact text, and reading them one by one
//! never takes as much memory as the whole.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::eventually_async;
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Request, Response};
use crate::support::raw_worker::{local_token, submit};

/// A debug build takes its time to hash so much.
const LONG: Duration = Duration::from_secs(120);

const BYTES: usize = 30_000_000;
const MIB: usize = 1 << 20;

async fn get(program: &Program, path: &str, bearer: Option<&str>) -> Response {
    let url = program.at(path);
    let request = Request::new("GET", &url);
    let request = match bearer {
        Some(bearer) => request.header("Authorization", &format!("Bearer {bearer}")),
        None => request,
    };
    request.exchange(&url).await
}

/// The most memory that the process ever had, in bytes.
fn peak(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1_024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_of_thirty_megabytes_is_read_in_pieces() {
    let setup = Setup::new("");
    let schema = setup.folder().join("any.json");
    std::fs::write(&schema, "{\"type\":\"object\"}").unwrap();
    let script = format!("cat >/dev/null; head -c {BYTES} /dev/zero | tr '\\\\000' x");
    let config = format!(
        "[limits]\nresult_bytes = \"64MiB\"\n[tools.large]\ncommand = [\"sh\", \"-c\", \"{script}\"]\ninput_schema = {:?}\n",
        schema.to_str().unwrap()
    );
    let mut program = setup.config(&config).serve().await;
    let id = submit(&program, "large", json!({"a": 1.50})).await;
    eventually_async("it has completed", LONG, async || {
        get(&program, &format!("/api/v1/executions/{id}"), None).await.answer()["state"] == "completed"
    })
    .await;
    program.kill_9().await;
    let program = program.restart().await;
    let token = local_token(&program);
    let path = |kind: &str, piece: usize| format!("/api/v1/executions/{id}/payloads/{kind}?piece={piece}");

    for small in
        ["/api/v1/executions".to_owned(), format!("/api/v1/executions/{id}"), format!("/api/v1/executions/{id}/events")]
    {
        let answer = get(&program, &small, None).await;
        assert!(answer.status == 200 && answer.body.len() < 8_192, "{small}: {} bytes", answer.body.len());
    }
    let before = peak(program.pid());
    let (mut hash, mut bytes, mut pieces) = (Sha256::new(), 0, 1);
    let mut number = 0;
    while number < pieces {
        let answer = get(&program, &path("result", number), Some(&token)).await.answer();
        let text = answer["text"].as_str().unwrap();
        assert!(text.len() <= MIB && answer["piece"] == number && answer["kind"] == "result", "{number}");
        pieces = answer["pieces"].as_u64().unwrap() as usize;
        hash.update(text);
        bytes += text.len();
        number += 1;
    }
    assert!(pieces > BYTES / MIB && bytes > BYTES, "{pieces} pieces, {bytes} bytes");
    let grown = peak(program.pid()).saturating_sub(before);
    assert!(grown < BYTES / 2, "reading it piece by piece took {grown} bytes more");
    // The log holds the digest of what the tool gave.
    let events = get(&program, &format!("/api/v1/executions/{id}/events"), None).await.answer();
    let completed = events["events"].as_array().unwrap().last().unwrap();
    assert_eq!(completed["result"], json!({"sha256": hex::encode(hash.finalize()), "bytes": bytes}));

    let arguments = get(&program, &path("arguments", 0), Some(&token)).await.answer();
    assert_eq!((&arguments["text"], &arguments["pieces"]), (&json!(r#"{"a":1.5}"#), &json!(1)), "{arguments}");
    let none = get(&program, &path("error", 0), Some(&token)).await.answer();
    assert_eq!((&none["text"], &none["pieces"]), (&json!(""), &json!(0)), "{none}");
    for (path, bearer, status, code) in [
        (path("result", pieces), Some(&token), 404, "not_found"),
        (path("error", 1), Some(&token), 404, "not_found"),
        (path("nothing", 0), Some(&token), 404, "not_found"),
        (path("result", 0) + "&x=1", Some(&token), 400, "invalid_parameter"),
        (path("result", 0).replace("piece=0", "piece=-1"), Some(&token), 400, "invalid_parameter"),
        (path("result", 0), None, 401, "local_token_needed"),
    ] {
        let answer = get(&program, &path, bearer.map(String::as_str)).await;
        assert_eq!((answer.status, &answer.answer()["code"]), (status, &Value::from(code)), "{path}");
    }
}
