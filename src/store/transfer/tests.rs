//! Archives and restores: every table and byte arrives, whatever is damaged is refused, and what is refused leaves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{NOT_CARRIED, NOT_CARRIED_COLUMNS, PAGE_BYTES, PAGE_ROWS, Source, Sums, TABLES, archive};
use super::{into_archive, into_sqlite};
use crate::model::execution::State;
use crate::store::conformance::{Ground, Scene};
use crate::store::sqlite::{SqliteSettings, SqliteStore};
use crate::store::{Error, PayloadKind, Result, Store};

const NOW_MS: i64 = 1_800_000_000_000;

/// A folder with a store in it that has rows in every table.
pub(crate) struct Filled {
    pub(crate) folder: TempDir,
    results: BTreeMap<String, String>,
}

struct Place(PathBuf);

#[async_trait]
impl Ground for Place {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(SqliteStore::open(&self.0, &SqliteSettings::for_tests()).await?))
    }
}

impl Filled {
    pub(crate) async fn new() -> Filled {
        let folder = tempfile::tempdir().unwrap();
        let mut filled = Filled { folder, results: BTreeMap::new() };
        let place = Place(filled.store());
        let mut scene = Scene::open(&place, "transfer").await.unwrap();
        let results = [
            "1.10".to_owned(),
            "{\"b\":1,\"a\":[ 1e400 , \"\\u0000 \\ud800 ∞\" ]}".to_owned(),
            format!("\"{}\"", "é".repeat(1_500_000)),
        ];
        let mut ids = Vec::new();
        for (n, result) in results.iter().enumerate() {
            let submit = scene.keyed(&format!("k{n}"), &format!("{{\"n\":{n}.0}}"));
            let head = scene.completed(submit, result).await.unwrap();
            filled.results.insert(head.id().to_string(), result.clone());
            ids.push(head.id().to_string());
        }
        for n in 0..PAGE_ROWS + 10 {
            let submit = scene.call(&format!("{{\"n\":{n}}}"));
            scene.new_execution(submit).await.unwrap();
        }
        let submit = scene.repeatable("{}");
        let running = scene.new_execution(submit).await.unwrap().id();
        scene.lease(running).await.unwrap();
        scene.store.close().await;
        filled.rest(&ids[0]);
        filled
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// One row of each table that no call fills.
    fn rest(&self, id: &str) {
        let database = Connection::open(self.store()).unwrap();
        let worker = "0190a0a0-0000-7000-8000-00000000000a";
        let rows = format!(
            "INSERT INTO steps VALUES ('{id}', 'charge', '{{\"ok\":true}}', 1, 5);
             INSERT INTO checkpoints VALUES ('{id}', '[1]', 1, 6);
             INSERT INTO input_requests (execution_id, number, round, attempt, parked, key, name, method, params,
                 params_hash, state, asked_at_ms, outcome, answer, answer_hash, answered_at_ms, answered_by)
                 VALUES ('{id}', 1, 1, 1, 1, 'k', 'n', 'elicitation/create', '{{}}', 'h', NULL, 7, 'result', '{{}}', 'h', 8, 'ann');
             INSERT INTO tasks VALUES ('{id}', 'default', 'ann', 'extension', 10, 5, 15, 'cancel', NULL, '\"t\"');
             INSERT INTO sessions VALUES ('abc', 'default', 'Default', 'ann', '2025-11-25', 'c', '{{}}', '{{}}', NULL, 1, 2, NULL);
             INSERT INTO session_subscriptions VALUES ('abc', 'file:///a');
             INSERT INTO session_messages VALUES ('abc', 's', 0, '1', '{id}', NULL, '{{}}', 3);
             INSERT INTO session_messages VALUES ('abc', 's', 1, NULL, NULL, 'p', '{{}}', 4);
             INSERT INTO sealing_keys VALUES (1, 'beef', 1);
             INSERT INTO tokens VALUES ('p', 's', 'ann', 'default', 'call', 1, NULL, NULL);
             INSERT INTO upstreams VALUES ('crm', '{{}}', 1);
             INSERT INTO workers VALUES ('{worker}', 'w', 'default', 'ann', 'remote', 4, NULL, '[]', 'feed', 1, 2, 3, 0, NULL);
             INSERT INTO workers VALUES ('0190a0a0-0000-7000-8000-00000000000b', 'l', 'default', 'ann', 'local', 4, NULL, '[]', '', 1, 2, 3, 0, NULL);"
        );
        database.execute_batch(&rows).unwrap();
    }
}

/// Rows and digests of a store, as it is now.
pub(crate) async fn sums_of(store: &Path) -> Sums {
    sum(crate::store::sqlite::rows_of(store)).await
}

/// Rows and digests of what comes.
pub(crate) async fn sum(mut parts: super::Parts) -> Sums {
    let mut sums = Sums::default();
    while let Some(part) = parts.recv().await {
        match part.unwrap() {
            super::Part::Page(page) => {
                assert!(page.rows.len() <= PAGE_ROWS, "a page holds so many rows at most");
                let bytes: usize = page.rows.iter().flatten().map(super::Cell::size).sum();
                assert!(page.rows.len() == 1 || bytes < 2 * PAGE_BYTES + 4096, "{bytes}");
                sums.add(&page);
            }
            super::Part::End => return sums,
        }
    }
    panic!("it broke off");
}

/// The names in a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_and_byte_arrives_in_another_store() {
    let filled = Filled::new().await;
    let (to, copy) = (filled.at("store.archive"), filled.at("copy.db"));
    let written = into_archive(&Source::Sqlite(filled.store()), &to, false, true).await.unwrap();
    assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for table in TABLES {
        assert!(written.sums.rows(table.name) > 0, "{} has no row to carry", table.name);
    }
    assert_eq!(written.sums.rows("workers"), 1, "a worker of a process stays with it");
    assert!(archive::is_archive(&to) && !archive::is_archive(&filled.store()));
    assert!(matches!(Source::of_file(&to), Source::Archive(_)));

    let (restored, carried) = into_sqlite(&Source::Archive(to.clone()), &copy, false, NOW_MS).await.unwrap();
    assert_eq!((restored.old, carried.sums.differs(&written.sums)), (None, None));
    let verified = carried.verified.unwrap();
    assert_eq!((verified.findings, verified.executions), (0, written.sums.rows("executions")));
    assert_eq!(sums_of(&copy).await.differs(&written.sums), None);
    assert!(!names(filled.folder.path()).iter().any(|name| name.contains(".restoring") || name.contains(".checking")));

    // What the program reads there is what it wrote here, and it goes on.
    let scene = Scene::open(&Place(copy.clone()), "after").await.unwrap();
    for (id, result) in &filled.results {
        let payload = scene.store.payload(id.parse().unwrap(), PayloadKind::Result).await.unwrap().unwrap();
        assert!(*payload == **result, "{id} has another result");
    }
    assert_eq!(scene.store.totals().await.unwrap()[&State::Ready], PAGE_ROWS as u64 + 10);
    let dead = scene.store.dead_processes(NOW_MS).await.unwrap();
    assert_eq!(
        dead.len(),
        2,
        "the process whose call ran when the archive was made is dead here, the worker is silent"
    );
    scene.store.close().await;

    // Directly, without a file between, and a second archive is equal to the first.
    let (_, direct) =
        into_sqlite(&Source::Sqlite(filled.store()), &filled.at("direct.db"), false, NOW_MS).await.unwrap();
    assert_eq!(direct.sums, carried.sums);
    let again = filled.at("again.archive");
    into_archive(&Source::Sqlite(filled.at("direct.db")), &again, false, false).await.unwrap();
    assert!(fs::read(&to).unwrap() == fs::read(&again).unwrap(), "the same store, the same archive");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_of_one_row_shows_in_the_sums() {
    let filled = Filled::new().await;
    let before = sums_of(&filled.store()).await;
    let database = Connection::open(filled.store()).unwrap();
    database.execute("UPDATE tokens SET scopes = 'read'", []).unwrap();
    assert_eq!(sums_of(&filled.store()).await.differs(&before), Some("tokens"));
    database.execute("UPDATE tokens SET scopes = 'call'", []).unwrap();
    assert_eq!(sums_of(&filled.store()).await.differs(&before), None);
    database.execute("DELETE FROM upstreams", []).unwrap();
    assert_eq!(sums_of(&filled.store()).await.differs(&before), Some("upstreams"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_or_changed_archive_is_refused_and_nothing_of_it_stays() {
    let filled = Filled::new().await;
    let whole = filled.at("whole.archive");
    // Small enough to be damaged at every place: the rows that are large or many are left out.
    let small = filled.at("small.db");
    let (_, _) = into_sqlite(&Source::Sqlite(filled.store()), &small, false, NOW_MS).await.unwrap();
    let database = Connection::open(&small).unwrap();
    let keep = "(SELECT execution_id FROM steps)";
    database
        .execute_batch(&format!(
            "DROP TRIGGER executions_are_deleted_after_their_end;
             DELETE FROM executions WHERE id NOT IN {keep};
             DELETE FROM execution_events WHERE execution_id NOT IN (SELECT id FROM executions);
             DELETE FROM short_payloads WHERE execution_id NOT IN (SELECT id FROM executions);
             DELETE FROM payload_pieces WHERE execution_id NOT IN (SELECT id FROM executions);
             DELETE FROM idempotency_keys WHERE execution_id NOT IN (SELECT id FROM executions);"
        ))
        .unwrap();
    drop(database);
    let carried = into_archive(&Source::Sqlite(small), &whole, false, false).await.unwrap();
    assert_eq!(carried.sums.rows("executions"), 1);
    let bytes = fs::read(&whole).unwrap();
    assert!(bytes.len() < 20_000, "{}", bytes.len());
    archive::each(&whole, &mut |_| Ok(())).unwrap();

    let bad = filled.at("bad.archive");
    let mut refused = 0;
    let mut check = |bytes: &[u8], what: &str| {
        fs::write(&bad, bytes).unwrap();
        let error = archive::each(&bad, &mut |_| Ok(())).expect_err(what);
        assert!(matches!(error, Error::Damaged(_) | Error::Unavailable(_)), "{what}: {error}");
        refused += 1;
    };
    // The ends byte by byte, what lies between in steps that meet every kind of field.
    let places = |of: usize| (0..of).filter(move |at| *at < 200 || at + 200 > of || at % 5 == 0);
    for length in places(bytes.len()) {
        check(&bytes[..length], &format!("cut at {length}"));
    }
    for at in places(bytes.len()) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        check(&changed, &format!("byte {at} changed"));
    }
    check(&[bytes.as_slice(), b"\n"].concat(), "one byte more");
    assert!(refused > bytes.len() / 3, "{refused} of {}", bytes.len());

    // A store that was there stays as it is, and nothing lies beside it.
    let target = filled.at("target.db");
    into_sqlite(&Source::Archive(whole.clone()), &target, false, NOW_MS).await.unwrap();
    let (before, lying) = (fs::read(&target).unwrap(), names(filled.folder.path()));
    for damaged in [&bytes[..bytes.len() / 2], &bytes[..bytes.len() - 1]] {
        fs::write(&bad, damaged).unwrap();
        let refused = into_sqlite(&Source::Archive(bad.clone()), &target, true, NOW_MS).await.unwrap_err();
        assert!(matches!(refused, Error::Damaged(_)), "{refused}");
    }
    assert!(fs::read(&target).unwrap() == before, "the store was changed");
    assert_eq!(names(filled.folder.path()), lying);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_hold_together_is_neither_written_nor_restored() {
    let filled = Filled::new().await;
    let database = Connection::open(filled.store()).unwrap();
    // A row that says more than its events do.
    database.execute("UPDATE executions SET error_message = 'x', error_code = 'y' WHERE state = 'ready'", []).unwrap();
    drop(database);
    let to = filled.at("store.archive");
    let refused = into_archive(&Source::Sqlite(filled.store()), &to, false, true).await.unwrap_err();
    assert!(matches!(&refused, Error::Damaged(text) if text.contains("fold")), "{refused}");
    assert!(
        !names(filled.folder.path()).iter().any(|name| name.contains("archive")),
        "{:?}",
        names(filled.folder.path())
    );
    // Whoever insists gets it; a restore does not take it.
    into_archive(&Source::Sqlite(filled.store()), &to, false, false).await.unwrap();
    let target = filled.at("target.db");
    let refused = into_sqlite(&Source::Archive(to), &target, false, NOW_MS).await.unwrap_err();
    assert!(matches!(&refused, Error::Damaged(text) if text.contains("fold")), "{refused}");
    assert!(!target.exists() && !filled.at("target.db.restoring").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_used_or_full_is_not_replaced_by_an_archive() {
    let filled = Filled::new().await;
    let to = filled.at("store.archive");
    into_archive(&Source::Sqlite(filled.store()), &to, false, false).await.unwrap();
    let exists = into_archive(&Source::Sqlite(filled.store()), &to, false, false).await.unwrap_err();
    assert!(exists.to_string().contains("exists already"), "{exists}");
    let source = Source::Archive(to);
    let full = into_sqlite(&source, &filled.store(), false, NOW_MS).await.unwrap_err();
    assert!(full.to_string().contains("holds executions"), "{full}");
    let scene = Scene::open(&Place(filled.store()), "user").await.unwrap();
    let used = into_sqlite(&source, &filled.store(), true, NOW_MS).await.unwrap_err();
    assert!(used.to_string().contains("in use"), "{used}");
    scene.store.close().await;
    let (restored, _) = into_sqlite(&source, &filled.store(), true, NOW_MS).await.unwrap();
    assert!(restored.old.unwrap().exists(), "the old one is put aside");
}

#[test]
fn every_table_and_column_of_the_schema_travels_or_is_named_as_staying() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.db");
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(async {
        SqliteStore::open(&path, &SqliteSettings::for_tests()).await.unwrap().close().await;
    });
    let database = Connection::open(&path).unwrap();
    let mut statement = database
        .prepare(
            // Payloads are a view of two tables, and travel as what the larger one has.
            "SELECT replace(m.name, 'payload_pieces', 'payloads'), c.name, c.type, c.\"notnull\" \
             FROM sqlite_schema m, pragma_table_info(m.name) c \
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name <> 'short_payloads'",
        )
        .unwrap();
    let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    let mut schema: BTreeMap<String, BTreeMap<String, (String, bool)>> = BTreeMap::new();
    for column in columns {
        let (table, name, kind, never_null): (String, String, String, bool) = column.unwrap();
        schema.entry(table).or_default().insert(name, (kind, never_null));
    }
    let elsewhere = ["schema_history", "schema_guard"];
    let stay = NOT_CARRIED.iter().copied().filter(|name| !elsewhere.contains(name));
    let known: BTreeSet<&str> = TABLES.iter().map(|table| table.name).chain(stay).collect();
    assert_eq!(schema.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
    for table in TABLES {
        let stays = |name: &str| NOT_CARRIED_COLUMNS.contains(&(table.name, name));
        let there: BTreeSet<&str> = schema[table.name].keys().map(String::as_str).filter(|name| !stays(name)).collect();
        assert_eq!(table.columns.iter().map(|column| column.name).collect::<BTreeSet<_>>(), there, "{}", table.name);
        for column in table.columns {
            let (kind, never_null) = &schema[table.name][column.name];
            let wanted = match column.kind {
                super::Kind::Number | super::Kind::Flag => "INTEGER",
                super::Kind::Id | super::Kind::Text => "TEXT",
                super::Kind::Operation => "BLOB",
            };
            assert_eq!((kind.as_str(), !never_null), (wanted, column.optional), "{}.{}", table.name, column.name);
        }
    }
}
