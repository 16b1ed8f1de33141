//! Hot statements use their indexes, on an empty table as on a full one.

use super::super::{counting, inputs, lists, pages, payloads, pieces, prune, sessions, submit, tasks, totals, workers};
use super::TempFile;
use crate::model::execution::State;
use crate::store::ListQuery;

#[tokio::test]
async fn hot_statements_never_walk_a_whole_table() {
    let file = TempFile::new();
    drop(file.store().await.unwrap());
    let raw = file.raw();
    let statements = [
        lists::STATEMENTS,
        submit::STATEMENTS,
        prune::STATEMENTS,
        workers::STATEMENTS,
        sessions::STATEMENTS,
        inputs::STATEMENTS,
        tasks::STATEMENTS,
        totals::STATEMENTS,
        counting::STATEMENTS,
        payloads::STATEMENTS,
        pieces::STATEMENTS,
    ]
    .concat();
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

/// What is asked for and mostly not there is looked for in an index that is small, or narrow.
#[tokio::test]
async fn filters_of_pages_walk_no_whole_rows() {
    let file = TempFile::new();
    drop(file.store().await.unwrap());
    let raw = file.raw();
    let some = || Some("nothing".to_owned());
    let (rare, whose) = ("INDEX executions_failed", "INDEX executions_whose");
    for (query, states, index) in [
        (ListQuery { error_code: some(), ..ListQuery::default() }, vec![], rare),
        (ListQuery { error_code: some(), ..ListQuery::default() }, vec![State::Failed], rare),
        (ListQuery { attempts_over: Some(1), ..ListQuery::default() }, vec![], "INDEX executions_again"),
        (ListQuery { recovered: true, ..ListQuery::default() }, vec![], "INDEX executions_again"),
        (ListQuery { key: some(), ..ListQuery::default() }, vec![], whose),
        (ListQuery { tool: some(), ..ListQuery::default() }, vec![State::Completed], whose),
        (ListQuery { principal: some(), caller: some(), ..ListQuery::default() }, vec![], whose),
        (ListQuery { namespace: some(), upstream: some(), ..ListQuery::default() }, vec![], whose),
    ] {
        let plan = pages::plan(&raw, &ListQuery { states, limit: 50, ..query.clone() });
        assert!(plan[0].contains(index), "{query:?}: {plan:?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{query:?}: {plan:?}");
    }
}

/// Nobody's numbers are counted by reading rows.
#[tokio::test]
async fn totals_are_counted_by_indexes_alone() {
    let file = TempFile::new();
    drop(file.store().await.unwrap());
    let raw = file.raw();
    for (condition, of_somebody) in
        [("TRUE", false), ("TRUE", true), ("state = 'failed'", false), ("state = 'failed'", true)]
    {
        let sql = format!("EXPLAIN QUERY PLAN {}", lists::count_where(condition, of_somebody));
        let values = vec![rusqlite::types::Null; if of_somebody { 2 } else { 0 }];
        let step: String = raw.query_row(&sql, rusqlite::params_from_iter(values), |row| row.get("detail")).unwrap();
        assert!(step.contains("COVERING INDEX"), "{sql}: {step}");
    }
}

/// docs/schema.md is what auditors read: every table and column is in it, and its questions can be asked.
#[tokio::test]
async fn the_schema_page_knows_every_table_and_column_and_its_sql_runs() {
    let page = include_str!("../../../../docs/schema.md");
    let file = TempFile::new();
    drop(file.store().await.unwrap());
    let raw = file.raw();
    let names = |sql: &str| -> Vec<String> {
        let mut statement = raw.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
    };
    for table in names("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'") {
        assert!(page.contains(&format!("`{table}`")) || page.contains(&format!("## {table}\n")), "{table}");
        if ["executions", "execution_events", "payloads", "idempotency_keys"].contains(&table.as_str()) {
            for column in names(&format!("SELECT name FROM pragma_table_info('{table}')")) {
                assert!(page.contains(&format!("`{column}`")), "{table}.{column}");
            }
        }
    }
    let questions: Vec<&str> =
        page.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap_or("")).collect();
    assert!(questions.len() >= 4);
    for question in questions {
        raw.prepare(question.trim().trim_end_matches(';')).unwrap();
    }
}
