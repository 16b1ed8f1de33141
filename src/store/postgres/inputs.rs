//! Questions to clients: asked with what they mean for the execution, answered once. What asking and answering mean for
//! the rows is `store::asking`'s; whether a lease is held, and what waiting and going on mean, is decided by the model.

use tokio_postgres::Row;
use uuid::Uuid;

use super::apply::apply_in;
use super::bind::{count, flag, int, text, uuid};
use super::db::{Db, Reading, Tx};
use super::fault::{Fault, Kind, Sql};
use super::heads;
use super::held::hold;
use super::lists::shards;
use super::rows::{self, shard};
use crate::model::decide::{Answer, Command};
use crate::model::execution::State;
use crate::model::id::{ExecutionId, OperationId};
use crate::store::asking::{self, Change, Stored};
use crate::store::{
    AnswerInputs, AnsweredInputs, Apply, Ask, Asked, InputOutcome, InputRow, Result, SealingKey, WantedKeys,
};

const ALL: &str = "SELECT number, round, attempt, parked, key, name, method, params, state, asked_at_ms, outcome, \
    answer, params_hash, answer_hash, asked_in, closed_in FROM input_requests \
    WHERE shard = $1 AND execution_id = $2 ORDER BY number";

const ASK_AGAIN: &str = "UPDATE input_requests SET round = $4, attempt = $5, parked = $6, state = $7, name = $8, \
    asked_at_ms = $9, outcome = $10, asked_in = $11 WHERE shard = $1 AND execution_id = $2 AND number = $3";

const INSERT: &str = "INSERT INTO input_requests (shard, execution_id, number, round, attempt, parked, key, name, \
    method, params, params_hash, state, asked_at_ms, asked_in) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

const CLOSE: &str = "UPDATE input_requests SET outcome = $4, answer = $5, answer_hash = $6, answered_at_ms = $7, \
    answered_by = $8, closed_in = $9 WHERE shard = $1 AND execution_id = $2 AND number = $3";

/// Stores questions, and lets the execution wait unless an earlier attempt got all the answers.
pub(super) async fn ask(db: &Db, ask: Ask) -> Result<Asked> {
    let ask = &ask;
    db.transaction(move |tx| Box::pin(ask_in(tx, ask))).await
}

async fn ask_in(tx: &Tx<'_>, ask: &Ask) -> Sql<Asked> {
    let id = ask.lease.id;
    let Some(entry) = heads::entry(tx, id).await? else { return Ok(Asked::Refused(Answer::Stale)) };
    let mut head = entry.head;
    let mut stored = stored(tx, id).await?;
    // A lease that was given up by this very write was held.
    if !stored.iter().any(|stored| stored.asked_by == Some(ask.operation)) {
        let held = asking::held(&head, ask.lease, ask.now_ms, &tx.settings().limits);
        if held != Answer::Extended {
            return Ok(Asked::Refused(held));
        }
    }
    let places = asking::ask(&head, &mut stored, ask);
    for (place, change) in &places {
        put(tx, (id, ask.operation), &stored[*place], *change).await.map_err(meanwhile)?;
    }
    let rows: Vec<InputRow> = places.iter().map(|(place, _)| stored[*place].row.clone()).collect();
    let waits = rows.iter().any(|row| row.outcome.is_none()) && head.state == State::Leased;
    if waits {
        let fencing_token = ask.lease.fencing_token;
        let command = match ask.parked {
            true => Command::Park { fencing_token },
            false => Command::Hold { fencing_token },
        };
        let apply = Apply { id, command, payload: None, operation: ask.operation, now_ms: ask.now_ms, seen: None };
        match apply_in(tx, &apply).await? {
            Some(applied) if applied.answer == Answer::Accepted => head = applied.head,
            _ => return Err(Fault::internal(format!("execution {id} can not wait under a lease that is held"))),
        }
    } else {
        hold(tx, &mut head).await?;
    }
    Ok(Asked::Stored { head: Box::new(head), rows })
}

/// Another process asks at the same time: the number, or the key, is taken by now.
fn meanwhile(fault: Fault) -> Fault {
    match fault.kind {
        Kind::Unique(_) => Fault::again("another process asked at the same time; try again"),
        _ => fault,
    }
}

async fn put(tx: &Tx<'_>, (id, operation): (ExecutionId, OperationId), stored: &Stored, change: Change) -> Sql<()> {
    let (shard, row) = (shard(id), &stored.row);
    let [number, round, attempt] = [row.number, row.round, row.attempt].map(i64::from);
    let (state, outcome) = (row.state.as_deref(), row.outcome.map(InputOutcome::as_str));
    match change {
        Change::None => {}
        Change::Again => {
            let values = [
                int(&shard),
                uuid(id.as_uuid()),
                int(&number),
                int(&round),
                int(&attempt),
                flag(&row.parked),
                text(&state),
                text(&row.name),
                int(&row.asked_at_ms),
                text(&outcome),
                uuid(operation.as_uuid()),
            ];
            tx.execute(ASK_AGAIN, &values).await?;
        }
        Change::New => {
            let params = &*row.params;
            let values = [
                int(&shard),
                uuid(id.as_uuid()),
                int(&number),
                int(&round),
                int(&attempt),
                flag(&row.parked),
                text(&row.key),
                text(&row.name),
                text(&row.method),
                text(&params),
                text(&stored.params_hash),
                text(&state),
                int(&row.asked_at_ms),
                uuid(operation.as_uuid()),
            ];
            tx.execute(INSERT, &values).await?;
        }
    }
    Ok(())
}

/// Closes questions, each once, and lets the execution go on when none is open any more.
pub(super) async fn answer(db: &Db, answers: AnswerInputs) -> Result<Option<AnsweredInputs>> {
    let answers = &answers;
    db.transaction(move |tx| Box::pin(answer_in(tx, answers))).await
}

async fn answer_in(tx: &Tx<'_>, answers: &AnswerInputs) -> Sql<Option<AnsweredInputs>> {
    let id = answers.id;
    let Some(entry) = heads::entry(tx, id).await? else { return Ok(None) };
    let mut head = entry.head;
    let mut stored = stored(tx, id).await?;
    let (mut fates, mut wrote) = (Vec::with_capacity(answers.answers.len()), false);
    for answer in &answers.answers {
        let (fate, place) = asking::close(&head, &mut stored, answer, answers.operation);
        if let Some(place) = place {
            close(tx, answers, &stored[place]).await?;
            wrote = true;
        }
        fates.push(fate);
    }
    if asking::goes_on(&head, &stored, &fates) {
        let apply = Apply {
            id,
            command: Command::Resume,
            payload: None,
            operation: answers.operation,
            now_ms: answers.now_ms,
            seen: None,
        };
        if let Some(applied) = apply_in(tx, &apply).await? {
            head = applied.head;
        }
    } else if wrote {
        // Two that close the last two questions at the same time: one of them has to see what the other closed.
        hold(tx, &mut head).await?;
    }
    let rows = stored.into_iter().map(|stored| stored.row).collect();
    Ok(Some(AnsweredInputs { head: Box::new(head), fates, rows }))
}

async fn close(tx: &Tx<'_>, answers: &AnswerInputs, stored: &Stored) -> Sql<()> {
    let (row, number) = (&stored.row, i64::from(stored.row.number));
    let (outcome, answer) = (row.outcome.map(InputOutcome::as_str), row.answer.as_deref());
    let shard = shard(answers.id);
    let values = [
        int(&shard),
        uuid(answers.id.as_uuid()),
        int(&number),
        text(&outcome),
        text(&answer),
        text(&stored.answer_hash),
        int(&answers.now_ms),
        text(&answers.by),
        uuid(answers.operation.as_uuid()),
    ];
    tx.execute(CLOSE, &values).await?;
    Ok(())
}

/// Every question of an execution, in order.
pub(super) async fn inputs(db: &Db, id: ExecutionId) -> Result<Vec<InputRow>> {
    let stored = db.read(move |reading| Box::pin(stored(reading, id))).await?;
    Ok(stored.into_iter().map(|stored| stored.row).collect())
}

async fn stored(reading: &Reading<'_>, id: ExecutionId) -> Sql<Vec<Stored>> {
    reading.query(ALL, &[int(&shard(id)), uuid(id.as_uuid())]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Sql<Stored> {
    let outcome = match row.try_get::<_, Option<&str>>(10)? {
        Some(name) => {
            Some(InputOutcome::parse(name).ok_or_else(|| Fault::damaged("a question has an unknown outcome"))?)
        }
        None => None,
    };
    let question = InputRow {
        number: rows::count(row, 0)?,
        round: rows::count(row, 1)?,
        attempt: rows::count(row, 2)?,
        parked: row.try_get(3)?,
        key: row.try_get(4)?,
        name: row.try_get(5)?,
        method: row.try_get(6)?,
        params: row.try_get::<_, &str>(7)?.into(),
        state: row.try_get::<_, Option<&str>>(8)?.map(Into::into),
        asked_at_ms: row.try_get(9)?,
        outcome,
        answer: row.try_get::<_, Option<&str>>(11)?.map(Into::into),
    };
    let operation = |column| -> Sql<Option<OperationId>> {
        Ok(row.try_get::<_, Option<Uuid>>(column)?.map(OperationId::from_uuid))
    };
    Ok(Stored {
        row: question,
        params_hash: row.try_get(12)?,
        answer_hash: row.try_get(13)?,
        asked_by: operation(14)?,
        closed_by: operation(15)?,
    })
}

const DUE: &str = concat!(
    "SELECT i.execution_id, i.number FROM ",
    shards!(),
    " CROSS JOIN LATERAL (SELECT x.execution_id, x.number, x.asked_at_ms FROM input_requests x \
     WHERE x.shard = s.shard AND x.asked_at_ms <= $1 AND x.outcome IS NULL ORDER BY x.asked_at_ms LIMIT $2) i \
     ORDER BY i.asked_at_ms LIMIT $2"
);

/// Open questions asked by `until_ms`, the oldest first.
pub(super) async fn inputs_due(db: &Db, until_ms: i64, limit: usize) -> Result<Vec<(ExecutionId, u32)>> {
    db.read(move |reading| {
        Box::pin(async move {
            let found = reading.query(DUE, &[int(&until_ms), int(&count(limit))]).await?;
            found.iter().map(|row| Ok((rows::execution(row, 0)?, rows::count(row, 1)?))).collect()
        })
    })
    .await
}

const KEYS: &str = "SELECT generation, key, created_at_ms FROM sealing_keys ORDER BY generation DESC";

const PUT_KEY: &str = "INSERT INTO sealing_keys (generation, key, created_at_ms) VALUES ($1, $2, $3) \
    ON CONFLICT (generation) DO NOTHING";

const DROP_KEYS: &str = "DELETE FROM sealing_keys WHERE generation < $1";

/// The newest key and the one before it; makes one when it is due. Of two that make one at the same time one counts.
pub(super) async fn sealing_keys(db: &Db, wanted: WantedKeys) -> Result<Vec<SealingKey>> {
    let wanted = &wanted;
    let keys = db.read(move |reading| Box::pin(stored_keys(reading))).await?;
    if asking::next_key(keys.first(), wanted).is_none() {
        return Ok(keys);
    }
    db.transaction(move |tx| {
        Box::pin(async move {
            let keys = stored_keys(tx).await?;
            let Some(next) = asking::next_key(keys.first(), wanted) else { return Ok(keys) };
            let key = hex::encode(next.key);
            tx.execute(PUT_KEY, &[int(&next.generation), text(&key), int(&next.created_at_ms)]).await?;
            tx.execute(DROP_KEYS, &[int(&(next.generation - 1))]).await?;
            stored_keys(tx).await
        })
    })
    .await
}

async fn stored_keys(reading: &Reading<'_>) -> Sql<Vec<SealingKey>> {
    let rows = reading.query(KEYS, &[]).await?;
    let read = |row: &Row| {
        let mut key = [0; 32];
        hex::decode_to_slice(row.try_get::<_, &str>(1)?, &mut key)
            .map_err(|_| Fault::damaged("a sealing key is not readable"))?;
        Ok(SealingKey { generation: row.try_get(0)?, key, created_at_ms: row.try_get(2)? })
    };
    rows.iter().map(read).collect()
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[
    (ALL, "bigint, uuid"),
    (ASK_AGAIN, "bigint, uuid, bigint, bigint, bigint, boolean, text, text, bigint, text, uuid"),
    (CLOSE, "bigint, uuid, bigint, text, text, text, bigint, text, uuid"),
    (DUE, "bigint, bigint"),
];
