//! Everything that can be in the way when a file is opened, each with one clear sentence.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use refinery::Migration;
use rusqlite::Connection;

use super::super::migrate::{self, migrations};
use super::super::open::{create_private, in_the_way};
use super::TempFile;
use crate::store::{Error, Store as _, StoreSettings, open};

async fn refusal(file: &TempFile) -> Error {
    match file.store().await {
        Ok(_) => panic!("{} was opened", file.path().display()),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n'), "{text}");
            assert!(text.contains("store"), "{text}");
            error
        }
    }
}

fn known() -> i64 {
    migrations().iter().map(|migration| i64::from(migration.version())).max().unwrap()
}

#[tokio::test]
async fn files_are_private() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    scene.new_execution(submit).await.unwrap();
    let mut seen = Vec::new();
    for entry in fs::read_dir(file.folder.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let expected = if name == "store.db.processes" { 0o700 } else { 0o600 };
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, expected, "{name}");
        seen.push(name);
    }
    seen.sort();
    let expected =
        ["store.db", "store.db-shm", "store.db-wal", "store.db.lock", "store.db.processes", "store.db.turns"];
    assert_eq!(seen, expected);
    let liveness = file.path().with_extension("db.processes").join(scene.process.to_string());
    assert_eq!(fs::metadata(liveness).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_folder_in_the_way_is_named() {
    let file = TempFile::new();
    fs::create_dir(file.path()).unwrap();
    let error = refusal(&file).await;
    assert!(matches!(&error, Error::Unavailable(text) if text.contains("is a folder")), "{error}");
}

#[tokio::test]
async fn a_missing_folder_is_named() {
    let file = TempFile::new();
    let url = format!("sqlite:{}/missing/store.db", file.folder.path().display());
    let error = open(&url, &of(&file)).await.err().unwrap();
    assert!(matches!(&error, Error::Unavailable(text) if text.contains("missing does not exist")), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    for text in ["hello", "a text that is longer than the header of a database"] {
        let file = TempFile::new();
        fs::write(file.path(), text).unwrap();
        let error = refusal(&file).await;
        assert!(matches!(&error, Error::Damaged(text) if text.contains("is not an SQLite database")), "{error}");
        assert_eq!(fs::read_to_string(file.path()).unwrap(), text);
    }
}

#[tokio::test]
async fn another_programs_database_is_left_alone() {
    let file = TempFile::new();
    file.raw().execute_batch("CREATE TABLE notes (id INTEGER)").unwrap();
    let error = refusal(&file).await;
    assert!(matches!(&error, Error::Damaged(text) if text.contains("another program")), "{error}");
    let tables: i64 = file.raw().query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
}

#[tokio::test]
async fn a_damaged_database_is_refused() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    for n in 0..50 {
        let submit = scene.call(&format!("{{\"n\":{n}}}"));
        scene.new_execution(submit).await.unwrap();
    }
    scene.store.close().await;
    drop(scene);
    let whole = fs::read(file.path()).unwrap();
    let mut garbled = whole.clone();
    garbled[8_192..8_292].fill(0xA5);
    let mut headless = whole.clone();
    headless[16..40].fill(0xFF);
    for (what, bytes) in [
        ("garbled", garbled),
        ("cut in half", whole[..whole.len() / 2].to_vec()),
        ("cut inside a page", whole[..whole.len() - 1_000].to_vec()),
        ("cut to the header", whole[..100].to_vec()),
        ("without a sane header", headless),
    ] {
        fs::write(file.path(), bytes).unwrap();
        let error = refusal(&file).await;
        assert!(matches!(&error, Error::Damaged(_)), "{what}: {error}");
        assert!(error.to_string().contains("store.db"), "{what}: {error}");
    }
    fs::write(file.path(), whole).unwrap();
    file.store().await.unwrap();
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let file = TempFile::new();
    drop(file.store().await.unwrap());
    let raw = file.raw();
    raw.execute_batch("UPDATE refinery_schema_history SET version = version + 900").unwrap();
    let error = refusal(&file).await;
    let known = known();
    assert!(matches!(error, Error::TooNew { found, known: k } if (found, k) == (known + 900, known)), "{error}");
}

#[tokio::test]
async fn an_edited_history_is_refused() {
    let file = TempFile::new();
    drop(file.store().await.unwrap());
    file.raw().execute_batch("UPDATE refinery_schema_history SET checksum = '1'").unwrap();
    let error = refusal(&file).await;
    assert!(matches!(&error, Error::Damaged(text) if text.contains("schema history")), "{error}");
}

#[tokio::test]
async fn an_older_database_is_copied_before_it_is_migrated() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await.unwrap().id();
    scene.store.close().await;
    let mut next = migrations();
    next.push(Migration::unapplied("V900__more", "ALTER TABLE upstreams ADD COLUMN note TEXT").unwrap());
    let mut connection = file.raw();
    migrate::run(&mut connection, &file.path(), &next).unwrap();
    connection.query_row("SELECT count(note) FROM upstreams", [], |_| Ok(())).unwrap();
    let known = known();
    let copy = file.path().with_extension(format!("db.before-upgrade-from-v{known}"));
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let copied: String =
        Connection::open(copy).unwrap().query_row("SELECT id FROM executions", [], |row| row.get(0)).unwrap();
    assert_eq!(copied, id.to_string());
    // A second time there is nothing to do, and a program that knows less steps back.
    migrate::run(&mut connection, &file.path(), &next).unwrap();
    let error = refusal(&file).await;
    assert!(matches!(error, Error::TooNew { found: 900, known: k } if k == known), "{error}");
}

#[tokio::test]
async fn a_database_of_the_first_release_is_migrated_with_what_is_in_it() {
    let file = TempFile::new();
    create_private(&file.path()).unwrap();
    migrate::run(&mut file.raw(), &file.path(), &migrations()[..1]).unwrap();
    let token = "INSERT INTO tokens VALUES ('p', 'h', 'ann', 'default', 'call', 1, NULL, NULL)";
    file.raw().execute_batch(token).unwrap();
    let store = file.store().await.unwrap();
    assert_eq!(store.tokens().await.unwrap().len(), 1);
    assert_eq!(store.workers(None).await.unwrap().unwrap().rows, []);
    assert!(file.folder.path().join("store.db.before-upgrade-from-v1").is_file());
}

#[tokio::test]
async fn a_migration_that_fails_changes_nothing() {
    let file = TempFile::new();
    file.store().await.unwrap();
    let mut next = migrations();
    let sql = "ALTER TABLE upstreams ADD COLUMN note TEXT; SELECT no_such_function();";
    next.push(Migration::unapplied("V900__broken", sql).unwrap());
    let mut connection = file.raw();
    let error = migrate::run(&mut connection, &file.path(), &next).unwrap_err();
    assert!(matches!(&error, Error::CannotWrite(text) if text.contains("present schema")), "{error}");
    assert!(connection.prepare("SELECT note FROM upstreams").is_err());
    file.store().await.unwrap();
}

#[tokio::test]
async fn a_database_locked_by_another_program_is_not_waited_for_for_ever() {
    let file = TempFile::with(|settings| settings.open_timeout_ms = 30);
    drop(file.store().await.unwrap());
    let lock = fs::File::open(file.path().with_extension("db.lock")).unwrap();
    lock.lock().unwrap();
    let error = refusal(&file).await;
    assert!(matches!(&error, Error::Unavailable(text) if text.contains("another process")), "{error}");
    lock.unlock().unwrap();
    let raw = file.raw();
    raw.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE store_checks SET count = 1; COMMIT")
        .unwrap();
    let error = refusal(&file).await;
    assert!(matches!(&error, Error::Unavailable(text) if text.contains("locked")), "{error}");
}

#[tokio::test]
async fn several_processes_may_open_a_new_file_at_once() {
    let file = TempFile::new();
    let (a, b, c, d) = tokio::join!(file.store(), file.store(), file.store(), file.store());
    for store in [a, b, c, d] {
        crate::store::Store::check(&store.unwrap()).await.unwrap();
    }
}

fn of(file: &TempFile) -> StoreSettings {
    StoreSettings { sqlite: file.settings.clone(), ..StoreSettings::default() }
}

#[tokio::test]
async fn a_name_is_a_path_and_no_uri() {
    let file = TempFile::new();
    let path = file.folder.path().join("a b?mode=memory%20#.db");
    let store = open(&format!("sqlite:{}", path.display()), &of(&file)).await.unwrap();
    store.check().await.unwrap();
    assert!(path.is_file());
    let store = open(&format!("sqlite://{}", path.display()), &of(&file)).await.unwrap();
    store.check().await.unwrap();
}

#[tokio::test]
async fn other_urls_are_refused_without_their_passwords() {
    let settings = StoreSettings::for_tests();
    for (url, word) in [
        ("postgres://ann:secret@127.0.0.1:1/x", "127.0.0.1"),
        ("mysql://ann:secret@db/x", "mysql"),
        ("store.db", "sqlite:PATH"),
        ("sqlite:", "names no file"),
    ] {
        let error = open(url, &settings).await.err().unwrap().to_string();
        assert!(error.contains(word) && !error.contains("secret"), "{url}: {error}");
    }
}

#[test]
fn what_the_operating_system_refuses_is_said_plainly() {
    let path = Path::new("/srv/store.db");
    let error = in_the_way(path, &io::Error::from(io::ErrorKind::PermissionDenied));
    assert_eq!(error.to_string(), "the store is not available: /srv/store.db: permission denied");
    let error = in_the_way(path, &io::Error::from(io::ErrorKind::ReadOnlyFilesystem));
    assert!(matches!(error, Error::CannotWrite(_)), "{error}");
}

#[test]
fn a_file_that_is_there_is_not_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    fs::write(&path, "kept").unwrap();
    create_private(&path).unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "kept");
}
