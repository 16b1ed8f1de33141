//! What auditors ask: every file of `examples/sql/sqlite`, on a store with an answer.

use rusqlite::types::Value;

use super::TempFile;
use crate::store::conformance::story;

#[tokio::test]
async fn every_question_of_the_examples_finds_its_answer() {
    let file = TempFile::new();
    let mut scene = file.scene().await;
    story::play(&mut scene).await.unwrap();
    let raw = file.raw();
    for (name, sql) in story::questions("sqlite") {
        let mut statement = raw.prepare(&sql).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(statement.readonly(), "{name}");
        let columns = statement.column_count();
        let cell = |value: Value| match value {
            Value::Null => String::new(),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Text(text) => text,
            Value::Blob(bytes) => hex::encode(bytes),
        };
        let rows: Vec<Vec<String>> = statement
            .query_map([], |row| (0..columns).map(|column| row.get(column).map(cell)).collect())
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        story::check(&name, &rows);
    }
}
