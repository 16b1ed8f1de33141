//! `db verify` on real files: sound ones pass, also while they are written; each planted fault is found by its rule.

use std::ops::ControlFlow;

use rusqlite::Connection;

use super::super::{Told, Verified, inspect, status, verify, writable};
use super::TempFile;
use crate::store::conformance::Scene;
use crate::store::verify::{Finding, Rule};
use crate::store::{Retention, SqliteSettings};

/// A completed call with a large result, a keyed one that runs, one that waits.
async fn filled(file: &TempFile) -> Scene {
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    scene.completed(submit, &"x".repeat(3_000)).await.unwrap();
    let submit = scene.keyed("k", "{}");
    let id = scene.new_execution(submit).await.unwrap().id();
    scene.lease(id).await.unwrap();
    let submit = scene.repeatable("{}");
    scene.new_execution(submit).await.unwrap();
    scene
}

fn small_pieces() -> TempFile {
    TempFile::with(|settings: &mut SqliteSettings| settings.payload_chunk_bytes = 1_000)
}

fn findings(file: &TempFile) -> (Verified, Vec<Finding>) {
    let mut found = Vec::new();
    let verified = verify(&file.path(), &mut |told| {
        if let Told::Found(finding) = told {
            found.push(finding);
        }
        ControlFlow::Continue(())
    });
    (verified.unwrap(), found)
}

/// Runs SQL that the database refuses: its guards step aside and are there again, as they were.
fn plant(connection: &Connection, sql: &str) {
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").unwrap();
    let triggers: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    for (name, _) in &triggers {
        connection.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    connection.execute_batch(sql).unwrap();
    for (_, sql) in &triggers {
        connection.execute_batch(sql).unwrap();
    }
}

#[tokio::test]
async fn a_sound_store_passes_also_while_it_is_open() {
    let file = small_pieces();
    let mut scene = filled(&file).await;
    let (verified, found) = findings(&file);
    assert_eq!(found, []);
    assert_eq!(verified, Verified { executions: 3, events: 6, payloads: 4, keys: 1, findings: 0 });
    scene.now_ms += 100_000;
    scene.store.prune(Retention { payloads_ms: 0, executions_ms: 1_000_000, batch: 10 }, scene.now_ms).await.unwrap();
    scene.store.close().await;
    assert_eq!(findings(&file).1, [], "without payloads and without a process");
}

#[tokio::test]
async fn each_planted_fault_is_found_by_its_rule() {
    for (sql, expected) in [
        ("DELETE FROM execution_events WHERE seq = 2 AND type = 'leased'", vec![Rule::Gapless, Rule::Fold]),
        ("UPDATE executions SET notes = 5 WHERE state = 'completed'", vec![Rule::Fold]),
        ("UPDATE executions SET is_error = 1 WHERE state = 'completed'", vec![Rule::Fold]),
        ("UPDATE execution_events SET body = '{' WHERE type = 'completed'", vec![Rule::Readable]),
        (
            "UPDATE execution_events SET type = 'promoted', body = '{}' WHERE type = 'completed'",
            vec![Rule::Fold, Rule::Final, Rule::Payload],
        ),
        ("UPDATE payload_pieces SET body = 'other' WHERE kind = 'result' AND chunk = 1", vec![Rule::Payload]),
        ("DELETE FROM payload_pieces WHERE kind = 'result' AND chunk = 1", vec![Rule::Payload]),
        ("DELETE FROM payload_pieces WHERE kind = 'result' AND chunk = 2", vec![Rule::Payload]),
        ("DELETE FROM payload_pieces WHERE kind = 'result'", vec![Rule::Payload]),
        ("DELETE FROM short_payloads WHERE kind = 'arguments'", vec![Rule::Payload]),
        (
            "UPDATE short_payloads SET execution_id = 'gone' WHERE kind = 'arguments' \
             AND execution_id = (SELECT max(execution_id) FROM short_payloads)",
            vec![Rule::Payload, Rule::Orphan],
        ),
        ("UPDATE executions SET payloads_kept = 0 WHERE state = 'completed'", vec![Rule::Payload]),
        ("DELETE FROM idempotency_keys", vec![Rule::Key]),
        ("UPDATE idempotency_keys SET execution_id = 'gone'", vec![Rule::Key]),
        ("UPDATE idempotency_keys SET key = 'other'", vec![Rule::Key]),
        ("DELETE FROM executions WHERE state = 'completed'", vec![Rule::Orphan]),
        ("UPDATE policies SET policy = policy || ' '", vec![Rule::Payload]),
        ("UPDATE executions SET id = upper(id) WHERE state = 'completed'", vec![Rule::Readable, Rule::Orphan]),
        ("UPDATE executions SET effect_key = 'x' WHERE state = 'completed'", vec![Rule::Readable]),
        ("DROP INDEX executions_queue", vec![Rule::Schema]),
        ("CREATE TABLE notes (id INTEGER)", vec![Rule::Schema]),
    ] {
        let file = small_pieces();
        let scene = filled(&file).await;
        scene.store.close().await;
        plant(&file.raw(), sql);
        let (verified, found) = findings(&file);
        let mut rules: Vec<Rule> = found.iter().map(|finding| finding.rule).collect();
        rules.dedup();
        assert!(rules.iter().all(|rule| expected.contains(rule)), "{sql}: {found:?}");
        assert!(expected.iter().all(|rule| rules.contains(rule)), "{sql}: {found:?}");
        assert_eq!(verified.findings, found.len() as u64, "{sql}");
    }
}

#[tokio::test]
async fn a_guard_that_is_gone_is_found() {
    let file = TempFile::new();
    drop(file.scene().await);
    file.raw().execute_batch("DROP TRIGGER execution_events_are_never_changed").unwrap();
    let found = findings(&file).1;
    let expected = "trigger execution_events_are_never_changed is missing";
    assert_eq!(found, [Finding::of_file(Rule::Schema, expected)]);
}

#[tokio::test]
async fn damaged_pages_are_found_and_the_check_goes_on() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    for n in 0..200 {
        let submit = scene.call(&format!("{{\"n\":{n}}}"));
        scene.new_execution(submit).await.unwrap();
    }
    scene.store.close().await;
    let whole = std::fs::read(file.path()).unwrap();
    // A page without cells holds nothing that could be damaged there.
    let pages: Vec<usize> =
        (1..whole.len() / 4_096).filter(|page| whole[page * 4_096 + 3..page * 4_096 + 5] != [0, 0]).collect();
    let mut caught = 0;
    for page in &pages {
        let mut garbled = whole.clone();
        garbled[page * 4_096 + 8..page * 4_096 + 200].fill(0xA5);
        std::fs::write(file.path(), &garbled).unwrap();
        let mut count = 0;
        let verified = verify(&file.path(), &mut |told| {
            count += usize::from(matches!(told, Told::Found(_)));
            ControlFlow::Continue(())
        });
        // Where not even the schema can be read, there is an error instead.
        caught += usize::from(count > 0 || verified.is_err());
    }
    assert!(pages.len() > 30);
    assert_eq!(caught, pages.len());
}

#[tokio::test]
async fn a_check_ends_when_nobody_listens() {
    let file = TempFile::new();
    let scene = filled(&file).await;
    scene.store.close().await;
    plant(&file.raw(), "UPDATE executions SET notes = 5");
    let mut told = 0;
    let verified = verify(&file.path(), &mut |_| {
        told += 1;
        ControlFlow::Break(())
    });
    assert_eq!((told, verified.unwrap().findings), (1, 1));
}

#[tokio::test]
async fn a_look_at_a_file_changes_nothing_and_counts_what_is_there() {
    let file = TempFile::new();
    let scene = filled(&file).await;
    let seen = status(&file.path(), 0).unwrap();
    assert_eq!(seen.states.values().sum::<u64>(), 3);
    assert_eq!((seen.schema_version, seen.processes_alive, seen.processes_dead), (seen.schema_known, 1, 0));
    assert_eq!(seen.payload_bytes, 3_000 + 3 * 2);
    assert_eq!((seen.oldest_created_at_ms, seen.newest_event_at_ms), (Some(scene.now_ms), Some(scene.now_ms)));
    assert!(seen.wal_bytes > 0 && seen.wal_pages_waiting.is_some_and(|pages| pages > 0), "{seen:?}");
    writable(&file.path()).unwrap();
    scene.store.close().await;
    let seen = status(&file.path(), 0).unwrap();
    assert_eq!((seen.processes_alive, seen.processes_dead, seen.wal_bytes), (0, 1, 0));
    // An older store is looked at and stays as it is; one that is none of ours is refused.
    assert!(inspect::connect(&file.path().with_extension("other")).is_err());
    let other = TempFile::new();
    other.raw().execute_batch("CREATE TABLE notes (id INTEGER)").unwrap();
    assert!(status(&other.path(), 0).unwrap_err().to_string().contains("not a store"));
}
