//! Several processes on one file, each with a writer of its own: nobody starves, every row stays the fold of its events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::TempFile;
use crate::store::conformance::Ground as _;

/// No writer waits longer for another.
const PROMISED_WAIT: Duration = Duration::from_millis(100);

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
            let mut overtaken = Vec::new();
            for n in 0..CALLS {
                let mut submit = scene.call(&format!("{{\"writer\":{writer},\"n\":{n}}}"));
                submit.submission.lease = Some(scene.lease_request());
                let (asked, since) = (turns.load(Ordering::Relaxed), Instant::now());
                let id = scene.new_execution(submit).await.unwrap().id();
                overtaken.push((turns.fetch_add(1, Ordering::Relaxed) - asked, since.elapsed()));
                scene.complete(id, 1, "1").await.unwrap();
                ids.push(id);
            }
            (ids, overtaken)
        }));
    }
    for task in tasks {
        let (ids, overtaken) = task.await.unwrap();
        // A writer starves when others pass it over dozens of times and it waits longer than promised. The count alone
        // says nothing here: without syncs dozens of turns take a few milliseconds, as long as a thread that is not run.
        let starved = |(times, waited): &(usize, Duration)| *times >= CALLS / 2 && *waited > PROMISED_WAIT;
        assert!(!overtaken.iter().any(starved), "others wrote while one waited: {overtaken:?}");
        for id in ids {
            first.check_row(id).await.unwrap();
        }
    }
    let store = file.open().await.unwrap();
    assert_eq!(store.totals().await.unwrap()[&crate::model::execution::State::Completed], 4 * CALLS as u64);
}
