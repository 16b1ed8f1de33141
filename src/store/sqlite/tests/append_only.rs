//! The database itself keeps events and unfinished executions, whoever holds the connection.

use super::TempFile;
use crate::model::decide::Command;
use crate::model::event::ExpiryCause;

#[tokio::test]
async fn events_can_not_be_changed_deleted_or_replaced() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    let id = scene.completed(submit, "1").await.unwrap().id();
    let before = scene.events(id).await.unwrap();
    let raw = file.raw();
    let row = format!("('{id}', 1, 0, 'submitted', '{{}}', zeroblob(16))");
    for sql in [
        "UPDATE execution_events SET at_ms = 0".into(),
        "UPDATE OR REPLACE execution_events SET seq = 2 WHERE seq = 1".into(),
        "DELETE FROM execution_events".into(),
        "DELETE FROM execution_events WHERE seq = 3".into(),
        format!("INSERT INTO execution_events VALUES {row}"),
        format!("INSERT OR REPLACE INTO execution_events VALUES {row}"),
        format!("REPLACE INTO execution_events VALUES {row}"),
        format!("INSERT OR IGNORE INTO execution_events VALUES {row}"),
        format!("INSERT INTO execution_events VALUES {row} ON CONFLICT DO UPDATE SET at_ms = 0"),
    ] {
        let error = raw.execute(&sql, []).unwrap_err().to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
    assert_eq!(scene.events(id).await.unwrap(), before);
}

#[tokio::test]
async fn an_execution_without_an_end_can_not_be_deleted() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    let submit = scene.call(r#"{"n":1}"#);
    scene.new_execution(submit).await.unwrap();
    let submit = scene.call(r#"{"n":2}"#);
    let unknown = scene.new_execution(submit).await.unwrap().id();
    scene.lease(unknown).await.unwrap();
    let cause = ExpiryCause::ProcessDied;
    scene.run(unknown, Command::Expire { fencing_token: 1, cause }).await.unwrap();
    let raw = file.raw();
    for state in ["ready", "unknown"] {
        let sql = format!("DELETE FROM executions WHERE state = '{state}'");
        let error = raw.execute(&sql, []).unwrap_err().to_string();
        assert!(error.contains("only an ended execution may be deleted"), "{state}: {error}");
    }
}

#[tokio::test]
async fn the_schema_refuses_rows_that_can_not_be() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    let submit = scene.call("{}");
    scene.new_execution(submit).await.unwrap();
    let raw = file.raw();
    for (change, constraint) in [
        ("state = 'running'", "state_is_known"),
        ("state = 'leased'", "lease_fits_state"),
        ("lease_worker = 'w'", "lease_is_whole"),
        ("state = 'failed'", "end_fits_state"),
        ("source = 'result'", "source_fits_state"),
        ("attempt = 1", "counters_are_sane"),
    ] {
        let error = raw.execute(&format!("UPDATE executions SET {change}"), []).unwrap_err().to_string();
        assert!(error.contains(constraint), "{change}: {error}");
    }
}
