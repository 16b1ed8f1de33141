//! Backups while others write, and restores: whole or not at all, never over a store that somebody uses.

use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::super::{BackUp, Restore, Verified, backup, restore, status, verify};
use super::TempFile;
use crate::model::execution::State;
use crate::store::conformance::Scene;
use crate::store::{Error, Store as _};

fn copy(from: &Path, to: &Path, replace: bool) -> crate::store::Result<()> {
    backup(BackUp { from, to, replace }, &mut |_, _| {}, &mut |_| Ok(()))
}

fn put_back(from: &Path, to: &Path, put_aside: bool) -> crate::store::Result<Option<PathBuf>> {
    restore(Restore { from, to, put_aside, now_ms: 7 }, &mut |_, _| {}).map(|restored| restored.old)
}

fn checked(path: &Path) -> Verified {
    let verified = verify(path, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(verified.findings, 0);
    verified
}

async fn filled(file: &TempFile, count: usize) -> Scene {
    let mut scene = file.scene().await;
    for n in 0..count {
        let submit = scene.call(&format!("{{\"n\":{n}}}"));
        scene.completed(submit, &"x".repeat(2_000)).await.unwrap();
    }
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_made_while_others_write_is_of_one_moment() {
    let file = TempFile::new();
    let mut scene = filled(&file, 600).await;
    let to = file.folder.path().join("copy.db");
    let mut steps = 0;
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        let mut write = |_done: u64, _all: u64| {
            // A commit between any two steps, of a connection that is not the copying one.
            steps += 1;
            let submit = scene.call("{}");
            runtime.block_on(scene.completed(submit, "1")).unwrap();
        };
        backup(BackUp { from: &file.path(), to: &to, replace: false }, &mut write, &mut |_| Ok(())).unwrap();
    });
    assert!((2..50).contains(&steps), "{steps} steps: none is begun anew");
    assert_eq!(checked(&to).executions, 600, "what came after the moment is not in the copy");
    assert_eq!(checked(&file.path()).executions, 600 + steps);
    let mode = to.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let beside: Vec<_> =
        std::fs::read_dir(file.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let left = beside.iter().filter(|name| name.to_string_lossy().starts_with("copy.db")).count();
    assert_eq!(left, 1, "one file, and nothing beside it: {beside:?}");
}

#[tokio::test]
async fn a_copy_replaces_nothing_unasked_and_gets_no_name_when_it_is_refused() {
    let file = TempFile::new();
    let scene = filled(&file, 1).await;
    let to = file.folder.path().join("copy.db");
    std::fs::write(&to, "mine").unwrap();
    let refused = copy(&file.path(), &to, false).unwrap_err();
    assert!(matches!(&refused, Error::CannotWrite(text) if text.contains("exists already")), "{refused}");
    let refuse = &mut |_: &Path| Err(Error::Damaged("no".into()));
    backup(BackUp { from: &file.path(), to: &to, replace: true }, &mut |_, _| {}, refuse).unwrap_err();
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "mine");
    assert!(!to.with_extension("db.part").exists());
    copy(&file.path(), &to, true).unwrap();
    assert_eq!(checked(&to).executions, 1);
    assert!(copy(&file.path(), &file.path(), true).unwrap_err().to_string().contains("the store itself"));
    assert!(copy(&file.path(), file.folder.path(), true).unwrap_err().to_string().contains("is a folder"));
    drop(scene);
}

#[tokio::test]
async fn a_restore_refuses_a_store_that_is_used_or_full_and_puts_aside_when_told() {
    let file = TempFile::new();
    let mut scene = filled(&file, 2).await;
    let submit = scene.call("{}");
    let running = scene.new_execution(submit).await.unwrap().id();
    scene.lease(running).await.unwrap();
    let saved = file.folder.path().join("copy.db");
    copy(&file.path(), &saved, false).unwrap();
    let submit = scene.call("{}");
    scene.completed(submit, "1").await.unwrap();

    let used = put_back(&saved, &file.path(), true).unwrap_err();
    assert!(used.to_string().contains("in use"), "also when told to put it aside: {used}");
    scene.store.close().await;
    let reader = file.store().await.unwrap();
    let used = put_back(&saved, &file.path(), true).unwrap_err();
    assert!(used.to_string().contains("in use"), "a process that only looks: {used}");
    reader.close().await;
    let full = put_back(&saved, &file.path(), false).unwrap_err();
    assert!(full.to_string().contains("holds executions"), "{full}");
    assert_eq!(checked(&file.path()).executions, 4);

    let old = put_back(&saved, &file.path(), true).unwrap().unwrap();
    assert_eq!(checked(&old).executions, 4, "the old store is whole");
    assert_eq!(checked(&file.path()).executions, 3);
    let seen = status(&file.path(), 0).unwrap();
    assert_eq!((seen.states[&State::Leased], seen.processes_alive, seen.processes_dead), (1, 0, 1));
    // The next start has a store like any other, and sees whose work is to be settled.
    let store = file.store().await.unwrap();
    assert_eq!(store.dead_processes(0).await.unwrap(), [scene.process]);
    store.close().await;
}

#[tokio::test]
async fn a_restore_makes_a_store_where_none_is_and_in_the_place_of_an_empty_or_damaged_one() {
    let file = TempFile::new();
    filled(&file, 2).await.store.close().await;
    let saved = file.folder.path().join("copy.db");
    copy(&file.path(), &saved, false).unwrap();
    let fresh = TempFile::new();
    assert_eq!(put_back(&saved, &fresh.path(), false).unwrap(), None);
    assert_eq!(checked(&fresh.path()).executions, 2);
    let empty = TempFile::new();
    empty.store().await.unwrap().close().await;
    assert_eq!(put_back(&saved, &empty.path(), false).unwrap(), None);
    assert_eq!(checked(&empty.path()).executions, 2);
    let damaged = TempFile::new();
    std::fs::write(damaged.path(), "no database at all, and longer than a header").unwrap();
    assert!(put_back(&saved, &damaged.path(), false).unwrap_err().to_string().contains("damaged"));
    let old = put_back(&saved, &damaged.path(), true).unwrap().unwrap();
    assert!(std::fs::read_to_string(old).unwrap().starts_with("no database"));
    assert_eq!(checked(&damaged.path()).executions, 2);
    assert_eq!(damaged.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // A copy that is none leaves everything as it is.
    assert!(put_back(&file.folder.path().join("none"), &damaged.path(), true).is_err());
    assert_eq!(checked(&damaged.path()).executions, 2);
}

#[tokio::test]
async fn what_pruning_would_delete_is_what_it_deletes() {
    use super::super::prune_preview;
    use crate::store::{Pruned, Retention};

    let file = TempFile::new();
    let mut scene = file.scene().await;
    for n in 0..6 {
        let mut submit = if n % 2 == 0 { scene.call("{}") } else { scene.keyed(&format!("k{n}"), "{}") };
        submit.submission.identity.key_ttl_ms = if n == 1 { 1_000_000 } else { 10 };
        scene.completed(submit, "1").await.unwrap();
        scene.now_ms += 100;
    }
    for (payloads_ms, executions_ms) in [(i64::MAX, i64::MAX), (400, i64::MAX), (300, 500), (0, 350), (0, 0)] {
        let retention = Retention { payloads_ms, executions_ms, batch: 2 };
        let told = prune_preview(&file.path(), &crate::store::Slice::default(), retention, scene.now_ms).unwrap();
        let mut done = Pruned::default();
        loop {
            let more = scene.store.prune(retention, scene.now_ms).await.unwrap();
            if more == Pruned::default() {
                break;
            }
            done += more;
        }
        assert_eq!(told, done, "payloads {payloads_ms}, executions {executions_ms}");
    }
    assert_eq!(checked(&file.path()).executions, 1, "the one whose key lives");
}
