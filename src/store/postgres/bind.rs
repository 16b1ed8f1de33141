//! Values with the types they are sent as: nothing is prepared, so nobody asks the database for them.

use tokio_postgres::types::{ToSql, Type};

use super::db::Param;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $kind:ident,)*) => {
        $($(#[$doc])*
        pub(super) fn $name(value: &(impl ToSql + Sync)) -> Param<'_> {
            (value, Type::$kind)
        })*
    };
}

kinds! {
    /// A text.
    text: TEXT,
    /// Several texts.
    texts: TEXT_ARRAY,
    /// A number or a time.
    int: INT8,
    /// Several numbers.
    ints: INT8_ARRAY,
    /// A flag.
    flag: BOOL,
    /// An id.
    uuid: UUID,
    /// Several ids.
    uuids: UUID_ARRAY,
}

/// A limit or a count as it is sent.
pub(super) fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
