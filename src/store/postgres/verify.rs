//! Whether the database still keeps its log append-only: the triggers that the migrations made are there, are those, and are
//! on. What is wrong is told with the statement that mends it; changes nothing. What the rows say is checked elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fault::Sql;
use super::migrations;
use super::pool::{Connection, Connector};
use super::settings::PostgresSettings;
use super::tls::Target;
use super::vendor::Vendor;
use crate::store::Result;
use crate::store::verify::{Finding, Rule};

/// Looks for the triggers in the database at `url`; tells each one that does not do its work.
///
/// # Errors
///
/// One sentence without the password: it can not be reached, or refuses the user.
pub async fn guards(url: &str, settings: &PostgresSettings) -> Result<Vec<Finding>> {
    let target = Target::of(url, settings.root_certificates.as_deref())?;
    let connector = Connector::new(target, Arc::new(settings.clone()));
    let looking = async {
        let client = connector.connect().await?;
        client.batch_execute(&connector.begin()).await?;
        let found = look(&client).await?;
        client.batch_execute("ROLLBACK").await?;
        Ok(found)
    };
    looking.await.map_err(|fault: super::fault::Fault| fault.error)
}

async fn look(client: &Connection) -> Sql<Vec<Finding>> {
    let version = client.query_typed(Vendor::QUESTION, &[]).await?;
    let version: String = version.first().map_or(Ok(String::new()), |row| row.try_get(0))?;
    let wanted = Wanted::of(Vendor::of(&version));
    if wanted.triggers.is_empty() {
        // Only grants guard the log there.
        return Ok(Vec::new());
    }
    let there = triggers(client).await?;
    Ok(wanted.triggers.iter().filter_map(|trigger| trigger.judge(&there, &wanted.functions)).collect())
}

/// A trigger as the database has it.
struct There {
    table: String,
    /// `D`: off; `R`: only on replicas; else it is on.
    enabled: String,
    function: String,
    body: String,
}

const TRIGGERS: &str = "SELECT t.tgname::TEXT, c.relname::TEXT, t.tgenabled::TEXT, p.proname::TEXT, p.prosrc::TEXT \
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_proc p ON p.oid = t.tgfoid WHERE n.nspname = current_schema() AND NOT t.tgisinternal";

async fn triggers(client: &Connection) -> Sql<BTreeMap<String, There>> {
    let mut there = BTreeMap::new();
    for row in client.query_typed(TRIGGERS, &[]).await? {
        let (table, enabled) = (row.try_get(1)?, row.try_get(2)?);
        there.insert(row.try_get(0)?, There { table, enabled, function: row.try_get(3)?, body: row.try_get(4)? });
    }
    Ok(there)
}

/// What the migrations make.
struct Wanted {
    triggers: Vec<Trigger>,
    /// Bodies by name.
    functions: BTreeMap<String, String>,
}

/// A trigger as its migration makes it.
struct Trigger {
    name: String,
    table: String,
    function: String,
    /// The statement that makes it, on one line.
    sql: String,
}

const MAKE_TRIGGER: &str = "CREATE OR REPLACE TRIGGER ";
const MAKE_FUNCTION: &str = "CREATE OR REPLACE FUNCTION ";

impl Wanted {
    fn of(vendor: Vendor) -> Wanted {
        let mut wanted = Wanted { triggers: Vec::new(), functions: BTreeMap::new() };
        for migration in migrations::embedded() {
            for sql in migration.sections_for(vendor) {
                for made in sql.split(MAKE_FUNCTION).skip(1) {
                    if let (Some((name, _)), Some(body)) = (made.split_once('('), made.split("$$").nth(1)) {
                        wanted.functions.insert(name.trim().to_owned(), body.to_owned());
                    }
                }
                for made in sql.split(MAKE_TRIGGER).skip(1) {
                    wanted.triggers.extend(made.split_once(';').and_then(|(made, _)| Trigger::read(made)));
                }
            }
        }
        wanted
    }
}

impl Trigger {
    /// From what follows [`MAKE_TRIGGER`], up to the end of the statement.
    fn read(made: &str) -> Option<Trigger> {
        let words: Vec<&str> = made.split_whitespace().collect();
        let after = |word: &str| words.iter().position(|it| *it == word).and_then(|at| words.get(at + 1));
        let function = words.last()?.trim_end_matches("()");
        let sql = format!("{MAKE_TRIGGER}{}", words.join(" "));
        let (name, table) = ((*words.first()?).to_owned(), (*after("ON")?).to_owned());
        Some(Trigger { name, table, function: function.to_owned(), sql })
    }

    fn judge(&self, there: &BTreeMap<String, There>, functions: &BTreeMap<String, String>) -> Option<Finding> {
        let Trigger { name, table, function, sql } = self;
        let what = match there.get(name).filter(|there| there.table == *table) {
            None => format!("trigger {name} on {table} is missing: its owner makes it again with `{sql}`"),
            Some(there) if there.enabled == "D" || there.enabled == "R" => format!(
                "trigger {name} on {table} is off: its owner turns it on with `ALTER TABLE {table} ENABLE TRIGGER {name}`"
            ),
            Some(there) if there.function != *function => {
                format!("trigger {name} on {table} calls {}: its owner makes it again with `{sql}`", there.function)
            }
            Some(there) if functions.get(function).is_none_or(|body| *body != there.body) => format!(
                "function {function}, which trigger {name} on {table} calls, is not as this program makes it: its owner \
                 makes it again as in migrations/postgres"
            ),
            Some(_) => return None,
        };
        Some(Finding::of_file(Rule::Schema, format!("{what}; until then what was done may be changed")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_migrations_make_is_read_from_them() {
        let wanted = Wanted::of(Vendor::PostgreSql);
        let named: Vec<_> =
            wanted.triggers.iter().map(|it| (it.name.as_str(), it.table.as_str(), it.function.as_str())).collect();
        assert!(named.contains(&("execution_events_are_never_changed", "execution_events", "refuse_change_of_events")));
        assert!(named.contains(&("executions_are_deleted_after_their_end", "executions", "refuse_early_deletion")));
        assert!(wanted.triggers.iter().all(|it| wanted.functions[&it.function].contains("RAISE EXCEPTION")));
        assert!(wanted.triggers.iter().all(|it| it.sql.ends_with(&format!("EXECUTE FUNCTION {}()", it.function))));
        assert!(Wanted::of(Vendor::CockroachDb).triggers.is_empty(), "it has no triggers of ours");
    }
}
