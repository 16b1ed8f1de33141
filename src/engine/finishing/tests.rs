//! A future is finished once, whoever polls it, and whether or not that one stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::*;

#[tokio::test]
async fn what_is_awaited_to_its_end_answers() {
    let tasks = TaskTracker::new();
    assert_eq!(Finishing::new(async { 7 }, &tasks).await, 7);
    assert!(tasks.is_empty());
}

#[tokio::test]
async fn what_is_dropped_in_the_middle_is_finished_and_waited_for() {
    let tasks = TaskTracker::new();
    let (go, gate) = oneshot::channel::<()>();
    let finished = Arc::new(AtomicBool::new(false));
    let seen = finished.clone();
    let work = async move {
        gate.await.unwrap();
        seen.store(true, Ordering::SeqCst);
    };
    let mut finishing = Box::pin(Finishing::new(work, &tasks));
    assert!(futures_util::poll!(&mut finishing).is_pending());
    drop(finishing);
    assert!(!finished.load(Ordering::SeqCst));
    go.send(()).unwrap();
    tasks.close();
    tasks.wait().await;
    assert!(finished.load(Ordering::SeqCst));
}

#[tokio::test]
async fn what_was_never_polled_is_run_all_the_same() {
    let tasks = TaskTracker::new();
    let (done, told) = oneshot::channel();
    drop(Finishing::new(async move { done.send(()).unwrap() }, &tasks));
    told.await.unwrap();
}
