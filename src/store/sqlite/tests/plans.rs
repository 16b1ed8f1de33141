//! Hot statements use their indexes, on an empty table as on a full one.

use super::super::{lists, prune, submit};
use super::TempFile;

#[tokio::test]
async fn hot_statements_never_walk_a_whole_table() {
    let file = TempFile::new();
    drop(file.store().await.unwrap());
    let raw = file.raw();
    let statements = [lists::STATEMENTS, submit::STATEMENTS, prune::STATEMENTS].concat();
    assert!(statements.len() > 15);
    for sql in statements {
        let mut statement = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = vec![rusqlite::types::Null; statement.parameter_count()];
        let steps: Vec<String> = statement
            .query_map(rusqlite::params_from_iter(parameters), |row| row.get("detail"))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        for step in &steps {
            let walks = step.starts_with("SCAN") && !step.contains("INDEX executions_") && !step.contains("json_each");
            assert!(!walks || step.contains("(subquery") || step == "SCAN CONSTANT ROW", "{sql}: {steps:?}");
        }
    }
}
