//! The write-ahead log is copied into the database while writing goes on, and does not grow for ever.

use super::TempFile;
use crate::store::Store as _;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_starts_anew_under_load() {
    const PAGES: u32 = 40;
    let file = TempFile::with(|settings| settings.checkpoint_pages = PAGES);
    let mut scene = file.scene().await;
    let mut written = 0;
    let size =
        |extension: &str| std::fs::metadata(file.path().with_extension(extension)).map_or(0, |metadata| metadata.len());
    // How soon depends on the machine; that it happens at all does not.
    while size("db-wal") > written / 2 || size("db") < written / 2 {
        assert!(written < 80_000_000, "the log has {} bytes after {written} were written", size("db-wal"));
        let mut submit = scene.call(&format!("{{\"written\":{written}}}"));
        submit.arguments = "x".repeat(8_000).into();
        scene.new_execution(submit).await.unwrap();
        written += 8_000;
    }
    // Closing leaves no log behind.
    scene.store.close().await;
    assert_eq!(size("db-wal"), 0);
    file.store().await.unwrap().check().await.unwrap();
}
