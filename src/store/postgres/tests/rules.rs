//! The rules for SQL, R1 to R14 of docs/adr/0013-rules-for-sql.md, as checks of every statement in the driver's sources
//! and of every migration, as far as a text can tell. Each check has a bad example that it catches. What no text can tell is proven
//! elsewhere: R1, R2 and R8 by the runs with injected faults and ambiguous commits, R7 also by `plans.rs`, R12 by the
//! writer's own tests, R14 by the suite through a pooler.

use std::fs;
use std::path::PathBuf;

use super::statements::{Source, Statement, sources, statements};
use crate::store::postgres::PostgresSettings;

/// What is wrong with a statement.
type Check = fn(&Statement) -> Option<String>;

/// A rule, what of it is checked, how, and what the check has to catch: a file and a statement.
struct Rule {
    rule: &'static str,
    what: &'static str,
    check: Check,
    bad: &'static [(&'static str, &'static str)],
}

const RULES: &[Rule] = &[
    Rule {
        rule: "R3",
        what: "no lock decides: no FOR UPDATE or SHARE, no LOCK, no advisory lock",
        check: |statement| {
            contains(
                statement,
                &["FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE", "LOCK TABLE", "ADVISORY"],
            )
        },
        bad: &[
            ("heads.rs", "SELECT e.id FROM executions e WHERE e.shard = $1 AND e.id = $2 FOR UPDATE"),
            ("migrate.rs", "SELECT pg_advisory_lock(1)"),
        ],
    },
    Rule {
        rule: "R3",
        what: "an update of executions counts the version up, or sets the one that was decided",
        check: |statement| {
            let sql = upper(statement);
            let updates = sql.contains("UPDATE EXECUTIONS");
            let counted = ["VERSION = VERSION + 1", "VERSION = E.VERSION + 1", "VERSION = G.VERSION"];
            (updates && !counted.iter().any(|it| sql.contains(it))).then(|| "the version stays".into())
        },
        bad: &[("x.rs", "UPDATE executions SET waiter = NULL WHERE shard = $1 AND id = $2")],
    },
    Rule {
        rule: "R4",
        what: "notifications only beside the writes, on the connection that listens; nothing that CockroachDB refuses",
        check: |statement| {
            let elsewhere = statement.file != "listen.rs";
            contains(statement, &["UNLISTEN", "DISCARD "])
                .or_else(|| elsewhere.then(|| contains(statement, &["PG_NOTIFY", "NOTIFY ", "LISTEN "]))?)
                .or_else(|| {
                    let sql = upper(statement);
                    (sql.contains("PG_NOTIFY") && writes(&sql).next().is_some()).then(|| "says and writes".into())
                })
        },
        bad: &[
            ("write.rs", "SELECT pg_notify($1, $2)"),
            ("pool.rs", "DISCARD ALL"),
            ("listen.rs", "WITH x AS (UPDATE processes SET id = $1 RETURNING id) SELECT pg_notify($1, $2) FROM x"),
        ],
    },
    Rule {
        rule: "R5",
        what: "no ids made by the database, no sequences, no enum types",
        check: |statement| {
            contains(
                statement,
                &["SERIAL", "IDENTITY", "NEXTVAL", "SEQUENCE", "AS ENUM", "GEN_RANDOM_UUID", "UUID_GENERATE"],
            )
            .filter(|found| !(found.contains("SERIAL") && upper(statement).contains("SERIALIZABLE")))
        },
        bad: &[
            ("x.rs", "INSERT INTO tasks (shard, execution_id) VALUES ($1, gen_random_uuid())"),
            ("V2.sql", "CREATE TABLE t (id BIGSERIAL NOT NULL)"),
            ("V2.sql", "CREATE TYPE state AS ENUM ('ready')"),
        ],
    },
    Rule {
        rule: "R5",
        what: "rows that are spread by shard are found by shard and id",
        check: |statement| {
            let sql = upper(statement);
            let spread =
                ["EXECUTIONS", "EXECUTION_EVENTS", "PAYLOADS", "STEPS", "CHECKPOINTS", "INPUT_REQUESTS", "TASKS"];
            let reads = spread
                .iter()
                .any(|table| ["FROM ", "JOIN ", "UPDATE "].iter().any(|verb| sql.contains(&format!("{verb}{table} "))));
            let by_id =
                ["EXECUTION_ID = $", "EXECUTION_ID = G.", "WHERE ID = $", ".ID = G.ID", "E.ID = ", "AND ID = $"];
            (statement.is_whole() && reads && by_id.iter().any(|it| sql.contains(it)) && !sql.contains("SHARD = "))
                .then(|| "by id without shard".into())
        },
        bad: &[
            ("x.rs", "SELECT seq FROM execution_events WHERE execution_id = $1"),
            ("x.rs", "UPDATE executions SET version = version + 1 WHERE id = $1 AND version = $2"),
        ],
    },
    Rule {
        rule: "R6",
        what: "events are numbered by their execution's row, not by looking for the last one",
        check: |statement| {
            let sql = upper(statement);
            (sql.contains("EXECUTION_EVENTS") && (sql.contains("MAX(") || sql.contains("SEQ + 1")))
                .then(|| "a number made from other events".into())
        },
        bad: &[("x.rs", "SELECT max(v.seq) FROM execution_events v WHERE v.shard = $1 AND v.execution_id = $2")],
    },
    Rule {
        rule: "R7",
        what: "candidates are read first and changed by key: what changes rows has no LIMIT of its own, and nothing is skipped",
        check: |statement| {
            let sql = upper(statement);
            // Old messages and old numbers belong to nobody who could meet there.
            let limited = !["DELETE_OLD_MESSAGES", "FORGET"].contains(&statement.name.as_str())
                && sql.contains(" LIMIT ")
                && writes(&sql).any(|(verb, _)| verb != "INSERT INTO");
            contains(statement, &["SKIP LOCKED"]).or_else(|| limited.then(|| "changes what it has just found".into()))
        },
        bad: &[
            ("x.rs", "SELECT id FROM executions WHERE shard = $1 LIMIT 10 FOR UPDATE SKIP LOCKED"),
            ("x.rs", "DELETE FROM payloads WHERE (shard, execution_id) IN (SELECT shard, id FROM executions LIMIT 5)"),
        ],
    },
    Rule {
        rule: "R7",
        what: "lists are sent as typed arrays: no IN with values, each array with its type",
        check: |statement| {
            let sql = upper(statement);
            let list = sql.match_indices(" IN (").any(|(at, it)| !sql[at + it.len()..].starts_with("SELECT "));
            let untyped = ["UNNEST($", "ANY($", "ALL($"].iter().any(|opening| {
                sql.match_indices(opening).any(|(at, it)| {
                    let rest = sql[at + it.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
                    !rest.starts_with("::")
                })
            });
            match (list, untyped) {
                (true, _) => Some("IN with a list of values".into()),
                (_, true) => Some("an array without a type".into()),
                _ => None,
            }
        },
        bad: &[
            ("x.rs", "SELECT id FROM workers WHERE id IN ($1, $2)"),
            ("x.rs", "SELECT id FROM executions WHERE state IN ('ready', 'scheduled')"),
            ("x.rs", "DELETE FROM sessions WHERE key = ANY($1)"),
        ],
    },
    Rule {
        rule: "R8",
        what: "ON CONFLICT names plain columns and does nothing",
        check: |statement| {
            let sql = upper(statement);
            sql.match_indices("ON CONFLICT").find_map(|(at, it)| {
                let rest = sql[at + it.len()..].trim_start();
                let plain = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).filter(|(columns, _)| {
                    columns.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ' '))
                });
                match plain {
                    None => Some("ON CONFLICT without plain columns".into()),
                    Some((_, after)) if after.trim_start().starts_with("DO NOTHING") => None,
                    Some(_) => Some("ON CONFLICT does something, or has a partial arbiter".into()),
                }
            })
        },
        bad: &[
            ("x.rs", "INSERT INTO tokens (prefix) VALUES ($1) ON CONFLICT DO NOTHING"),
            ("x.rs", "INSERT INTO tokens (prefix) VALUES ($1) ON CONFLICT (prefix) DO UPDATE SET sha256 = $2"),
            ("x.rs", "INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) WHERE b IS NULL DO NOTHING"),
            ("x.rs", "INSERT INTO t (a) VALUES ($1) ON CONFLICT (lower(a)) DO NOTHING"),
            ("x.rs", "INSERT INTO t (a) VALUES ($1) ON CONFLICT ON CONSTRAINT t_a DO NOTHING"),
        ],
    },
    Rule {
        rule: "R9",
        what: "numbers are BIGINT: no division, no float, no smaller integer, no JSON or bytes",
        check: |statement| {
            let sql = upper(statement);
            let words =
                ["INT", "INTEGER", "INT4", "SMALLINT", "REAL", "FLOAT", "FLOAT8", "DOUBLE", "NUMERIC", "DECIMAL"];
            let more = ["JSON", "JSONB", "BYTEA", "VARCHAR", "TIMESTAMP", "TIMESTAMPTZ", "MONEY"];
            let found = words.iter().chain(&more).find(|word| has_word(&sql, word));
            found.map(|word| format!("the type {word}")).or_else(|| sql.contains(" / ").then(|| "a division".into()))
        },
        bad: &[
            ("x.rs", "SELECT count(*) / 2 FROM tokens"),
            ("x.rs", "SELECT CAST($1 AS DOUBLE PRECISION)"),
            ("V2.sql", "CREATE TABLE t (id INTEGER NOT NULL)"),
            ("V2.sql", "CREATE TABLE t (body JSONB NOT NULL)"),
        ],
    },
    Rule {
        rule: "R9",
        what: "one statement changes a table once",
        check: |statement| {
            if statement.file.ends_with(".sql") {
                return None;
            }
            let sql = upper(statement);
            let mut tables: Vec<&str> = writes(&sql).map(|(_, table)| table).collect();
            tables.sort_unstable();
            tables.windows(2).find(|two| two[0] == two[1]).map(|two| format!("{} is changed twice", two[0]))
        },
        bad: &[(
            "x.rs",
            "WITH a AS (UPDATE tokens SET scopes = $1 RETURNING prefix) DELETE FROM tokens WHERE prefix = $2",
        )],
    },
    Rule {
        rule: "R9",
        what: "no time but that of the caller and clock_timestamp(), which does not stand still in a transaction",
        check: |statement| {
            let sql = upper(statement);
            let clocks = ["NOW()", "CURRENT_TIMESTAMP", "TRANSACTION_TIMESTAMP", "STATEMENT_TIMESTAMP", "LOCALTIME"];
            clocks.iter().find(|clock| sql.contains(**clock)).map(|clock| (*clock).to_owned())
        },
        bad: &[("x.rs", "UPDATE sessions SET closed_at_ms = now() WHERE key = $1")],
    },
    Rule {
        rule: "R10",
        what: "only retention deletes events, nothing changes one, nothing is emptied",
        check: |statement| {
            let sql = upper(statement);
            // roles.rs writes the owner's function for retention.
            let retention = ["prune.rs", "roles.rs"].contains(&statement.file.as_str());
            let deletes = sql.contains("DELETE FROM ") && sql.contains("EXECUTION_EVENTS ") && !retention;
            let trigger = sql.contains("CREATE OR REPLACE TRIGGER");
            let taken_back = sql.starts_with("REVOKE ");
            let changes =
                sql.contains("UPDATE EXECUTION_EVENTS") || sql.contains("TRUNCATE") && !trigger && !taken_back;
            (deletes || changes).then(|| "changes what is append-only".into())
        },
        bad: &[
            ("x.rs", "UPDATE execution_events SET body = $1 WHERE shard = $2 AND execution_id = $3"),
            ("write.rs", "DELETE FROM execution_events t USING g WHERE t.shard = g.shard"),
            ("prune.rs", "TRUNCATE payloads"),
        ],
    },
    Rule {
        rule: "R10",
        what: "no deferrable, exclusion or generated columns, no domains, no ranges, no foreign keys",
        check: |statement| {
            contains(
                statement,
                &["DEFERRABLE", "EXCLUDE USING", "GENERATED", "CREATE DOMAIN", "INT8RANGE", "TSRANGE", "REFERENCES "],
            )
        },
        bad: &[
            ("V2.sql", "CREATE TABLE t (a BIGINT GENERATED ALWAYS AS (1) STORED)"),
            ("V2.sql", "ALTER TABLE t ADD CONSTRAINT c UNIQUE (a) DEFERRABLE"),
        ],
    },
    Rule {
        rule: "R12",
        what: "the client bounds a COMMIT by closing the socket: nothing cancels what runs",
        check: |statement| contains(statement, &["PG_CANCEL_BACKEND", "PG_TERMINATE_BACKEND"]),
        bad: &[("x.rs", "SELECT pg_cancel_backend($1)")],
    },
    Rule {
        rule: "R13",
        what: "a vendor is known by version()",
        check: |statement| {
            contains(statement, &["SERVER_VERSION"]).or_else(|| {
                (statement.file != "vendor.rs" && !statement.file.ends_with(".sql"))
                    .then(|| contains(statement, &["VERSION()"]))?
            })
        },
        bad: &[("x.rs", "SHOW server_version"), ("x.rs", "SELECT version()")],
    },
    Rule {
        rule: "R14",
        what: "nothing outlives a transaction but where a connection is made: no named statements, cursors or tables",
        check: |statement| {
            let sql = upper(statement);
            let sets = sql.starts_with("SET ") && !sql.starts_with("SET LOCAL ");
            let made = ["pool.rs", "listen.rs", "lane.rs"].contains(&statement.file.as_str());
            contains(statement, &["PREPARE ", "DECLARE ", "WITH HOLD", "CREATE TEMP", "DEALLOCATE"])
                .filter(|_| !statement.file.ends_with(".sql"))
                .or_else(|| (sets && !made).then(|| "a setting of the session".into()))
        },
        bad: &[
            ("x.rs", "PREPARE s AS SELECT 1"),
            ("prune.rs", "SET statement_timeout = 0"),
            ("x.rs", "CREATE TEMP TABLE t (a BIGINT)"),
        ],
    },
];

fn upper(statement: &Statement) -> String {
    statement.sql.to_uppercase()
}

fn contains(statement: &Statement, forbidden: &[&str]) -> Option<String> {
    let sql = upper(statement);
    forbidden.iter().find(|it| sql.contains(**it)).map(|it| (*it).to_owned())
}

fn has_word(sql: &str, word: &str) -> bool {
    let part_of_a_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    sql.match_indices(word).any(|(at, it)| {
        !part_of_a_word(sql[..at].chars().next_back()) && !part_of_a_word(sql[at + it.len()..].chars().next())
    })
}

/// The tables that a statement changes, with how.
fn writes(sql: &str) -> impl Iterator<Item = (&'static str, &str)> {
    ["INSERT INTO ", "UPDATE ", "DELETE FROM "].into_iter().flat_map(move |verb| {
        sql.match_indices(verb).filter_map(move |(at, it)| {
            let table = sql[at + it.len()..].split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?;
            // FOR UPDATE, DO UPDATE SET
            let real = !table.is_empty() && table != "SET" && table != "OF";
            real.then_some((verb.trim_end(), table))
        })
    })
}

/// The statements of the migrations, and what each section holds.
fn migrations() -> Vec<(String, Vec<String>)> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("migrations/postgres")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        for (number, section) in text.split("--@ section").enumerate() {
            // What stands behind the direction names vendors.
            let lines = section.lines().skip(usize::from(number > 0));
            let lines: Vec<&str> = lines.map(|line| line.split("--").next().unwrap()).collect();
            found.push((name.clone(), split(&lines.join("\n"))));
        }
    }
    found
}

/// Splits at semicolons outside of the bodies of functions.
fn split(sql: &str) -> Vec<String> {
    let (mut statements, mut current) = (Vec::new(), String::new());
    for (number, part) in sql.split("$$").enumerate() {
        if number % 2 == 1 {
            current.push_str(&format!("$${part}$$"));
            continue;
        }
        let mut pieces = part.split(';');
        current.push_str(pieces.next().unwrap());
        for piece in pieces {
            statements.push(std::mem::replace(&mut current, piece.to_owned()));
        }
    }
    statements.push(current);
    statements
        .into_iter()
        .map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|it| !it.is_empty())
        .collect()
}

fn everything() -> Vec<Statement> {
    let mut all = statements(&sources());
    for (file, section) in migrations() {
        all.extend(section.iter().map(|sql| Statement::of(&file, "migration", sql)));
    }
    all
}

#[test]
fn every_statement_keeps_the_rules() {
    let all = everything();
    assert!(all.len() > 150, "{} statements", all.len());
    let mut broken = Vec::new();
    for statement in &all {
        for rule in RULES {
            if let Some(found) = (rule.check)(statement) {
                let Rule { rule, what, .. } = rule;
                broken.push(format!(
                    "{rule} ({what}): {found}: {} {}: {}",
                    statement.file, statement.name, statement.sql
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn each_rule_catches_what_breaks_it() {
    for rule in RULES {
        assert!(!rule.bad.is_empty(), "{} has no example: {}", rule.rule, rule.what);
        for (file, sql) in rule.bad {
            let statement = Statement::of(file, "EXAMPLE", sql);
            assert!((rule.check)(&statement).is_some(), "{} does not catch: {sql}", rule.rule);
        }
    }
    // A harmless statement breaks none.
    let harmless = Statement::of("x.rs", "EXAMPLE", "SELECT e.id FROM executions e WHERE e.shard = $1 AND e.id = $2");
    assert!(RULES.iter().all(|rule| (rule.check)(&harmless).is_none()));
}

/// What repeats, cancels or prepares in `source` although it should not: R1, R2, R12.
fn strays(source: &Source) -> Vec<&'static str> {
    let mut found = Vec::new();
    let here = |files: &[&str]| files.contains(&source.name.as_str());
    let told = source.names("T_R_SERIALIZATION_FAILURE") || source.texts().any(|text| text.contains("40001"));
    if told && !here(&["fault.rs", "migrate.rs"]) {
        found.push("R1: a serialization failure is judged outside of fault.rs");
    }
    if source.names("cancel_token") || source.names("cancel_query") {
        found.push("R2: cancels what may be a commit");
    }
    let starts = source.texts().any(|text| text.trim_start().starts_with("BEGIN") || text == "COMMIT");
    if starts && !here(&["db.rs", "pool.rs", "lane.rs", "migrate.rs", "transfer.rs"]) {
        found.push("R1: a transaction of its own");
    }
    found
}

#[test]
fn one_place_repeats_and_nothing_is_cancelled() {
    for source in sources() {
        assert_eq!(strays(&source), [""; 0], "{}", source.name);
    }
    for bad in [
        r#"fn f(e: E) { if e.code() == SqlState::T_R_SERIALIZATION_FAILURE {} }"#,
        r#"fn f(e: E) { if e.code() == "40001" {} }"#,
        r#"fn f(c: Client) { c.cancel_token().cancel_query(NoTls); }"#,
        r#"fn f(c: Client) { c.batch_execute("BEGIN"); }"#,
    ] {
        assert!(!strays(&Source::parse("bad.rs", bad)).is_empty(), "{bad}");
    }
}

/// What a section of a migration does that it may not: R11.
fn misplaced(section: &[String]) -> Option<String> {
    let verb = |sql: &String| sql.split(' ').next().unwrap().to_uppercase();
    let changes_rows = |sql: &&String| ["INSERT", "UPDATE", "DELETE", "WITH"].contains(&verb(sql).as_str());
    let known = |sql: &&String| {
        ["CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE", "WITH", "GRANT", "REVOKE"]
            .contains(&verb(sql).as_str())
    };
    let rows = section.iter().filter(changes_rows).count();
    if let Some(strange) = section.iter().find(|sql| !known(sql)) {
        return Some(format!("not known here: {strange}"));
    }
    (rows > 0 && rows < section.len()).then(|| "changes the schema and rows in one section".into())
}

#[test]
fn migrations_change_the_schema_or_rows_and_later_ones_one_thing_each() {
    let all = migrations();
    assert!(all.iter().any(|(_, section)| section.len() > 20), "the first file is read");
    for (file, section) in &all {
        assert_eq!(misplaced(section), None, "{file}");
        let first = file.starts_with("V1__") || file == "history.sql";
        assert!(first || section.len() <= 1, "R11: {file} has more than one statement in a section");
        for sql in section.iter().filter(|sql| sql.starts_with("CREATE TABLE")) {
            let spread = sql.contains("(shard BIGINT NOT NULL") || sql.contains(" shard BIGINT NOT NULL,");
            assert!(
                !spread || sql.contains("PRIMARY KEY (shard, "),
                "R5: the key does not begin with the shard: {sql}"
            );
            assert!(sql.contains("PRIMARY KEY ("), "R5: no primary key: {sql}");
            assert!(sql.contains("IF NOT EXISTS"), "R11: can not be run again: {sql}");
        }
    }
    let mixed = ["CREATE TABLE a (b BIGINT)".to_owned(), "INSERT INTO a (b) VALUES (1)".to_owned()];
    assert!(misplaced(&mixed).is_some());
    assert!(misplaced(&["VACUUM executions".to_owned()]).is_some());
}

#[test]
fn a_transaction_is_small() {
    let settings = PostgresSettings::default();
    assert!(settings.payload_chunk_bytes <= 1 << 20, "R12: a row of payload");
    assert!(settings.batch_rows_max <= 500 && settings.batch_bytes_max <= 4 << 20, "R12: a transaction");
    assert!(settings.commit_deadline_ms < settings.answer_deadline_ms, "R12: a commit has a deadline of its own");
}
