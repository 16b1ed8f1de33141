//! The dashboard in a real browser against real servers: every view on a desk and on a phone, by day and by night; filters in
//! the address; the tail; a worker that dies while one looks; a person's decision; a reader; a failing query; hostile texts.
//! What the browser does is in `tests/clients/dashboard.mjs`. And the page's files as they are served.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::skip_loudly;
use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Request, open_session};
use crate::support::{DEADLINE, clients_are_set_up, clients_folder, eventually_async};

/// A scene opens some pages; a browser on a busy machine takes its time.
const SCENE_DEADLINE: Duration = Duration::from_secs(120);

const BROWSERS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

fn browser() -> Option<PathBuf> {
    BROWSERS.iter().map(PathBuf::from).find(|path| path.exists())
}

/// Says what is missing if there is no browser.
pub fn browser_is_set_up() -> Result<(), String> {
    clients_are_set_up()?;
    browser()
        .map(|_| ())
        .ok_or_else(|| "there is no Chromium: install it (Debian: apt-get install chromium)".to_owned())
}

/// Where every view is put as a picture, for a person who wants to look.
fn pictures() -> PathBuf {
    let folder = std::env::var_os("DURABLE_MCP_TEST_PICTURES").map(PathBuf::from);
    folder.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard-pictures"))
}

/// A scene in the browser; `outside` does what the scene says has to happen.
pub async fn play(scene: &str, given: Value, outside: impl AsyncFnMut(&str)) {
    play_within(SCENE_DEADLINE, scene, given, outside).await;
}

/// The same of a scene that takes longer.
pub async fn play_within(deadline: Duration, scene: &str, mut given: Value, mut outside: impl AsyncFnMut(&str)) {
    given["browser"] = json!(browser().unwrap());
    given["folder"] = json!(pictures());
    let mut node = Command::new("node")
        .arg(clients_folder().join("dashboard.mjs"))
        .args([scene, &given.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (mut stdin, mut stderr) = (node.stdin.take().unwrap(), node.stderr.take().unwrap());
    let mut said = BufReader::new(node.stdout.take().unwrap()).lines();
    let errors = tokio::spawn(async move {
        let mut text = String::new();
        stderr.read_to_string(&mut text).await.map(|_| text)
    });
    let played = timeout(deadline, async {
        let mut ok = false;
        while let Some(line) = said.next_line().await.unwrap() {
            match line.strip_prefix("now: ") {
                Some(what) => {
                    outside(what).await;
                    stdin.write_all(b"done\n").await.unwrap();
                }
                None => {
                    ok |= line == "ok";
                    if line.starts_with("figures: ") {
                        eprintln!("{scene}: {line}");
                    }
                }
            }
        }
        ok
    });
    let ok = played.await.unwrap_or_else(|_| panic!("the scene {scene} hangs"));
    assert!(ok, "{scene}: {}", errors.await.unwrap().unwrap());
}

pub async fn nothing(what: &str) {
    panic!("nobody was to do anything: {what}");
}

fn local_token(program: &Program) -> String {
    let file = program.setup.data_dir().join("servers").join(format!("127.0.0.1_{}.token", program.port()));
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// The page of a server, for its operator.
pub fn page(program: &Program) -> Value {
    json!({"url": program.at("").trim_end_matches('/'), "token": local_token(program)})
}

/// Calls a tool and wants the execution's id only.
async fn begin(program: &Program, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"durable-mcp/wait": 0}});
    let request = Request::modern(program.url(), json!(1), "tools/call", params);
    let answer = request.exchange(program.url()).await.answer();
    let id = answer["result"]["_meta"]["durable-mcp/execution"]["id"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn until(program: &Program, id: &str, state: &str) {
    eventually_async(&format!("{id} is {state}"), DEADLINE, async || {
        let url = program.at(&format!("/api/v1/executions/{id}"));
        Request::new("GET", &url).exchange(&url).await.answer()["state"] == state
    })
    .await;
}

/// A tool that is started at most once and never ends, for calls whose end nobody learns.
fn lasting(setup: &Setup) -> String {
    let schema = setup.folder().join("any.json");
    std::fs::write(&schema, "{\"type\":\"object\"}").unwrap();
    let command = "command = [\"sleep\", \"600\"]\ndelivery = \"at_most_once\"";
    // Another one fails with what it was given.
    let broken = "command = [\"sh\", \"-c\", \"printf 'broken: ' >&2; cat >&2; exit 1\"]";
    let schema = schema.to_str().unwrap();
    format!(
        "[tools.charge]\n{command}\ninput_schema = {schema:?}\n[tools.broken]\n{broken}\ninput_schema = {schema:?}\n"
    )
}

/// A server with a call whose outcome is unknown.
async fn with_an_unknown(arguments: Value) -> (Program, String) {
    let setup = Setup::new("").flag("--demo");
    let config = lasting(&setup);
    let mut program = setup.config(&config).serve().await;
    let id = begin(&program, "charge", arguments).await;
    until(&program, &id, "leased").await;
    program.kill_9().await;
    let program = program.restart().await;
    until(&program, &id, "unknown").await;
    (program, id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_view_is_sound_on_a_desk_and_a_phone_by_day_and_night() {
    skip_loudly!(browser_is_set_up());
    let (program, id) = with_an_unknown(json!({"order": 17})).await;
    for number in 0..3 {
        let call = begin(&program, "demo_echo", json!({"message": format!("hello {number}")})).await;
        until(&program, &call, "completed").await;
    }
    let mut given = page(&program);
    given["execution"] = json!(id);
    given["tool"] = json!("demo_echo");
    // A session, so that there is one to see.
    open_session(program.url(), "2025-11-25").await.unwrap();
    play("views", given, nothing).await;
    let views = ["overview", "executions", "execution", "needs-attention", "workers", "tools", "sessions", "connect"];
    for view in views {
        for look in ["", "-on-a-phone", "-by-night", "-on-a-phone-by-night"] {
            let picture = pictures().join(format!("{view}{look}.png"));
            let bytes = std::fs::metadata(&picture).map(|file| file.len()).unwrap_or_default();
            assert!(bytes > 5_000, "{picture:?} is no picture: {bytes} bytes");
        }
    }
}

/// A worker dies with two calls: one may run again, and does; of the other nobody knows the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overview_counts_a_lost_attempt_and_its_recovery() {
    skip_loudly!(browser_is_set_up());
    let setup = Setup::new("").flag("--demo");
    let (flag, config) = (setup.folder().join("again"), lasting(&setup));
    // The first time it lasts, the second time it ends.
    let script = format!("cat >/dev/null; if [ -e {0:?} ]; then echo done; else touch {0:?}; sleep 600; fi", flag);
    let schema = setup.folder().join("any.json");
    let again = format!(
        "[tools.index]\ncommand = [\"sh\", \"-c\", {script:?}]\ndelivery = \"at_least_once\"\ninput_schema = {:?}\n",
        schema.to_str().unwrap()
    );
    let mut program = setup.config(&(config + &again)).serve().await;
    for number in 0..3 {
        let call = begin(&program, "demo_echo", json!({"message": format!("hello {number}")})).await;
        until(&program, &call, "completed").await;
    }
    let charge = begin(&program, "charge", json!({"order": 17})).await;
    let index = begin(&program, "index", json!({})).await;
    until(&program, &charge, "leased").await;
    until(&program, &index, "leased").await;
    eventually_async("the tool has begun", DEADLINE, async || flag.exists()).await;
    program.kill_9().await;
    let program = program.restart().await;
    until(&program, &charge, "unknown").await;
    until(&program, &index, "completed").await;
    let mut given = page(&program);
    given["cards"] = json!({"Attempts lost": 2, "Recovered": 1, "Became unknown": 1, "Outcome unknown": 1,
        "Calls that ended": 4, "Failed": 0, "Stale writes rejected": 0, "Duplicates answered": 0, "Workers": 1});
    play("overview", given, async |_: &str| {
        let call = begin(&program, "demo_echo", json!({"message": "one more"})).await;
        until(&program, &call, "completed").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overview_of_nothing_is_no_failure_and_a_failure_is_not_nothing() {
    skip_loudly!(browser_is_set_up());
    let program = Setup::new("").flag("--demo").serve().await;
    play("quiet", page(&program), nothing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_is_small_and_its_first_view_is_there_within_a_second() {
    skip_loudly!(browser_is_set_up());
    let program = Setup::new("").flag("--demo").serve().await;
    let mut given = page(&program);
    given["files"] = json!(["/", "/dashboard.js", "/dashboard.css", "/icon.svg"]);
    given["bytes_max"] = json!(60 * 1_024);
    play("first", given, nothing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_is_in_the_address_and_survives_a_reload() {
    skip_loudly!(browser_is_set_up());
    let (program, _) = with_an_unknown(json!({})).await;
    let call = begin(&program, "demo_echo", json!({"message": "hello"})).await;
    until(&program, &call, "completed").await;
    let mut given = page(&program);
    given["tool"] = json!("demo_echo");
    play("filters", given, nothing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tail_shows_new_calls_and_can_be_paused() {
    skip_loudly!(browser_is_set_up());
    let program = Setup::new("").flag("--demo").serve().await;
    let call = begin(&program, "demo_echo", json!({"message": "first"})).await;
    until(&program, &call, "completed").await;
    play("tail", page(&program), async |what: &str| {
        let call = begin(&program, "demo_echo", json!({"message": what})).await;
        until(&program, &call, "completed").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_dies_leaves_a_gap_and_who_took_over_is_shown_in_time() {
    skip_loudly!(browser_is_set_up());
    const LEASE_MS: u64 = 5_000;
    let setup = Setup::new(&format!("[lease]\nttl = \"{LEASE_MS}ms\"\n")).flag("--demo");
    let (program, mut other) = (setup.serve().await, setup.serve().await);
    let id = begin(&other, "demo_sleep", json!({"seconds": 600})).await;
    until(&program, &id, "leased").await;
    let mut given = page(&program);
    given["execution"] = json!(id);
    given["within_ms"] = json!(LEASE_MS + 2_000);
    play("recovery", given, async |_: &str| other.kill_9().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_is_resolved_by_a_person() {
    skip_loudly!(browser_is_set_up());
    let (program, id) = with_an_unknown(json!({"order": 17})).await;
    let mut given = page(&program);
    given["execution"] = json!(id);
    play("resolve", given, nothing).await;
    let last = program.events(&id).await.pop().unwrap();
    assert_eq!(last["type"], "completed", "{last}");
    assert_eq!(last["by"], json!({"principal": "operator", "reason": "the ledger has the line"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_no_orders_and_gives_none() {
    skip_loudly!(browser_is_set_up());
    let setup = Setup::new("[auth]\nmode = \"token\"\n").flag("--demo");
    let program = setup.serve().await;
    let token = async |scopes: &str| {
        let ran = setup.cli(&["token", "create", "--principal", "ann", "--scope", scopes]).await;
        assert!(ran.status.success(), "{}", ran.stderr);
        ran.stdout.trim().to_owned()
    };
    let (caller, reader) = (token("call").await, token("read").await);
    let params = json!({"name": "demo_sleep", "arguments": {"seconds": 600}, "_meta": {"durable-mcp/wait": 0}});
    let request = Request::modern(program.url(), json!(1), "tools/call", params);
    let request = request.header("Authorization", &format!("Bearer {caller}"));
    let answer = request.exchange(program.url()).await.answer();
    let id = answer["result"]["_meta"]["durable-mcp/execution"]["id"].as_str().unwrap();
    let url = program.at("").trim_end_matches('/').to_owned();
    play("reader", json!({"url": url, "token": reader, "execution": id}), nothing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_query_is_no_empty_list() {
    skip_loudly!(browser_is_set_up());
    let program = Setup::new("").flag("--demo").serve().await;
    play("failure", page(&program), nothing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tools_and_clients_write_is_text() {
    skip_loudly!(browser_is_set_up());
    const HOSTILE: [&str; 4] = [
        "<img src=x onerror=\"window.harmed=1\">",
        "<script>window.harmed=1</script>",
        "javascript:window.harmed=1",
        "{{constructor.constructor('window.harmed=1')()}}",
    ];
    let (program, id) = with_an_unknown(json!({"texts": HOSTILE, "<b onclick=1>": HOSTILE})).await;
    let message = HOSTILE.join("\u{2028}");
    let echoed = begin(&program, "demo_echo", json!({"message": message})).await;
    until(&program, &echoed, "completed").await;
    // Names: a client's, a key's; and a tool's own error.
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": format!("client {}", HOSTILE[0]), "version": "1"}}});
    let opened = Request::legacy(program.url(), None, &hello.to_string()).exchange(program.url()).await;
    let named = opened.header("mcp-session-id").unwrap().to_owned();
    let meta = json!({"durable-mcp/idempotencyKey": HOSTILE[1]});
    let call = json!({"name": "demo_echo", "arguments": {"message": "keyed"}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    let request = Request::legacy(program.url(), Some(&named), &message.to_string());
    let answer = request.exchange(program.url()).await.answer();
    let keyed = answer["result"]["_meta"]["durable-mcp/execution"]["id"].as_str().unwrap().to_owned();
    let failed = begin(&program, "broken", json!({"text": HOSTILE[1]})).await;
    until(&program, &failed, "completed").await;
    let mut given = page(&program);
    let texts = [HOSTILE[1], HOSTILE[2]];
    given["executions"] = json!([
        {"id": id, "texts": texts},
        {"id": echoed, "texts": texts},
        {"id": keyed, "texts": [HOSTILE[1]]},
        {"id": failed, "texts": [HOSTILE[1], "broken:"]},
    ]);
    given["client"] = json!("client <img");
    play("hostile", given, nothing).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_the_page_are_served_to_everybody_under_a_strict_policy() {
    let program = Setup::new("[auth]\nmode = \"token\"\n").serve().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboard/dist");
    for (path, file, media_type) in [
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/dashboard.js", "dashboard.js", "text/javascript; charset=utf-8"),
        ("/dashboard.css", "dashboard.css", "text/css; charset=utf-8"),
        ("/icon.svg", "icon.svg", "image/svg+xml"),
    ] {
        let url = program.at(path);
        let response = Request::new("GET", &url).exchange(&url).await;
        assert_eq!((response.status, response.header("content-type")), (200, Some(media_type)), "{path}");
        assert_eq!(response.body, std::fs::read(folder.join(file)).unwrap(), "{path}");
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{policy}");
        let tag = response.header("etag").unwrap().to_owned();
        let again = Request::new("GET", &url).header("If-None-Match", &tag).exchange(&url).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
    let url = program.at("/api/v1/caller");
    assert_eq!(Request::new("GET", &url).exchange(&url).await.status, 401);
    let html = std::fs::read_to_string(folder.join("index.html")).unwrap();
    assert!(!html.contains("<style") && !html.contains("<script>") && !html.contains("://"), "{html}");
}
