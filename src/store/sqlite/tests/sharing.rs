//! Several processes on one file, each with a writer of its own: nobody starves, every row stays the fold of its events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::TempFile;
use crate::store::conformance::Ground as _;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_writers_take_turns() {
    const CALLS: usize = 60;
    let file = TempFile::new();
    let mut first = file.scene().await;
    let turns = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for writer in 0..4 {
        let mut scene = first.another(&file).await.unwrap();
        let turns = Arc::clone(&turns);
        tasks.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            let mut longest = 0;
            for n in 0..CALLS {
                let mut submit = scene.call(&format!("{{\"writer\":{writer},\"n\":{n}}}"));
                submit.submission.lease = Some(scene.lease_request());
                let asked = turns.load(Ordering::Relaxed);
                let id = scene.new_execution(submit).await.unwrap().id();
                longest = longest.max(turns.fetch_add(1, Ordering::Relaxed) - asked);
                scene.complete(id, 1, "1").await.unwrap();
                ids.push(id);
            }
            (ids, longest)
        }));
    }
    for task in tasks {
        let (ids, longest) = task.await.unwrap();
        // Four writers of one call each: to be passed over dozens of times would be starving.
        assert!(longest < CALLS / 2, "others wrote {longest} times while one waited");
        for id in ids {
            first.check_row(id).await.unwrap();
        }
    }
    let store = file.open().await.unwrap();
    assert_eq!(store.totals().await.unwrap()[&crate::model::execution::State::Completed], 4 * CALLS as u64);
}
