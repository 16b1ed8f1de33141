//! The commands that look after a store, on a PostgreSQL database: what a file offers, a database offers by its URL, and
//! where it does not, the words say what to do.

use std::path::Path;
use std::sync::{Arc, Mutex};

use clap::Parser;
use serde_json::Value;

use crate::cli::args::{Cli, Command};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Output;
use crate::cli::schemas::OUTPUTS;
use crate::cli::{db, doctor, executions};
use crate::store::conformance::{Scene, cases};
use crate::store::postgres::{PostgresSettings, Throwaway};
use crate::store::transfer::tests::Filled;

use crate::store::postgres::tests::cluster::Cluster;

struct Place {
    folder: tempfile::TempDir,
    cluster: Cluster,
    ground: Throwaway,
}

impl Place {
    async fn new() -> Option<Place> {
        let cluster = Cluster::start().await?;
        let ground = Throwaway::create(&cluster.url(), &PostgresSettings::for_tests()).await.unwrap();
        let place = Place { folder: tempfile::tempdir().unwrap(), cluster, ground };
        let config = format!(
            "[store]\nurl = {:?}\nschema = {:?}\ndata_dir = {:?}\n",
            place.cluster.url(),
            place.ground.name(),
            place.folder.path()
        );
        std::fs::write(place.at("durable.toml"), config).unwrap();
        Some(place)
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs a command with this database as its store; what it printed, and how it ended.
    async fn run(&self, line: &str) -> (Result<Exit, Failure>, String) {
        let (out, written): (Output, Arc<Mutex<Vec<u8>>>) = Output::in_memory(false);
        let config = self.at("durable.toml");
        let words = line.split_whitespace().map(|word| word.replace("CONFIG", &config));
        let cli = Cli::try_parse_from(std::iter::once("durable-mcp".to_owned()).chain(words)).unwrap();
        let ended = match cli.command {
            Command::Executions(args) => executions::run(args, out).await,
            Command::Db(args) => db::run(args, out).await,
            Command::Doctor(args) => doctor::run(args, out).await,
            _ => panic!("{line} is not tested here"),
        };
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        (ended, text)
    }

    /// The same; it has to end well.
    async fn ok(&self, line: &str) -> String {
        let (ended, text) = self.run(line).await;
        assert_eq!(ended, Ok(Exit::Ok), "{line}: {text}");
        text
    }

    /// The same; it has to be refused. What it says.
    async fn refused(&self, line: &str, exit: Exit) -> String {
        let (ended, _) = self.run(line).await;
        let failure = ended.expect_err(line);
        assert_eq!(failure.exit, exit as u8, "{line}: {failure}");
        failure.to_string()
    }
}

/// Lines of JSON, each as the schema of its command says.
fn lines(command: &str, text: &str) -> Vec<Value> {
    let output = OUTPUTS.iter().find(|output| output.command == command).unwrap();
    let schema = jsonschema::validator_for(&output.schema()).unwrap();
    let read = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(schema.is_valid(&value), "{command}: {line}");
        value
    };
    text.lines().map(read).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_migrated_looked_at_verified_and_pruned() {
    let Some(place) = Place::new().await else { return };
    assert_eq!(place.run("db status --config CONFIG").await, (Ok(Exit::Failure), String::new()));
    let early = place.refused("db prune --dry-run --config CONFIG", Exit::Failure).await;
    assert!(early.contains("durable-mcp db migrate"), "{early}");
    place.ok("db migrate --config CONFIG --role serves").await;

    let mut scene = Scene::open(&place.ground, "cli").await.unwrap();
    let (first, second) = (scene.call("{}"), scene.repeatable("{}"));
    let ended = scene.completed(first, "{\"content\":[]}").await.unwrap().id().to_string();
    scene.new_execution(second).await.unwrap();
    let status = lines("db status", &place.ok("db status --config CONFIG --json").await);
    let [status] = &status[..] else { panic!("{status:?}") };
    assert_eq!((&status["executions"], &status["states"]["completed"]), (&2.into(), &1.into()));
    assert_eq!((&status["vendor"], &status["processes_alive"]), (&"postgresql".into(), &1.into()));
    assert_eq!((&status["isolation"], &status["encryption"]), (&"serializable".into(), &"".into()));
    let told = place.ok("db status --config CONFIG").await;
    assert!(told.contains("2: 1 ready, 1 completed") || told.contains("2: 1 completed, 1 ready"), "{told}");
    assert!(!told.contains(&place.cluster.password()), "{told}");

    let listed = place.ok("executions list --config CONFIG --json").await;
    assert_eq!(listed.lines().count(), 2);
    let result = place.ok(&format!("executions result {ended} --config CONFIG")).await;
    assert_eq!(result, "{\"content\":[]}\n");
    let cancelled = scene.call("{\"other\":1}");
    let other = scene.new_execution(cancelled).await.unwrap().id();
    place.ok(&format!("executions cancel {other} --reason enough --yes --config CONFIG")).await;

    let verified = lines("db verify", &place.ok("db verify --config CONFIG --json").await);
    assert_eq!((&verified[0]["executions"], &verified[0]["findings"]), (&3.into(), &0.into()));
    let dry = lines("db prune", &place.ok("db prune --config CONFIG --older-than 1s --dry-run --json").await);
    // The scene's clock is ahead: nothing of it is old enough yet.
    assert_eq!(dry[0]["executions"], 0);
    let client = place.client().await;
    client
        .batch_execute("UPDATE executions SET ended_at_ms = 1700000000000 WHERE ended_at_ms IS NOT NULL")
        .await
        .unwrap();
    let dry = lines("db prune", &place.ok("db prune --config CONFIG --older-than 1s --dry-run --json").await);
    let done = lines("db prune", &place.ok("db prune --config CONFIG --older-than 1s --json").await);
    assert_eq!((&dry[0]["executions"], &done[0]["executions"]), (&2.into(), &2.into()));
    let left = place.ok("executions list --config CONFIG --json").await;
    assert_eq!(left.lines().count(), 1);
    scene.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_can_be_changed_is_found_and_the_words_mend_it() {
    let Some(place) = Place::new().await else { return };
    place.ok("db migrate --config CONFIG").await;
    let client = place.client().await;
    let found = async || {
        let (ended, text) = place.run("db verify --config CONFIG --json").await;
        let mut lines = lines("db verify", &text);
        let sum = lines.pop().unwrap();
        assert_eq!(ended, Ok(if lines.is_empty() { Exit::Ok } else { Exit::Failure }), "{text}");
        assert_eq!(sum["findings"], lines.len(), "{text}");
        assert!(lines.iter().all(|line| line["rule"] == "schema" && line["execution"].is_null()), "{text}");
        lines.iter().map(|line| line["what"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found().await, [""; 0]);
    let breaks = [
        ("DROP TRIGGER execution_events_are_never_changed ON execution_events", "execution_events is missing"),
        ("DROP TRIGGER executions_are_never_emptied ON executions", "executions is missing"),
        (
            "ALTER TABLE execution_events DISABLE TRIGGER execution_events_go_with_their_execution",
            "execution_events is off",
        ),
        ("ALTER TABLE executions ENABLE REPLICA TRIGGER executions_are_deleted_after_their_end", "executions is off"),
        (
            "CREATE FUNCTION let_be() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; \
             CREATE OR REPLACE TRIGGER execution_events_are_never_emptied BEFORE TRUNCATE ON execution_events \
             FOR EACH STATEMENT EXECUTE FUNCTION let_be()",
            "calls let_be",
        ),
    ];
    for (sql, told) in breaks {
        client.batch_execute(sql).await.unwrap();
        let all = found().await;
        let [what] = &all[..] else { panic!("{sql}: {all:?}") };
        assert!(what.contains(told), "{sql}: {what}");
        // What is said to mend it does.
        client.batch_execute(what.split('`').nth(1).unwrap()).await.unwrap();
        assert_eq!(found().await, [""; 0], "{sql}");
    }
    let harmless = "CREATE OR REPLACE FUNCTION refuse_early_deletion() RETURNS trigger LANGUAGE plpgsql AS \
                    $$ BEGIN RETURN OLD; END $$";
    client.batch_execute(harmless).await.unwrap();
    let all = found().await;
    assert!(!all.is_empty() && all.iter().all(|what| what.contains("refuse_early_deletion")), "{all:?}");
    // A trigger of somebody's own is none of ours.
    client
        .batch_execute(
            "CREATE TRIGGER theirs BEFORE INSERT ON executions FOR EACH ROW EXECUTE FUNCTION refuse_early_deletion()",
        )
        .await
        .unwrap();
    assert_eq!(found().await.len(), all.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_becomes_a_database_and_a_file_again() {
    let Some(place) = Place::new().await else { return };
    let filled = Filled::new().await;
    let (file, archive, back) = (filled.store(), place.at("a.archive"), place.at("back.db"));
    place.ok(&format!("db restore {} --config CONFIG", file.display())).await;
    let full = place.refused(&format!("db restore {} --config CONFIG", file.display()), Exit::Conflict).await;
    assert!(full.contains("holds executions"), "{full}");
    let forced = place.refused(&format!("db restore {} --force --config CONFIG", file.display()), Exit::Usage).await;
    assert!(forced.contains("--force puts a file aside"), "{forced}");
    let copy = place.refused(&format!("db backup {archive} --config CONFIG"), Exit::Usage).await;
    assert!(copy.contains("--archive"), "{copy}");
    place.ok(&format!("db backup {archive} --archive --config CONFIG")).await;
    place.ok(&format!("db restore {archive} --into {back}")).await;
    let sums = crate::store::transfer::tests::sums_of;
    assert_eq!(sums(Path::new(&back)).await, sums(&file).await);
    let role = place.refused(&format!("db migrate --role serves --store sqlite:{back}"), Exit::Usage).await;
    assert!(role.contains("PostgreSQL"), "{role}");
    let reserved = place.refused("db migrate --role public --config CONFIG", Exit::Usage).await;
    assert!(reserved.contains("can not be the name"), "{reserved}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_says_how_a_database_is() {
    let Some(place) = Place::new().await else { return };
    let of_store = |text: &str| -> Vec<(String, String)> {
        let checks = lines("doctor", text).into_iter().filter(|check| check["subject"] == "default");
        let pair = |check: Value| (check["check"].as_str().unwrap().into(), check["status"].as_str().unwrap().into());
        checks.map(pair).collect()
    };
    let names = ["store", "isolation", "tls", "log", "clock"];
    let (_, text) = place.run("doctor --config CONFIG --json --verbose").await;
    let checks = of_store(&text);
    assert_eq!(checks.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names, "{text}");
    assert_eq!(checks[0].1, "warn", "it has no schema yet: {text}");
    place.ok("db migrate --config CONFIG").await;
    let (_, text) = place.run("doctor --config CONFIG --json --verbose").await;
    assert!(of_store(&text).iter().all(|(_, status)| status == "ok"), "{text}");
    let config = std::fs::read_to_string(place.at("durable.toml")).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let elsewhere = config.replace(&format!(":{}/", place.cluster.port()), &format!(":{free}/"));
    std::fs::write(place.at("durable.toml"), elsewhere).unwrap();
    let (ended, text) = place.run("doctor --config CONFIG --json --verbose").await;
    assert_eq!((ended, of_store(&text)), (Ok(Exit::Failure), vec![("store".into(), "fail".into())]), "{text}");
    assert!(!text.contains(&place.cluster.password()), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_runs_against_a_database_and_leaves_nothing_there() {
    let Some(place) = Place::new().await else { return };
    let url = place.cluster.url();
    let wanted = cases().iter().filter(|case| case.name.contains("lease")).count();
    assert!(wanted > 3, "{wanted}");
    for isolation in ["serializable", "read-committed"] {
        let line = format!("db conformance --url {url} --isolation {isolation} --only lease --json");
        let report = lines("db conformance", &place.ok(&line).await);
        let kinds = |kind: &str| report.iter().filter(|line| line["type"] == kind).count();
        assert_eq!((kinds("database"), kinds("case"), kinds("sum")), (1, wanted, 1));
        assert_eq!(report[0]["isolation"].as_str().unwrap().replace(' ', "-"), isolation);
        assert_eq!(report.last().unwrap()["passed"], wanted);
        assert!(report.iter().all(|line| line["type"] != "case" || line["ok"] == true), "{report:?}");
    }
    // A case that can not hold within its time is a failure, and is cleaned up after all the same.
    let (ended, text) = place.run(&format!("db conformance --url {url} --only sixty_four --timeout 1ms")).await;
    assert_eq!(ended, Ok(Exit::Failure), "{text}");
    assert!(text.contains("FAIL") && text.ends_with("0 cases hold, 1 do not\n"), "{text}");
    let left = place
        .client()
        .await
        .query_typed("SELECT nspname::TEXT FROM pg_namespace WHERE nspname LIKE 'durable_mcp_conformance_%'", &[])
        .await
        .unwrap();
    let left: Vec<&str> = left.iter().map(|row| row.get(0)).collect();
    assert_eq!(left, [place.ground.name()], "only that of this test itself");

    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = place.refused(&format!("db conformance --url postgres://u:s3cret@{free}/d"), Exit::Unreachable).await;
    assert!(away.contains(&free.to_string()) && !away.contains("s3cret"), "{away}");
    place.refused("db conformance --url sqlite:a.db", Exit::Usage).await;
    place.refused(&format!("db conformance --url {url} --only nothing_like_it"), Exit::Usage).await;
}

impl Place {
    async fn client(&self) -> tokio_postgres::Client {
        let url = self.cluster.url();
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("SET search_path = {}", self.ground.name())).await.unwrap();
        client
    }
}
