//! One bad command fails alone; a disk that is full or a lock that is held fails everybody and leaves nothing behind.

use std::collections::BTreeSet;

use futures_util::future::join_all;

use super::TempFile;
use crate::model::decide::{Answer, Command};
use crate::model::id::ExecutionId;
use crate::store::conformance::Scene;
use crate::store::{Error, ListQuery, Mark, Retention, Store as _, Submit, SubmitOutcome};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_command_in_a_batch_fails_alone() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    let taken = scene.new_execution(submit).await.unwrap().id();
    let calls: Vec<Submit> = (0..40)
        .map(|n| {
            let mut submit = scene.keyed(&format!("k{n}"), "{}");
            // A policy of its own, stored or not with its call.
            submit.submission.ident.policy.timeouts.attempt_ms += n;
            if n % 7 == 3 {
                // An id that exists already, under another operation.
                submit.submission.ident.id = taken;
            }
            submit
        })
        .collect();
    // While another program holds the lock everything queues up, so that the calls share a batch.
    let lock = file.raw();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let store = scene.store.clone();
    let first = scene.call(r#"{"first":1}"#);
    let request = scene.lease_request();
    let lease = scene.apply(taken, Command::Lease(request));
    let storm = async {
        let first = async { tokio::join!(biased; store.submit(first), store.apply(lease)) };
        let rest = join_all(calls.iter().cloned().map(|submit| store.submit(submit)));
        let release = async {
            tokio::task::yield_now().await;
            lock.execute_batch("COMMIT").unwrap();
        };
        tokio::join!(biased; first, rest, release)
    };
    let (first, outcomes, ()) = storm.await;
    assert!(matches!(first.0, Ok(SubmitOutcome::New(_))));
    let leased = first.1.unwrap().unwrap();
    assert_eq!(leased.answer, Answer::Leased { fencing_token: 1, attempt: 1 });
    for (n, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(SubmitOutcome::New(_)) => assert_ne!(n % 7, 3),
            Err(Error::Internal(text)) => assert!(n % 7 == 3 && text.contains(&taken.to_string()), "{n}: {text}"),
            other => panic!("{n}: {other:?}"),
        }
    }
    // The keys of the bad ones were given back.
    let submit = scene.keyed("k3", "{}");
    scene.new_execution(submit).await.unwrap();
    scene.check_row(taken).await.unwrap();
    // And the policies of the good ones are there.
    scene.store.close().await;
    let scene = file.scene().await;
    assert_eq!(scene.store.list(ListQuery { limit: 100, ..ListQuery::default() }).await.unwrap().len(), 37);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_keep_their_place_among_the_writes_of_a_batch() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    let lock = file.raw();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (other, submit, repeat) = (scene.call(r#"{"n":1}"#), scene.call("{}"), scene.call("{}"));
    let id = submit.submission.ident.id;
    let store = scene.store.clone();
    let marked = async {
        store.mark(id, Mark::Left(scene.process), scene.now_ms);
        store.submit(repeat).await
    };
    let release = async {
        tokio::task::yield_now().await;
        lock.execute_batch("COMMIT").unwrap();
    };
    let (other, stored, attached, ()) =
        tokio::join!(biased; store.submit(other), store.submit(submit), marked, release);
    assert!(matches!(other, Ok(SubmitOutcome::New(_))));
    assert!(matches!(stored, Ok(SubmitOutcome::New(_))));
    assert!(matches!(attached, Ok(SubmitOutcome::Existing(head)) if head.id() == id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_keeps_what_was_answered_and_recovers() {
    let file = TempFile::with(|settings| settings.pages_max = Some(200));
    let mut scene = file.scene().await;
    let mut answered = BTreeSet::new();
    let refused = fill(&mut scene, &mut answered).await;
    assert!(matches!(&refused, Error::CannotWrite(text) if text.contains("full")), "{refused}");
    assert!(answered.len() > 10);
    for id in &answered {
        scene.check_row(*id).await.unwrap();
    }
    let stored: u64 = scene.store.totals().await.unwrap().values().sum();
    assert_eq!(stored, answered.len() as u64);
    let retention = Retention { payloads_ms: 0, executions_ms: 0, batch: 1_000 };
    assert!(scene.store.prune(retention, scene.now_ms).await.unwrap().executions > 0);
    let submit = scene.call("{}");
    scene.new_execution(submit).await.unwrap();
}

/// Completes calls until one is refused.
async fn fill(scene: &mut Scene, answered: &mut BTreeSet<ExecutionId>) -> Error {
    for n in 0..10_000 {
        let mut submit = scene.call(&format!("{{\"n\":{n},\"t\":\"{}\"}}", "x".repeat(2_000)));
        submit.submission.lease = Some(scene.lease_request());
        let id = match scene.store.submit(submit).await {
            Ok(SubmitOutcome::New(head)) => head.id(),
            Ok(other) => panic!("{other:?}"),
            Err(error) => return error,
        };
        answered.insert(id);
        if n % 2 == 0 && scene.complete(id, 1, "1").await.is_err() {
            continue;
        }
    }
    panic!("the disk is not full");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_held_too_long_fails_writes_but_no_reads() {
    let file = TempFile::with(|settings| settings.busy_timeout_ms = 20);
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await.unwrap().id();
    let lock = file.raw();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let submit = scene.call(r#"{"n":2}"#);
    let refused = scene.store.submit(submit.clone()).await.unwrap_err();
    assert!(matches!(&refused, Error::Unavailable(text) if text.contains("locked")), "{refused}");
    assert_eq!(scene.head(id).await.unwrap().id(), id);
    lock.execute_batch("ROLLBACK").unwrap();
    scene.new_execution(submit).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses_what_comes_next() {
    let file = TempFile::with(|settings| settings.queue_max = 4);
    let mut scene = file.scene().await;
    let lock = file.raw();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let calls: Vec<Submit> = (0..32).map(|n| scene.call(&format!("{{\"n\":{n}}}"))).collect();
    let store = scene.store.clone();
    let release = async {
        tokio::task::yield_now().await;
        lock.execute_batch("COMMIT").unwrap();
    };
    let calls = join_all(calls.into_iter().map(|submit| store.submit(submit)));
    let (outcomes, ()) = tokio::join!(biased; calls, release);
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, Err(Error::Overloaded(4)))).count();
    let stored = outcomes.iter().filter(|outcome| matches!(outcome, Ok(SubmitOutcome::New(_)))).count();
    assert_eq!(refused + stored, 32);
    assert!(refused > 0 && stored >= 4, "{refused} refused, {stored} stored");
    let submit = scene.call(r#"{"after":1}"#);
    scene.new_execution(submit).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_is_written_without_company_and_at_the_close() {
    let file = TempFile::with(|settings| settings.mark_flush_ms = 1);
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await.unwrap().id();
    scene.store.mark(id, Mark::HandleGiven(scene.process), scene.now_ms);
    // The writer needs no other write to come; polling ends when it has done so.
    while !scene.head(id).await.unwrap().handle_given {
        tokio::task::yield_now().await;
    }
    scene.store.close().await;
    let file = TempFile { folder: file.folder, settings: super::SqliteSettings::for_tests() };
    let scene = file.scene().await;
    scene.store.mark(id, Mark::Delivered(scene.process), 7);
    scene.store.close().await;
    let scene = file.scene().await;
    assert_eq!(scene.head(id).await.unwrap().delivered_at_ms, Some(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_alone_waits_for_company() {
    let file = TempFile::with(|settings| settings.mark_flush_ms = 3_600_000);
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await.unwrap().id();
    let observer = file.raw();
    let version = || observer.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = version();
    scene.store.mark(id, Mark::Left(scene.process), scene.now_ms);
    // A look of the writer proves that it has seen the mark.
    scene.store.changed(50).await;
    assert_eq!(version(), before);
    scene.store.check().await.unwrap();
    assert_ne!(version(), before);
    assert_eq!(scene.head(id).await.unwrap().waiter, None);
}

#[tokio::test]
async fn a_dropped_store_writes_its_marks() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await.unwrap().id();
    let store = file.store().await.unwrap();
    store.mark(id, Mark::HandleGiven(scene.process), scene.now_ms);
    drop(store);
    while !scene.head(id).await.unwrap().handle_given {
        tokio::task::yield_now().await;
    }
}
