//! What went wrong in SQLite, in the store's words. Tells a fault of one command from one of the whole database.

use rusqlite::ErrorCode;

use crate::store::Error;

/// An error, and whether it strikes everything rather than the command at hand.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: Error,
    pub(super) whole: bool,
}

/// A result inside the driver.
pub(super) type Sql<T> = std::result::Result<T, Fault>;

impl Fault {
    /// A stored value that does not hold together.
    pub(super) fn damaged(text: impl Into<String>) -> Fault {
        Fault { error: Error::Damaged(text.into()), whole: false }
    }

    /// A fault of our own.
    pub(super) fn internal(text: impl Into<String>) -> Fault {
        Fault { error: Error::Internal(text.into()), whole: false }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
        let text = error.to_string();
        if matches!(
            error,
            FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
        ) {
            return Fault::damaged(text);
        }
        let (error, whole) = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => (Error::CannotWrite("the disk is full".into()), true),
            Some(ErrorCode::ReadOnly) => (Error::CannotWrite("the database is read-only".into()), true),
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                (Error::CannotWrite(text), true)
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
                (Error::Unavailable("another program has locked the database for too long".into()), true)
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (Error::Damaged(text), true),
            Some(ErrorCode::OutOfMemory) => (Error::Unavailable("out of memory".into()), true),
            _ => (Error::Internal(text), false),
        };
        Fault { error, whole }
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
