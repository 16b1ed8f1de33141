//! Questions to clients: asked with what they mean for the execution, answered once. Whether a lease is held, and what
//! waiting and going on mean, is decided by the model.

use rusqlite::{Connection, Row, params};

use super::apply;
use super::fault::{Fault, Sql};
use super::rows::{Id, IdText};
use super::tx::Tx;
use crate::model::decide::{Answer, Command};
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::store::asking::{self, Change, Stored};
use crate::store::{AnswerInputs, AnsweredInputs, Apply, Ask, Asked, InputOutcome, InputRow, SealingKey, WantedKeys};

const ALL: &str = "SELECT number, round, attempt, parked, key, name, method, params, state, asked_at_ms, outcome, \
    answer, params_hash, answer_hash FROM input_requests WHERE execution_id = ?1 ORDER BY number";

const ASK_AGAIN: &str = "UPDATE input_requests SET round = ?3, attempt = ?4, parked = ?5, state = ?6, name = ?7, \
    asked_at_ms = ?8, outcome = ?9 WHERE execution_id = ?1 AND number = ?2";

const INSERT: &str = "INSERT INTO input_requests (execution_id, number, round, attempt, parked, key, name, method, \
    params, params_hash, state, asked_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

const CLOSE: &str = "UPDATE input_requests SET outcome = ?3, answer = ?4, answer_hash = ?5, answered_at_ms = ?6, \
    answered_by = ?7 WHERE execution_id = ?1 AND number = ?2";

const DUE: &str = "SELECT execution_id, number FROM input_requests INDEXED BY input_requests_open \
    WHERE asked_at_ms <= ?1 AND outcome IS NULL ORDER BY asked_at_ms LIMIT ?2";

const DELETE: &str = "DELETE FROM input_requests WHERE execution_id = ?1";

/// Stores questions, and lets the execution wait unless an earlier attempt got all the answers.
pub(super) fn ask(tx: &mut Tx<'_>, ask: &Ask) -> Sql<Asked> {
    let id = ask.lease.id;
    let Some(entry) = tx.entry(id)? else { return Ok(Asked::Refused(Answer::Stale)) };
    let mut head = entry.head.clone();
    tx.keep(entry);
    let held = asking::held(&head, ask.lease, ask.now_ms, &tx.settings.limits);
    if held != Answer::Extended {
        return Ok(Asked::Refused(held));
    }
    let mut stored = stored(tx.connection, id)?;
    let places = asking::ask(&head, &mut stored, ask);
    for (place, change) in &places {
        put(tx.connection, id, &stored[*place], *change)?;
    }
    let rows: Vec<InputRow> = places.iter().map(|(place, _)| stored[*place].row.clone()).collect();
    if rows.iter().any(|row| row.outcome.is_none()) && head.state == State::Leased {
        let fencing_token = ask.lease.fencing_token;
        let command = match ask.parked {
            true => Command::Park { fencing_token },
            false => Command::Hold { fencing_token },
        };
        let apply = Apply { id, command, payload: None, operation: ask.operation, now_ms: ask.now_ms, seen: None };
        match apply::run(tx, &apply)? {
            Some(applied) if applied.answer == Answer::Accepted => head = applied.head,
            _ => return Err(Fault::internal(format!("execution {id} can not wait under a lease that is held"))),
        }
    }
    Ok(Asked::Stored { head: Box::new(head), rows })
}

fn put(connection: &Connection, id: ExecutionId, stored: &Stored, change: Change) -> Sql<()> {
    let (execution, row) = (IdText::execution(id), &stored.row);
    match change {
        Change::None => {}
        Change::Again => {
            connection.prepare_cached(ASK_AGAIN)?.execute(params![
                execution,
                row.number,
                row.round,
                row.attempt,
                row.parked,
                row.state.as_deref(),
                row.name,
                row.asked_at_ms,
                row.outcome.map(InputOutcome::as_str),
            ])?;
        }
        Change::New => {
            connection.prepare_cached(INSERT)?.execute(params![
                execution,
                row.number,
                row.round,
                row.attempt,
                row.parked,
                row.key,
                row.name,
                row.method,
                &*row.params,
                stored.params_hash,
                row.state.as_deref(),
                row.asked_at_ms,
            ])?;
        }
    }
    Ok(())
}

/// Closes questions, each once, and lets the execution go on when none is open any more.
pub(super) fn answer(tx: &mut Tx<'_>, answers: &AnswerInputs) -> Sql<Option<AnsweredInputs>> {
    let id = answers.id;
    let Some(entry) = tx.entry(id)? else { return Ok(None) };
    let mut head = entry.head.clone();
    tx.keep(entry);
    let mut stored = stored(tx.connection, id)?;
    let mut fates = Vec::with_capacity(answers.answers.len());
    for answer in &answers.answers {
        let (fate, place) = asking::close(&head, &mut stored, answer, answers.operation);
        if let Some(place) = place {
            close(tx.connection, answers, &stored[place])?;
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
        if let Some(applied) = apply::run(tx, &apply)? {
            head = applied.head;
        }
    }
    let rows = stored.into_iter().map(|stored| stored.row).collect();
    Ok(Some(AnsweredInputs { head: Box::new(head), fates, rows }))
}

fn close(connection: &Connection, answers: &AnswerInputs, stored: &Stored) -> Sql<()> {
    let row = &stored.row;
    connection.prepare_cached(CLOSE)?.execute(params![
        IdText::execution(answers.id),
        row.number,
        row.outcome.map(InputOutcome::as_str),
        row.answer.as_deref(),
        stored.answer_hash,
        answers.now_ms,
        answers.by,
    ])?;
    Ok(())
}

/// Every question of an execution, in order.
pub(super) fn all(connection: &Connection, id: ExecutionId) -> Sql<Vec<InputRow>> {
    Ok(stored(connection, id)?.into_iter().map(|stored| stored.row).collect())
}

fn stored(connection: &Connection, id: ExecutionId) -> Sql<Vec<Stored>> {
    let mut statement = connection.prepare_cached(ALL)?;
    let rows =
        statement.query_map([IdText::execution(id)], |row| Ok(read(row)))?.collect::<rusqlite::Result<Vec<_>>>()?;
    rows.into_iter().collect()
}

fn read(row: &Row<'_>) -> Sql<Stored> {
    let outcome: Option<String> = row.get(10)?;
    let outcome = match outcome {
        Some(name) => {
            Some(InputOutcome::parse(&name).ok_or_else(|| Fault::damaged("a question has an unknown outcome"))?)
        }
        None => None,
    };
    let question = InputRow {
        number: row.get(0)?,
        round: row.get(1)?,
        attempt: row.get(2)?,
        parked: row.get(3)?,
        key: row.get(4)?,
        name: row.get(5)?,
        method: row.get(6)?,
        params: row.get::<_, String>(7)?.into(),
        state: row.get::<_, Option<String>>(8)?.map(Into::into),
        asked_at_ms: row.get(9)?,
        outcome,
        answer: row.get::<_, Option<String>>(11)?.map(Into::into),
    };
    // One writer and no ambiguous commits: which write it was need not be known.
    let (asked_by, closed_by) = (None, None);
    Ok(Stored { row: question, params_hash: row.get(12)?, answer_hash: row.get(13)?, asked_by, closed_by })
}

/// Open questions asked by `until_ms`, the oldest first.
pub(super) fn due(connection: &Connection, until_ms: i64, limit: usize) -> Sql<Vec<(ExecutionId, u32)>> {
    let mut statement = connection.prepare_cached(DUE)?;
    let due = statement
        .query_map(params![until_ms, limit as i64], |row| Ok((row.get::<_, Id<ExecutionId>>(0)?.0, row.get(1)?)))?;
    Ok(due.collect::<rusqlite::Result<_>>()?)
}

/// Forgets the questions of an execution.
pub(super) fn forget(connection: &Connection, id: ExecutionId) -> Sql<()> {
    connection.prepare_cached(DELETE)?.execute([IdText::execution(id)])?;
    Ok(())
}

const KEYS: &str = "SELECT generation, key, created_at_ms FROM sealing_keys ORDER BY generation DESC";

const PUT_KEY: &str = "INSERT INTO sealing_keys (generation, key, created_at_ms) VALUES (?1, ?2, ?3)";

const DROP_KEYS: &str = "DELETE FROM sealing_keys WHERE generation < ?1";

/// The newest key and the one before it; makes one when it is due.
pub(super) fn keys(tx: &Tx<'_>, wanted: &WantedKeys) -> Sql<Vec<SealingKey>> {
    let keys = stored_keys(tx.connection)?;
    let Some(next) = asking::next_key(keys.first(), wanted) else { return Ok(keys) };
    let values = params![next.generation, hex::encode(next.key), next.created_at_ms];
    tx.connection.prepare_cached(PUT_KEY)?.execute(values)?;
    tx.connection.prepare_cached(DROP_KEYS)?.execute([next.generation - 1])?;
    stored_keys(tx.connection)
}

fn stored_keys(connection: &Connection) -> Sql<Vec<SealingKey>> {
    let mut statement = connection.prepare_cached(KEYS)?;
    let keys = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?)))?;
    let mut read = Vec::new();
    for stored in keys {
        let (generation, text, created_at_ms) = stored?;
        let mut key = [0; 32];
        hex::decode_to_slice(&text, &mut key).map_err(|_| Fault::damaged("a sealing key is not readable"))?;
        read.push(SealingKey { generation, key, created_at_ms });
    }
    Ok(read)
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[ALL, ASK_AGAIN, CLOSE, DUE, DELETE];
