//! What went wrong in PostgreSQL, in the store's words and by SQLSTATE. Knows what may be done about it: run again, ask
//! again what became of it, or fail one command alone. No text of ours or of the database's that leaves here holds a
//! password or a payload.

use std::error::Error as _;

use tokio_postgres::error::{DbError, SqlState};

use crate::store::Error;

/// An error, and what may be done about it.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: Error,
    pub(super) kind: Kind,
}

/// What may be done about a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing was written, and the same may succeed when everything is read again (R1).
    Again,
    /// The connection is gone, or no use any more. Of a commit that was under way nothing is known (R2).
    Lost,
    /// A unique key stands in the way: the constraint's name.
    Unique(String),
    /// It strikes everything, not the command at hand.
    Whole,
    /// It strikes the command at hand.
    Own,
}

/// A result inside the driver.
pub(super) type Sql<T> = std::result::Result<T, Fault>;

impl Fault {
    /// A stored value that does not hold together.
    pub(super) fn damaged(text: impl Into<String>) -> Fault {
        Fault { error: Error::Damaged(text.into()), kind: Kind::Own }
    }

    /// A fault of our own.
    pub(super) fn internal(text: impl Into<String>) -> Fault {
        Fault { error: Error::Internal(text.into()), kind: Kind::Own }
    }

    /// Something that was asked for can not be stored.
    pub(super) fn refused(text: impl Into<String>) -> Fault {
        Fault { error: Error::CannotWrite(text.into()), kind: Kind::Own }
    }

    /// Nothing can be read or written now.
    pub(super) fn unavailable(text: impl Into<String>) -> Fault {
        Fault { error: Error::Unavailable(text.into()), kind: Kind::Whole }
    }

    /// Somebody else changed a row meanwhile: the whole transaction runs again.
    pub(super) fn again(text: impl Into<String>) -> Fault {
        Fault { error: Error::Unavailable(text.into()), kind: Kind::Again }
    }

    /// The connection is gone, or was given up.
    pub(super) fn lost(text: impl Into<String>) -> Fault {
        Fault { error: Error::Unavailable(text.into()), kind: Kind::Lost }
    }

    /// True when running the same once more, all reads included and perhaps on another connection, may succeed.
    pub(super) fn may_run_again(&self) -> bool {
        matches!(self.kind, Kind::Again | Kind::Lost)
    }

    /// True when the connection can not be used any more.
    pub(super) fn ends_connection(&self) -> bool {
        matches!(self.kind, Kind::Lost | Kind::Whole)
    }

    /// What failed while connecting to `place`, which names no password.
    pub(super) fn connecting(place: &str, error: &tokio_postgres::Error) -> Fault {
        if let Some(told) = error.as_db_error() {
            return of_database(told);
        }
        let cause = error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        Fault::lost(format!("can not reach PostgreSQL at {place} ({cause}); start it, or mend the URL of the store"))
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Fault {
        if let Some(told) = error.as_db_error() {
            return of_database(told);
        }
        let io = error.source().is_some_and(|source| source.is::<std::io::Error>());
        if io || error.is_closed() {
            return Fault::lost("the connection to PostgreSQL was lost; try again");
        }
        let text = error.to_string();
        if text.contains("deserializing") || text.contains("column") {
            return Fault::damaged(text);
        }
        if text.contains("serializing") {
            return Fault::internal(text);
        }
        // What follows an answer nobody expected can not be trusted either.
        Fault::lost(format!("PostgreSQL answered something unexpected ({text}); try again"))
    }
}

/// The database's own errors. Its `detail` may hold values and is left out.
fn of_database(error: &DbError) -> Fault {
    let code = error.code().code();
    let told = || format!("{} (SQLSTATE {code})", error.message());
    let whole = |error: Error| Fault { error, kind: Kind::Whole };
    match error.code() {
        &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED | &SqlState::LOCK_NOT_AVAILABLE => {
            Fault::again("too many writes met each other in PostgreSQL; try again")
        }
        &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN => {
            Fault::lost("PostgreSQL does not know whether it wrote; ask again for what became of it")
        }
        &SqlState::UNIQUE_VIOLATION => {
            let constraint = error.constraint().unwrap_or_default();
            let text = format!("something of the same name is there already ({constraint})");
            Fault { error: Error::Internal(text), kind: Kind::Unique(constraint.into()) }
        }
        // After a fail-over the connection leads to what is a standby now: another one may lead to the new primary.
        &SqlState::READ_ONLY_SQL_TRANSACTION => Fault {
            error: Error::CannotWrite(
                "PostgreSQL is read-only: the URL of the store leads to a standby, or the database was switched to \
                 read-only; lead it to the primary"
                    .into(),
            ),
            kind: Kind::Lost,
        },
        &SqlState::DISK_FULL => whole(Error::CannotWrite("the disk of PostgreSQL is full; make room on it".into())),
        &SqlState::OUT_OF_MEMORY | &SqlState::IO_ERROR => whole(Error::CannotWrite(told())),
        &SqlState::TOO_MANY_CONNECTIONS => Fault::unavailable(
            "PostgreSQL has no connection left; raise its max_connections, or lower the pool of the store",
        ),
        &SqlState::QUERY_CANCELED => Fault::unavailable(
            "PostgreSQL stopped a statement that took too long; see to its load, or raise the statement timeout",
        ),
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            Fault::unavailable("PostgreSQL refused the user or the password in the URL of the store; mend them there")
        }
        &SqlState::INVALID_CATALOG_NAME => {
            Fault::unavailable("there is no database of the name in the URL of the store; create it (createdb)")
        }
        &SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN | &SqlState::INVALID_SCHEMA_NAME => {
            Fault::unavailable(format!(
                "the schema of the store is not the one this program needs, {}; run durable-mcp db migrate",
                told()
            ))
        }
        &SqlState::INSUFFICIENT_PRIVILEGE => whole(Error::CannotWrite(format!(
            "the role in the URL of the store lacks a privilege: {}; grant it, or let durable-mcp db migrate do so",
            told()
        ))),
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => whole(Error::Damaged(told())),
        // 57P: shut down, crashed, starting up. 08: the connection. 25P02 follows an error that was told before.
        _ if code.starts_with("57P") || code.starts_with("08") => {
            Fault::lost(format!("PostgreSQL ended the connection: {}; try again", told()))
        }
        &SqlState::IN_FAILED_SQL_TRANSACTION => Fault::again("a statement before it failed; try again"),
        // A prepared statement that is not there, or not of this schema any more: a new connection prepares it anew.
        &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::FEATURE_NOT_SUPPORTED => {
            Fault::lost(format!("PostgreSQL could not use a statement of this connection: {}; try again", told()))
        }
        &SqlState::CHARACTER_NOT_IN_REPERTOIRE | &SqlState::UNTRANSLATABLE_CHARACTER => {
            let text = format!("PostgreSQL has no text like this ({}); send it without U+0000", told());
            Fault { error: Error::Unstorable(text), kind: Kind::Own }
        }
        // 53: some other resource is used up.
        _ if code.starts_with("53") => Fault::unavailable(told()),
        // 22: values, 23: constraints, 54: sizes. Only they are about what one command asks for.
        _ if ["22", "23", "54"].iter().any(|class| code.starts_with(class)) => {
            Fault { error: Error::Internal(told()), kind: Kind::Own }
        }
        _ => whole(Error::Internal(told())),
    }
}

/// The same error once more, for everybody a failed commit strikes.
pub(super) fn repeat(error: &Error) -> Error {
    match error {
        Error::Unavailable(text) => Error::Unavailable(text.clone()),
        Error::CannotWrite(text) => Error::CannotWrite(text.clone()),
        Error::Damaged(text) => Error::Damaged(text.clone()),
        Error::TooNew { found, known } => Error::TooNew { found: *found, known: *known },
        Error::TooOld { found, known } => Error::TooOld { found: *found, known: *known },
        Error::Overloaded(waiting) => Error::Overloaded(*waiting),
        Error::Unstorable(text) => Error::Unstorable(text.clone()),
        Error::Internal(text) => Error::Internal(text.clone()),
    }
}

/// What a closed store answers.
pub(super) const CLOSED: &str = "the store is closed";
