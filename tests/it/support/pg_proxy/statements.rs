//! What a statement is to the proxy: does it begin or end a transaction, does it write. Knows no SQL beyond that.

/// What a statement does to the transaction it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    Begin,
    Commit,
    Rollback,
    Read,
    Write,
    /// Settings and the like, which nobody repeats.
    Session,
}

impl Does {
    pub fn of(statement: &str) -> Does {
        let words = words(statement);
        let word = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
        match (word(0), word(1)) {
            ("BEGIN", _) | ("START", "TRANSACTION") => Does::Begin,
            ("COMMIT" | "END", _) => Does::Commit,
            ("ROLLBACK", next) if next != "TO" => Does::Rollback,
            ("ABORT", _) => Does::Rollback,
            ("SELECT" | "WITH" | "VALUES" | "TABLE", _) => {
                let writes = ["INSERT", "UPDATE", "DELETE"];
                if words.iter().any(|word| writes.contains(&word.as_str())) { Does::Write } else { Does::Read }
            }
            (
                "SET" | "SHOW" | "RESET" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "LISTEN" | "UNLISTEN" | "DISCARD",
                _,
            )
            | ("DEALLOCATE" | "EXPLAIN" | "", _) => Does::Session,
            _ => Does::Write,
        }
    }
}

/// The words of a statement, in capitals, without texts and comments; a qualified name is one word.
fn words(statement: &str) -> Vec<String> {
    let code = without_texts(statement).to_uppercase();
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// The single statements of a simple query.
pub fn split(sql: &str) -> Vec<String> {
    let mask = without_texts(sql);
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, _) in mask.match_indices(';') {
        parts.push(&sql[start..at]);
        start = at + 1;
    }
    parts.push(&sql[start..]);
    parts.into_iter().map(str::trim).filter(|part| !without_texts(part).trim().is_empty()).map(str::to_owned).collect()
}

/// The same length, with blanks in the place of texts, quoted names and comments.
fn without_texts(sql: &str) -> String {
    let mut mask = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => quoted(rest, "'", 1),
            '"' => quoted(rest, "\"", 1),
            '$' => dollar(rest),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => quoted(rest, "*/", 2),
            _ => 0,
        };
        match length {
            0 => mask.push(first),
            length => mask.extend(std::iter::repeat_n(' ', length)),
        }
        rest = &rest[length.max(first.len_utf8())..];
    }
    mask
}

/// How long what begins here is, up to and with its end.
fn quoted(text: &str, end: &str, after: usize) -> usize {
    text[after..].find(end).map_or(text.len(), |at| after + at + end.len())
}

/// A text between two `$name$`; 0 for a parameter.
fn dollar(text: &str) -> usize {
    let name = text[1..].find(|c: char| !c.is_alphanumeric() && c != '_').map_or(text.len(), |at| at + 1);
    if !text[name..].starts_with('$') || text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    quoted(text, &text[..=name], name + 1)
}

/// A short name of a transaction that writes in this way: what its statements do, to which tables.
pub fn shape(statements: &[String]) -> String {
    let mut parts: Vec<String> = statements
        .iter()
        .filter(|statement| Does::of(statement) == Does::Write)
        .flat_map(|statement| {
            let words = words(statement);
            let targets = words.windows(3).filter_map(|three| match [&*three[0], &*three[1], &*three[2]] {
                ["INSERT", "INTO", table] | ["DELETE", "FROM", table] => Some(format!("{} {table}", three[0])),
                ["UPDATE", table, _] if table != "SET" => Some(format!("UPDATE {table}")),
                _ => None,
            });
            // Which schema makes no difference.
            let bare = |target: String| {
                let (does, table) = target.split_once(' ').unwrap_or_default();
                format!("{does} {}", table.rsplit('.').next().unwrap_or_default())
            };
            let targets: Vec<String> = targets.map(bare).collect();
            if targets.is_empty() { words.first().cloned().into_iter().collect() } else { targets }
        })
        .collect();
    parts.dedup();
    parts.join(", ")
}

#[test]
fn statements_are_told_apart() {
    let does = |text: &str, what: Does| assert_eq!(Does::of(text), what, "{text}");
    does("BEGIN ISOLATION LEVEL SERIALIZABLE", Does::Begin);
    does("start transaction", Does::Begin);
    does("Commit", Does::Commit);
    does("ROLLBACK TO SAVEPOINT a", Does::Session);
    does("ROLLBACK", Does::Rollback);
    does("WITH a AS (SELECT 1) UPDATE b SET c = 1", Does::Write);
    does("SELECT 'update' FROM a -- delete", Does::Read);
    does("INSERT INTO a VALUES (1)", Does::Write);
    does("SELECT pg_notify('a', '')", Does::Read);
    assert_eq!(
        split("BEGIN; SELECT ';' ;DO $x$ a; b $x$; -- c;\nCOMMIT;"),
        ["BEGIN", "SELECT ';'", "DO $x$ a; b $x$", "-- c;\nCOMMIT"]
    );
    assert_eq!(split("SELECT $1; SELECT $2").len(), 2);
    assert_eq!(
        shape(&["WITH a AS (INSERT INTO s.b (c) VALUES ($1) RETURNING c), d AS (UPDATE e SET f = 1) SELECT 1".into()]),
        "INSERT B, UPDATE E"
    );
}
