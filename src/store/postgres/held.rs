//! The row of an execution as something beside it is written: it is seen as it stands, and stands so until the commit.
//! Changes nothing of it but its version.

use super::bind::{int, uuid};
use super::db::Tx;
use super::fault::{Fault, Sql};
use super::rows::shard;
use crate::model::execution::Head;

/// Another process that changes the row meanwhile, whatever the isolation, makes one of the two run again.
const HOLD: &str = "UPDATE executions SET version = version + 1 WHERE shard = $1 AND id = $2 AND version = $3";

/// Keeps the row as it was read until the commit, and counts its version up.
pub(super) async fn hold(tx: &Tx<'_>, head: &mut Head) -> Sql<()> {
    let id = head.id();
    if tx.execute(HOLD, &[int(&shard(id)), uuid(id.as_uuid()), int(&head.version)]).await? != 1 {
        return Err(Fault::again(format!("execution {id} was changed by another process; try again")));
    }
    head.version += 1;
    Ok(())
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[(HOLD, "bigint, uuid, bigint")];
