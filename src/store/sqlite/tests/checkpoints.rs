//! The write-ahead log is copied into the database while writing goes on, and does not grow for ever.

use super::TempFile;
use crate::store::Store as _;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_starts_anew_under_load() {
    const PAGES: u32 = 40;
    let file = TempFile::with(|settings| settings.checkpoint_pages = PAGES);
    let mut scene = file.scene().await;
    let mut written = 0;
    for n in 0..400 {
        let mut submit = scene.call(&format!("{{\"n\":{n}}}"));
        submit.arguments = "x".repeat(8_000).into();
        scene.new_execution(submit).await.unwrap();
        written += 8_000;
    }
    let log = std::fs::metadata(file.path().with_extension("db-wal")).unwrap().len();
    let database = std::fs::metadata(file.path()).unwrap().len();
    assert!(log < written / 2, "the log has {log} bytes after {written} were written");
    assert!(database > written / 2, "the database has {database} bytes after {written} were written");
    // Closing leaves no log behind.
    scene.store.close().await;
    let log = std::fs::metadata(file.path().with_extension("db-wal")).map_or(0, |metadata| metadata.len());
    assert_eq!(log, 0);
    file.store().await.unwrap().check().await.unwrap();
}
