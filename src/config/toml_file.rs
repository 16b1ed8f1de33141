//! TOML text into the tree. Knows no setting.

use super::error::{ErrorKind, Message, Problems};
use super::node::{Entry, Lines, Node, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads TOML text. What is wrong with it goes to `problems`.
pub(super) fn read(text: &str, problems: &mut Problems) -> Node {
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    // The parser goes on after an error, but what it says then is mostly noise of the first.
    if let Some(error) = errors.first() {
        let place = lines.place(error.span().map_or(0, |span| span.start));
        let reason = error.message().lines().collect::<Vec<_>>().join(", ");
        let duplicate = reason.contains("duplicate key");
        let kind = if duplicate { ErrorKind::Key } else { ErrorKind::Syntax };
        let next = if duplicate { "keep one of the two" } else { "see https://toml.io for the syntax" };
        problems.error(kind, &place, Message::new(format!("not valid TOML: {reason}"), next));
        return Node::table(lines.place(0));
    }
    let mut reader = Reader { lines, problems };
    let value = reader.table(table.into_inner());
    Node::new(value, reader.lines.place(0))
}

struct Reader<'t, 'p> {
    lines: Lines<'t>,
    problems: &'p mut Problems,
}

impl Reader<'_, '_> {
    fn table(&mut self, table: DeTable<'_>) -> Value {
        let mut entries: Vec<(usize, Entry)> = table
            .into_iter()
            .map(|(key, value)| {
                let offset = key.span().start;
                let place = self.lines.place(offset);
                (offset, Entry { key: key.into_inner().into_owned(), place, node: self.node(value) })
            })
            .collect();
        // The parser sorts by name; the order of the file decides collisions.
        entries.sort_by_key(|(offset, _)| *offset);
        Value::Table(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    fn node(&mut self, value: Spanned<DeValue<'_>>) -> Node {
        let place = self.lines.place(value.span().start);
        let mut broken = false;
        let value = match value.into_inner() {
            DeValue::String(text) => Value::String(text.into_owned()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::Integer(number),
                Err(_) => {
                    let message = Message::new("a whole number beyond 64 bits", "write a smaller one");
                    self.problems.error(ErrorKind::Value, &place, message);
                    broken = true;
                    Value::Integer(0)
                }
            },
            DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(value) => Value::Boolean(value),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(items) => Value::Array(items.into_iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => self.table(table),
        };
        Node { broken, ..Node::new(value, place) }
    }
}
