//! Questions to clients: asked with what they mean for the execution, answered once. Whether a lease is held, and what
//! waiting and going on mean, is decided by the model.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::apply;
use super::fault::{Fault, Sql};
use super::rows::{Id, IdText};
use super::tx::Tx;
use crate::model::decide::{Answer, Command, decide};
use crate::model::execution::{Head, State};
use crate::model::id::ExecutionId;
use crate::store::{
    AnswerInputs, AnsweredInputs, Apply, Ask, Asked, Fate, InputOutcome, InputRow, NewAnswer, NewQuestion, SealingKey,
    WantedKeys,
};

macro_rules! columns {
    () => {
        "number, round, attempt, parked, key, name, method, params, state, asked_at_ms, outcome, answer"
    };
}

const ALL: &str = concat!("SELECT ", columns!(), " FROM input_requests WHERE execution_id = ?1 ORDER BY number");

const ONE: &str = concat!("SELECT ", columns!(), " FROM input_requests WHERE execution_id = ?1 AND number = ?2");

/// The same question of an earlier attempt that this one has not asked again yet.
const EARLIER: &str = "SELECT number FROM input_requests WHERE execution_id = ?1 AND method = ?2 AND params_hash = ?3 \
    AND attempt < ?4 ORDER BY number LIMIT 1";

/// What an expired or withdrawn question lost, it may gain when it is asked again.
const ASK_AGAIN: &str = "UPDATE input_requests SET round = ?3, attempt = ?4, parked = ?5, state = ?6, name = ?7, \
    asked_at_ms = CASE WHEN outcome = 'expired' OR outcome = 'withdrawn' THEN ?8 ELSE asked_at_ms END, \
    outcome = CASE WHEN outcome = 'expired' OR outcome = 'withdrawn' THEN NULL ELSE outcome END \
    WHERE execution_id = ?1 AND number = ?2";

const KEY_TAKEN: &str = "SELECT 1 FROM input_requests WHERE execution_id = ?1 AND key = ?2";

const INSERT: &str = "INSERT INTO input_requests (execution_id, number, round, attempt, parked, key, name, method, \
    params, params_hash, state, asked_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

const LAST: &str =
    "SELECT coalesce(max(number), 0), coalesce(max(round), 0) FROM input_requests WHERE execution_id = ?1";

const OPEN: &str = "SELECT count(*) FROM input_requests WHERE execution_id = ?1 AND attempt = ?2 AND outcome IS NULL";

const HASH: &str = "SELECT answer_hash FROM input_requests WHERE execution_id = ?1 AND number = ?2";

const CLOSE: &str = "UPDATE input_requests SET outcome = ?3, answer = ?4, answer_hash = ?5, answered_at_ms = ?6, \
    answered_by = ?7 WHERE execution_id = ?1 AND number = ?2";

const DUE: &str = "SELECT execution_id, number FROM input_requests INDEXED BY input_requests_open \
    WHERE asked_at_ms <= ?1 AND outcome IS NULL ORDER BY asked_at_ms LIMIT ?2";

const DELETE: &str = "DELETE FROM input_requests WHERE execution_id = ?1";

/// Stores questions, and lets the execution wait unless an earlier attempt got all the answers.
pub(super) fn ask(tx: &mut Tx<'_>, ask: &Ask) -> Sql<Asked> {
    let id = ask.lease.id;
    let Some(entry) = tx.entry(id)? else { return Ok(Asked::Refused(Answer::Stale)) };
    let head = entry.head.clone();
    // Whoever may extend the lease holds it.
    let command = Command::Heartbeat { fencing_token: ask.lease.fencing_token, ttl_ms: 0 };
    let held = decide(&head, &command, ask.now_ms, &tx.settings.limits).answer;
    tx.keep(entry);
    if held != Answer::Extended {
        return Ok(Asked::Refused(held));
    }
    let execution = IdText::execution(id);
    let (mut last, mut round): (u32, u32) =
        tx.connection.prepare_cached(LAST)?.query_row([&execution], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if head.state != State::Waiting || round == 0 {
        round += 1;
    }
    let mut rows = Vec::with_capacity(ask.questions.len());
    for question in &ask.questions {
        let number = put(tx.connection, (&head, round, &mut last), ask, question)?;
        rows.push(one(tx.connection, id, number)?.ok_or_else(|| Fault::internal("a question was not stored"))?);
    }
    let mut head = head;
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

fn put(
    connection: &Connection,
    (head, round, last): (&Head, u32, &mut u32),
    ask: &Ask,
    question: &NewQuestion,
) -> Sql<u32> {
    let execution = IdText::execution(head.id());
    let earlier = params![execution, question.method, question.params_hash, head.attempt];
    let earlier: Option<u32> = connection.prepare_cached(EARLIER)?.query_row(earlier, |row| row.get(0)).optional()?;
    let state = ask.state.as_deref();
    if let Some(number) = earlier {
        let values = params![execution, number, round, head.attempt, ask.parked, state, question.name, ask.now_ms];
        connection.prepare_cached(ASK_AGAIN)?.execute(values)?;
        return Ok(number);
    }
    *last += 1;
    let number = *last;
    let mut key = question.name.clone();
    let taken = |key: &str| -> Sql<bool> {
        Ok(connection.prepare_cached(KEY_TAKEN)?.query_row(params![execution, key], |_| Ok(())).optional()?.is_some())
    };
    while taken(&key)? {
        key = match key == question.name {
            true => format!("{}-{number}", question.name),
            // The tool itself has a question of that name.
            false => format!("{key}-{number}"),
        };
    }
    connection.prepare_cached(INSERT)?.execute(params![
        execution,
        number,
        round,
        head.attempt,
        ask.parked,
        key,
        question.name,
        question.method,
        &*question.params,
        question.params_hash,
        state,
        ask.now_ms,
    ])?;
    Ok(number)
}

/// Closes questions, each once, and lets the execution go on when none is open any more.
pub(super) fn answer(tx: &mut Tx<'_>, answers: &AnswerInputs) -> Sql<Option<AnsweredInputs>> {
    let id = answers.id;
    let Some(entry) = tx.entry(id)? else { return Ok(None) };
    let mut head = entry.head.clone();
    tx.keep(entry);
    let mut fates = Vec::with_capacity(answers.answers.len());
    for answer in &answers.answers {
        fates.push(close(tx.connection, &head, answers, answer)?);
    }
    let open: i64 = tx
        .connection
        .prepare_cached(OPEN)?
        .query_row(params![IdText::execution(id), head.attempt], |row| row.get(0))?;
    if open == 0 && head.state == State::Waiting && fates.contains(&Fate::Taken) {
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
    let rows = all(tx.connection, id)?;
    Ok(Some(AnsweredInputs { head: Box::new(head), fates, rows }))
}

fn close(connection: &Connection, head: &Head, answers: &AnswerInputs, answer: &NewAnswer) -> Sql<Fate> {
    let Some(row) = one(connection, head.id(), answer.number)? else { return Ok(Fate::Unknown) };
    let execution = IdText::execution(head.id());
    let given = row.outcome.is_some_and(InputOutcome::is_answer);
    if given {
        let hash: Option<String> =
            connection.prepare_cached(HASH)?.query_row(params![execution, row.number], |row| row.get(0))?;
        let same = row.outcome == Some(answer.outcome) && hash == answer.hash;
        return Ok(if same { Fate::Same } else { Fate::Other });
    }
    let mut outcome = answer.outcome;
    if head.state.is_settled() {
        if row.outcome.is_some() || outcome.is_answer() {
            return Ok(Fate::Unknown);
        }
        outcome = InputOutcome::Withdrawn;
    }
    // What was withdrawn takes an answer all the same while its execution lives: the tool may ask it again. But only an
    // answer.
    if row.outcome.is_some() && !outcome.is_answer() {
        return Ok(Fate::Same);
    }
    if row.outcome == Some(InputOutcome::Expired) {
        // The tool was told, and may have gone on from there.
        return Ok(Fate::Other);
    }
    connection.prepare_cached(CLOSE)?.execute(params![
        execution,
        row.number,
        outcome.as_str(),
        answer.text.as_deref(),
        answer.hash,
        answers.now_ms,
        answers.by,
    ])?;
    Ok(Fate::Taken)
}

/// Every question of an execution, in order.
pub(super) fn all(connection: &Connection, id: ExecutionId) -> Sql<Vec<InputRow>> {
    let mut statement = connection.prepare_cached(ALL)?;
    let rows =
        statement.query_map([IdText::execution(id)], |row| Ok(read(row)))?.collect::<rusqlite::Result<Vec<_>>>()?;
    rows.into_iter().collect()
}

fn one(connection: &Connection, id: ExecutionId, number: u32) -> Sql<Option<InputRow>> {
    let mut statement = connection.prepare_cached(ONE)?;
    statement.query_row(params![IdText::execution(id), number], |row| Ok(read(row))).optional()?.transpose()
}

fn read(row: &Row<'_>) -> Sql<InputRow> {
    let outcome: Option<String> = row.get(10)?;
    let outcome = match outcome {
        Some(name) => {
            Some(InputOutcome::parse(&name).ok_or_else(|| Fault::damaged("a question has an unknown outcome"))?)
        }
        None => None,
    };
    Ok(InputRow {
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
    })
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
    let newest = keys.first().map(|key| (key.generation, key.created_at_ms));
    if newest.is_some_and(|(_, created_at_ms)| created_at_ms >= wanted.due_before_ms) {
        return Ok(keys);
    }
    let generation = newest.map_or(1, |(generation, _)| generation + 1);
    let values = params![generation, hex::encode(wanted.fresh), wanted.now_ms];
    tx.connection.prepare_cached(PUT_KEY)?.execute(values)?;
    tx.connection.prepare_cached(DROP_KEYS)?.execute([generation - 1])?;
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
pub(super) const STATEMENTS: &[&str] = &[ALL, ONE, EARLIER, ASK_AGAIN, KEY_TAKEN, LAST, OPEN, HASH, CLOSE, DUE, DELETE];
