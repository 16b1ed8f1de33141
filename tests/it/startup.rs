//! Starts that cannot succeed, and starts in which only a part fails: one clear line, the right exit code, and whatever
//! is not concerned works. Also a disk that fills up under a running server, and one that has space again.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection as Database;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::support::client::Target;
use crate::support::process::Process;
use crate::support::program::{Program, Ran, Setup, server_table};
use crate::support::raw_http::{Request, Response};
use crate::support::servers::kit_stdio;
use crate::support::{DEADLINE, eventually, eventually_async, program_binary, scratch};

/// A start that has to fail.
struct Bad {
    name: &'static str,
    setup: Setup,
    arguments: Vec<String>,
    exit: i32,
    /// What the one line has to contain.
    says: Vec<String>,
}

fn bad(name: &'static str, setup: Setup, exit: i32, says: &[&str]) -> Bad {
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--demo"].map(str::to_owned).to_vec();
    Bad { name, setup, arguments, exit, says: says.iter().map(|text| (*text).to_owned()).collect() }
}

impl Bad {
    fn arguments(mut self, arguments: &[&str]) -> Bad {
        self.arguments = arguments.iter().map(|text| (*text).to_owned()).collect();
        self
    }

    /// Starts it and looks at its end.
    async fn fails(&self) {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let ran = timeout(DEADLINE, self.setup.cli(&arguments)).await;
        let Ran { status, stdout, stderr } = ran.unwrap_or_else(|_| panic!("{}: it started", self.name));
        let name = self.name;
        assert_eq!(status.code(), Some(self.exit), "{name}: {stderr}");
        assert_eq!(stdout, "", "{name}: stdout is for data");
        let lines: Vec<&str> = stderr.lines().collect();
        let [line] = lines.as_slice() else { panic!("{name}: it says one line, not:\n{stderr}") };
        assert!(line.starts_with("error: "), "{name}: {line}");
        for part in &self.says {
            assert!(line.contains(part), "{name}: {part:?} is not in: {line}");
        }
    }
}

async fn all_fail(table: Vec<Bad>) {
    // Most of these end at once; a few wait for a lock.
    futures_util::future::join_all(table.iter().map(Bad::fails)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_ends_the_start_with_one_line_that_names_place_reason_and_next_step() {
    let conf = |text: &str| Setup::new(text);
    all_fail(vec![
        bad(
            "an unknown key",
            conf("[worker]\nslots = 4\n[leese]\nttl = \"1s\"\n"),
            2,
            &["durable-mcp.toml:3:", "`leese`", "did you mean `lease`?"],
        ),
        bad("an unknown key inside", conf("[lease]\nttll = \"1s\"\n"), 2, &[":2:1:", "did you mean `ttl`?"]),
        bad("a wrong type", conf("[worker]\nslots = \"many\"\n"), 2, &[":2:", "`worker.slots`", "whole number"]),
        bad("a wrong word", conf("[auth]\nmode = \"tokn\"\n"), 2, &[":2:", "did you mean `token`?"]),
        bad("a duration without a unit", conf("[lease]\nttl = 30\n"), 2, &[":2:", "with a unit"]),
        bad(
            "a missing variable",
            conf("[servers.a]\ncommand = \"x\"\nenv = { T = \"${NO_SUCH_VARIABLE_HERE}\" }\n"),
            2,
            &[":3:", "NO_SUCH_VARIABLE_HERE"],
        ),
        bad(
            "a missing secret file",
            conf("[servers.a]\nurl = \"http://127.0.0.1:1/\"\nheaders = { A = \"${file:no/such/file}\" }\n"),
            2,
            &[":3:", "no/such/file"],
        ),
        bad("no TOML", conf("[worker\nslots = 4\n"), 2, &[":1:", "not valid TOML"]),
        bad("a key twice", conf("[worker]\nslots = 4\nslots = 5\n"), 2, &[":3:", "duplicate key"]),
        bad("a server without a place", conf("[servers.a]\nprefix = \"\"\n"), 2, &["`a`", "`command`", "`url`"]),
        bad("a wrong log level", conf("[log]\nlevel = \"infoo\"\n"), 2, &[":2:", "`log.level`", "no level or filter"]),
        bad("a reserved path", conf("[server]\npath = \"/healthz\"\n"), 2, &["`server.path`"]),
        bad("no such file", conf(""), 2, &["nowhere.toml"]).arguments(&["serve", "--config", "nowhere.toml"]),
        bad("a wrong flag value", conf(""), 2, &["--listen", "`here`"]).arguments(&["serve", "--listen", "here"]),
        bad(
            "a reconcile rule that cannot be read",
            conf(
                "[servers.a]\ncommand = \"x\"\n[servers.a.tools.t]\n\
                 reconcile = { tool = \"r\", arguments = {}, match = \"== ==\" }\n",
            ),
            2,
            &["servers.a.tools.t.reconcile"],
        ),
        bad("a proxy without peers", conf("[auth]\nmode = \"proxy\"\n"), 2, &["auth.proxy.peers"]),
        bad("no auth for everybody", conf(""), 2, &["--listen", "`server.listen`", "auth.mode"]).arguments(&[
            "serve",
            "--listen",
            "0.0.0.0:0",
        ]),
        bad("no auth for everybody by file", conf("[server]\nlisten = \"[::]:0\"\n"), 2, &[":2:", "auth.mode"])
            .arguments(&["serve"]),
        bad(
            "a database that is not there",
            conf("[store]\nurl = \"postgres://u:pw@127.0.0.1:1/d\"\n"),
            1,
            &["127.0.0.1:1", "refused"],
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_ends_the_start_and_leaves_the_other_server_alone() {
    let first = Setup::new("").flag("--demo").serve().await;
    let listen = format!("127.0.0.1:{}", first.port());
    let second = bad("a port in use", Setup::new(""), 1, &[&listen, "another program listens there"]);
    second.arguments(&["serve", "--listen", &listen]).fails().await;
    assert_eq!(echo(&first, "still here").await, "still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_used_ends_the_start_with_one_line_and_is_left_as_it_is() {
    let with_file = |bytes: &[u8]| {
        let setup = Setup::new("");
        std::fs::create_dir_all(setup.data_dir()).unwrap();
        std::fs::write(setup.serve_db(), bytes).unwrap();
        setup
    };
    let noise: Vec<u8> = (0..8_192_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let random = with_file(&noise);
    let random_with_magic = with_file(&[b"SQLite format 3\0".as_slice(), &noise].concat());

    let truncated = filled_store().await;
    let whole = std::fs::read(truncated.serve_db()).unwrap();
    std::fs::write(truncated.serve_db(), &whole[..whole.len() / 2]).unwrap();
    let flipped =
        with_file(&whole.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at > 4_096)).collect::<Vec<_>>());

    let newer = filled_store().await;
    let database = Database::open(newer.serve_db()).unwrap();
    let grow = "INSERT INTO refinery_schema_history SELECT 4711, 'future', applied_on, checksum \
                FROM refinery_schema_history LIMIT 1";
    assert_eq!(database.execute(grow, []).unwrap(), 1);
    drop(database);

    let foreign = Setup::new("");
    std::fs::create_dir_all(foreign.data_dir()).unwrap();
    Database::open(foreign.serve_db()).unwrap().execute_batch("CREATE TABLE songs (title TEXT)").unwrap();

    let folder_in_the_way = Setup::new("");
    std::fs::create_dir_all(folder_in_the_way.serve_db()).unwrap();

    let file_as_folder = Setup::new("");
    std::fs::write(file_as_folder.data_dir(), "a file").unwrap();

    let locked = filled_store().await;
    let holder = Database::open(locked.serve_db()).unwrap();
    holder.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;").unwrap();

    let none_yet = "[store]\nmigrate = \"check\"\n";
    let before = std::fs::read(random.serve_db()).unwrap();
    let name = "durable-mcp.db";
    let mut table = vec![
        bad("random bytes", random.clone(), 1, &[name, "not an SQLite database"]),
        bad("random bytes behind the right start", random_with_magic, 1, &[name, "damaged"]),
        bad("a truncated file", truncated, 1, &[name, "damaged"]),
        bad("flipped bits", flipped, 1, &[name, "damaged"]),
        bad("a newer schema", newer, 1, &[name, "4711", "newer durable-mcp"]),
        bad("another program's database", foreign.clone(), 1, &[name, "another program"]),
        bad("a folder in its place", folder_in_the_way, 1, &[name, "is a folder"]),
        bad("a file in the place of its folder", file_as_folder, 1, &["data"]),
        bad("another program holds it", locked, 1, &[name, "locked"]),
        bad("no store yet, and only a check allowed", Setup::new(none_yet), 1, &[name, "store.migrate"]),
    ];
    if cfg!(target_os = "linux") {
        // Nobody can make a file here, root neither.
        let nowhere = Setup::new("[store]\nurl = \"sqlite:/proc/durable-mcp.db\"\n");
        table.push(bad("a folder that cannot be written", nowhere, 1, &["/proc/durable-mcp.db"]));
    }
    all_fail(table).await;
    assert_eq!(std::fs::read(random.serve_db()).unwrap(), before, "what is not ours stays");
    let songs = Database::open(foreign.serve_db()).unwrap();
    let tables: i64 = songs.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1, "another program's database gets no tables");
    drop(holder);
}

/// A store that has seen calls, closed.
async fn filled_store() -> Setup {
    let mut program = Setup::new("").flag("--demo").serve().await;
    for number in 0..20 {
        echo(&program, &format!("{number} {}", "x".repeat(4_000))).await;
    }
    assert!(program.sigterm().await.success());
    program.setup.clone()
}

async fn call(program: &Program, tool: &str, arguments: Value) -> Response {
    let params = json!({"name": tool, "arguments": arguments});
    Request::modern(program.url(), json!(1), "tools/call", params).exchange(program.url()).await
}

async fn echo(program: &Program, message: &str) -> String {
    let answer = call(program, "demo_echo", json!({"message": message})).await.answer();
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn tools(program: &Program) -> Vec<String> {
    let request = Request::modern(program.url(), json!(1), "tools/list", json!({}));
    let answer = request.exchange(program.url()).await.answer();
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

// A29: a handshake that hangs, and its kind: servers that cannot be started.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_start_costs_one_line_and_its_own_calls_only() {
    let quick = "start_timeout = \"1s\"\nrestart = { initial_interval = \"1h\", max_interval = \"1h\" }";
    let broken = [
        ("hangs", kit_stdio(&["--hang-handshake"])),
        ("missing", Target::command(["/nowhere/no-such-program"])),
        ("unknown", Target::command(["no-such-program-anywhere"])),
        ("exits", kit_stdio(&["--fail-start", "3"])),
        ("noise", Target::command(["echo", "this is no MCP server"])),
        ("refused", Target::url("http://127.0.0.1:1/mcp")),
    ];
    let mut config = server_table("fine", &kit_stdio(&["--era", "both"]), "");
    for (name, server) in &broken {
        config.push_str(&server_table(name, server, quick));
    }
    let began = Instant::now();
    let program = Setup::new(&config).flag("--demo").serve().await;
    assert!(began.elapsed() >= Duration::from_secs(1), "ready once the deadline of the last one is over");
    let url = program.at("/readyz");
    let report = Request::new("GET", &url).exchange(&url).await.answer();
    assert_eq!(report["upstreams"]["fine"], "up", "{report}");
    for (name, _) in &broken {
        assert_eq!(report["upstreams"][name], "failed", "{name}: {report}");
        let stderr = program.stderr();
        let told: Vec<&str> = stderr.lines().filter(|line| line.contains(&format!("upstream=\"{name}\""))).collect();
        let warnings = told.iter().filter(|line| line.contains("WARN")).count();
        assert_eq!(warnings, 1, "{name} costs one line:\n{stderr}");
    }
    let listed = tools(&program).await;
    assert!(listed.contains(&"echo".to_owned()) && listed.contains(&"demo_echo".to_owned()), "{listed:?}");
    assert_eq!(echo(&program, "unaffected").await, "unaffected");
    let answer = call(&program, "echo", json!({"a": 1})).await.answer();
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"a":1}"#, "{answer}");

    let began = Instant::now();
    let refused = call(&program, "tool_of_a_server_that_hangs", json!({})).await.answer();
    assert!(began.elapsed() < Duration::from_secs(1), "a call does not wait for what is not there");
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let words = refused["error"]["message"].as_str().unwrap();
    for (name, _) in &broken {
        assert!(words.contains(&format!("{name}: ")), "{name}: {words}");
    }
}

// A29 with a server that was known before: its tools stay listed, and their calls get a clear word in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_known_server_that_hangs_at_its_start_fails_clearly_within_the_start_timeout() {
    let table = |flags: &[&str]| {
        let more = "start_timeout = \"1s\"\nretry = { max_attempts = 1 }";
        server_table("kit", &kit_stdio(flags), more)
    };
    let setup = Setup::new(&table(&["--era", "both"])).flag("--demo");
    let mut program = setup.serve().await;
    assert!(program.sigterm().await.success());
    let program = setup.config(&table(&["--hang-handshake"])).serve_on(0).await;
    let listed = tools(&program).await;
    assert!(listed.contains(&"append".to_owned()), "the last known tools are listed: {listed:?}");
    let answer = call(&program, "append", json!({"text": "x"})).await.answer();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let words = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("It had no effect"), "{words}");
    assert_eq!(echo(&program, "unaffected").await, "unaffected");
    program.ready().await;
}

/// `serve` in a mount namespace of its own, with its data on a disk of 4 MiB; `None` where that is not permitted.
async fn serve_on_a_small_disk(setup: &Setup) -> Option<(Process, String)> {
    std::fs::create_dir_all(setup.data_dir()).unwrap();
    let config = setup.folder().join("small.toml");
    std::fs::write(&config, "[scheduler]\ninterval = \"50ms\"\n").unwrap();
    let script = "mount -t tmpfs -o size=4m tmpfs \"$1\" || exit 77\n\
                  exec \"$2\" serve --demo --listen 127.0.0.1:0 --config \"$3\"";
    let (data_dir, program) = (setup.data_dir(), program_binary());
    let words = [
        "-rm",
        "sh",
        "-c",
        script,
        "sh",
        data_dir.to_str().unwrap(),
        program.to_str().unwrap(),
        config.to_str().unwrap(),
    ];
    let mut process = Process::start("unshare", &words, &[("DURABLE_MCP_DATA_DIR", data_dir.to_str().unwrap())]);
    let address = |stderr: &str| {
        let line = stderr.lines().find(|line| line.contains("listens on "))?;
        Some(line.split("listens on ").last()?.trim().to_owned())
    };
    let decided = || address(&process.stderr()).is_some() || !process.is_running();
    eventually("it listens or has ended", DEADLINE, decided).await;
    if let Some(url) = address(&process.stderr()) {
        return Some((process, url));
    }
    eprintln!("\n=== SKIPPED a real full disk: no mount namespace here ===\n{}", process.stderr());
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_calls_in_clear_words_and_everything_goes_on_once_there_is_space() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let setup = Setup::new("");
    let Some((process, url)) = serve_on_a_small_disk(&setup).await else { return };
    let ask = |message: String| {
        let params = json!({"name": "demo_echo", "arguments": {"message": message}});
        let request = Request::modern(&url, json!(1), "tools/call", params);
        let url = url.clone();
        async move { request.exchange(&url).await.answer() }
    };
    assert_eq!(ask("before".into()).await["result"]["content"][0]["text"], "before");
    // Somebody else fills the disk, to the last byte.
    let filler = format!("/proc/{}/root{}/filler", process.pid(), setup.data_dir().display());
    fill(Path::new(&filler));
    let ready = url.replace("/mcp", "/readyz");
    let mut refused = None;
    for number in 0..200 {
        let answer = ask(format!("{number} {}", "x".repeat(50_000))).await;
        if !answer["error"].is_null() {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a full disk takes no 10 MB");
    assert_eq!(refused["error"]["code"], -31503, "{refused}");
    assert_eq!(refused["error"]["data"]["retryable"], true, "{refused}");
    assert!(!refused.to_string().contains("durable-mcp.db"), "no path of the server is told: {refused}");
    let health = Request::new("GET", &ready).exchange(&ready).await;
    assert_eq!(health.status, 503, "{health:?}");
    assert!(process.stderr().lines().any(|line| line.contains("disk")), "the log says why:\n{}", process.stderr());
    std::fs::remove_file(&filler).unwrap();
    let answers = async || ask("after".into()).await["result"]["content"][0]["text"] == "after";
    eventually_async("calls go on once there is space", DEADLINE, answers).await;
    let is_ready = async || Request::new("GET", &ready).exchange(&ready).await.status == 200;
    eventually_async("ready again once there is space", DEADLINE, is_ready).await;
}

fn fill(path: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    for size in [1 << 16, 1 << 12, 1 << 8, 1] {
        while file.write_all(&vec![0; size]).and_then(|()| file.sync_data()).is_ok() {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_at_the_start_ends_it_with_one_line() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folder = scratch();
    let script = "mount -t tmpfs -o size=64k tmpfs \"$1\" || exit 77\nexec \"$2\" serve --listen 127.0.0.1:0";
    let data_dir = folder.path().to_str().unwrap();
    let words = ["-rm", "sh", "-c", script, "sh", data_dir, program_binary().to_str().unwrap()].map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut process = Process::start("unshare", &words, &[("DURABLE_MCP_DATA_DIR", data_dir)]);
    let status = process.exit(DEADLINE).await;
    let stderr = process.stderr();
    if status.code() == Some(77) || stderr.contains("unshare") {
        eprintln!("\n=== SKIPPED a full disk at the start: no mount namespace here ===\n");
        return;
    }
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains("disk is full"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_there_is_not_is_named_with_those_there_are() {
    let ran = Setup::new("").cli(&["serve", "--roles", "king"]).await;
    assert_eq!(ran.status.code(), Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("`king`") && ran.stderr.contains("`scheduler`"), "{}", ran.stderr);
}
