//! Field cases A39 and A40: a result of 31 MB, and a result that would fill a model's context. The caller gets the beginning
//! and how to read the rest; all of it is stored once, and read in parts.

use serde_json::{Value, json};

use crate::cases_scene::{Caller, Scene, id_of, text};
use crate::support::raw_http::Request;
use crate::support::raw_worker::local_token;

const CAP: usize = 50_000;
/// What an answer has beside its result: the envelope and `_meta`.
const ENVELOPE: usize = 1_000;

/// The `from` that a notice or a part names.
fn next(notice: &str) -> Option<String> {
    let rest = notice.split("\"from\":\"").nth(1)?;
    Some(rest.split('"').next()?.to_owned())
}

async fn answer_bytes(caller: &Caller, tool: &str, arguments: Value) -> (Value, usize) {
    let params = json!({"name": tool, "arguments": arguments});
    let response = caller.request(json!(1), params).exchange(caller.url()).await;
    let answer = response.answer();
    let bytes = answer.to_string().len();
    (answer, bytes)
}

// A40: 50 KB of 1 MB, for clients of both eras; the whole is read part by part, and by a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capped_result_comes_with_a_notice_and_is_read_in_parts() {
    let scene = Scene::start("", "[servers.kit.tools.big]\nanswer_bytes = \"50KB\"\n").await;
    for caller in scene.of_each_era().await {
        let (answer, bytes) = answer_bytes(&caller, "big", json!({"size": 1_000_000})).await;
        assert!(bytes <= CAP + ENVELOPE, "{bytes} bytes");
        assert!(text(&answer).starts_with("0123456789abcdef0123"), "{answer}");
        assert!(text(&answer).len() > CAP - 2_000, "{}", text(&answer).len());
        assert_eq!(answer["result"]["isError"], false);
        let notice = answer["result"]["content"][1]["text"].as_str().unwrap();
        let id = id_of(&answer);
        assert!(notice.contains(&id) && notice.contains("executions result"), "{notice}");
        let (mut from, mut whole, mut parts) = (next(notice), String::new(), 0);
        while let Some(place) = from {
            let arguments = json!({"execution_id": id, "from": place});
            let (part, bytes) = answer_bytes(&caller, "durable_result", arguments).await;
            assert!(bytes <= CAP + ENVELOPE, "{bytes} bytes");
            whole.push_str(text(&part));
            from = next(part["result"]["content"][1]["text"].as_str().unwrap());
            parts += 1;
        }
        assert!(parts >= 20, "{parts}");
        let result: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(result["content"][0]["text"].as_str().unwrap().len(), 1_000_000);
        // Asked for without a place it is what the caller had.
        let (again, bytes) = answer_bytes(&caller, "durable_result", json!({"execution_id": id})).await;
        assert!(bytes <= CAP + ENVELOPE && text(&again) == text(&answer), "{bytes}");
        let shown =
            scene.program.setup.cli(&["executions", "result", &id, "--store", &scene.program.setup.store_url()]).await;
        assert!(shown.stdout.len() >= 1_000_000, "{}", shown.stderr);
        for wrong in ["", "1", "0.x", "99.0", "0.99999999", "-1.0"] {
            let refused = caller.call("durable_result", json!({"execution_id": id, "from": wrong})).await;
            assert_eq!(refused["error"]["code"], -32602, "{wrong}: {refused}");
        }
        // What fits is as it was.
        let small = caller.call("big", json!({"size": 1_000})).await;
        assert_eq!((text(&small).len(), small["result"]["content"].as_array().unwrap().len()), (1_000, 1));
    }
}

// A39: 31 MB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_of_31_megabytes_is_stored_once_and_shown_as_a_preview() {
    const BYTES: usize = 31_000_000;
    let limits = "[limits]\nresult_bytes = \"64MiB\"\nanswer_bytes = \"50KB\"\n";
    let scene = Scene::start(limits, "").await;
    let caller = scene.modern();
    let (answer, bytes) = answer_bytes(&caller, "big", json!({"size": BYTES})).await;
    assert!(bytes <= CAP + ENVELOPE, "{bytes} bytes");
    let id = id_of(&answer);
    let notice = answer["result"]["content"][1]["text"].as_str().unwrap();
    assert!(notice.contains("is the beginning of a result of 310000"), "{notice}");
    let token = local_token(&scene.program);
    let get = async |path: &str| {
        let url = scene.program.at(path);
        let request = Request::new("GET", &url).header("Authorization", &format!("Bearer {token}"));
        request.exchange(&url).await.answer()
    };
    assert!(get(&format!("/api/v1/executions/{id}")).await.to_string().len() < 8_192, "the row is small");
    // The second read: a part by the tool, a piece by the API.
    let part = caller.call("durable_result", json!({"execution_id": id, "from": "1.0"})).await;
    assert!(text(&part).len() > CAP - 2_000, "{}", text(&part).len());
    let goes_on = next(part["result"]["content"][1]["text"].as_str().unwrap());
    assert!(goes_on.as_ref().is_some_and(|place| place.starts_with("1.4")), "{goes_on:?}");
    let piece = get(&format!("/api/v1/executions/{id}/payloads/result?piece=29")).await;
    assert_eq!(piece["pieces"], 30, "{}", piece["pieces"]);
    let database = rusqlite::Connection::open(scene.program.setup.serve_db()).unwrap();
    let (stored, rows): (i64, i64) = database
        .query_row("SELECT sum(length(CAST(body AS BLOB))), count(*) FROM payloads WHERE kind = 'result'", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert!((BYTES as i64..BYTES as i64 + 200).contains(&stored) && rows == 30, "{stored} bytes in {rows} rows");
    // Nowhere else: a repeat, its events and its stream add nothing.
    let pages: i64 = database.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let page: i64 = database.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    assert!(pages * page < BYTES as i64 * 5 / 4, "the file has {} bytes", pages * page);
}
