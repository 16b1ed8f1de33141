//! Sessions and their streams. Who may use one, and when it has expired, is not decided here.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::fault::{Fault, Sql};
use super::rows::{Id, IdText};
use super::tx::Tx;
use crate::model::revision::Revision;
use crate::store::{
    Result, SessionCap, SessionChange, SessionChanged, SessionKey, SessionQuery, SessionRetention, SessionRow,
    SessionStore, StreamMessage, StreamRow, StreamSeen,
};

#[async_trait]
impl SessionStore for SqliteStore {
    async fn open_session(&self, row: SessionRow, cap: SessionCap) -> Result<bool> {
        self.write(move |tx| open(tx, &row, cap)).await
    }

    async fn session(&self, key: SessionKey) -> Result<Option<SessionRow>> {
        self.point(move |read| one(read.connection, key)).await
    }

    async fn session_is_busy(&self, key: SessionKey) -> Result<bool> {
        self.list(move |read| is_busy(read.connection, key)).await
    }

    async fn change_session(&self, key: SessionKey, change: SessionChange, now_ms: i64) -> Result<SessionChanged> {
        self.write(move |tx| apply_change(tx, key, &change, now_ms)).await
    }

    async fn touch_sessions(&self, seen: Vec<(SessionKey, i64)>) -> Result<()> {
        self.write(move |tx| touch(tx, &seen)).await
    }

    async fn closed_sessions(&self, since_ms: i64) -> Result<Vec<SessionKey>> {
        self.point(move |read| closed_since(read.connection, since_ms)).await
    }

    async fn sessions(&self, query: SessionQuery) -> Result<Vec<SessionRow>> {
        self.list(move |read| page(read.connection, &query)).await
    }

    async fn open_stream(&self, row: StreamRow) -> Result<()> {
        self.write(move |tx| open_stream(tx, &row)).await
    }

    async fn push_message(&self, message: StreamMessage) -> Result<i64> {
        self.write(move |tx| push(tx, &message)).await
    }

    async fn stream(&self, session: SessionKey, stream: &str, after: i64, limit: usize) -> Result<StreamSeen> {
        let stream = stream.to_owned();
        self.point(move |read| self::stream(read.connection, (session, &stream), after, limit)).await
    }

    async fn prune_sessions(&self, retention: SessionRetention) -> Result<usize> {
        self.write(move |tx| prune(tx, retention)).await
    }
}

const PUT: &str = "INSERT INTO sessions (key, namespace, namespace_name, principal, revision, client_name, client_info, \
    capabilities, log_level, created_at_ms, last_seen_at_ms, closed_at_ms) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT (key) DO NOTHING";

const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM sessions INDEXED BY sessions_open \
    WHERE namespace = ?1 AND principal = ?2 AND last_seen_at_ms > ?3 AND closed_at_ms IS NULL LIMIT ?4)";

const EXISTS: &str = "SELECT 1 FROM sessions WHERE key = ?1";

fn exists(connection: &Connection, key: &str) -> Sql<bool> {
    Ok(connection.prepare_cached(EXISTS)?.query_row([key], |_| Ok(())).optional()?.is_some())
}

fn open(tx: &Tx<'_>, row: &SessionRow, cap: SessionCap) -> Sql<bool> {
    let key = row.key.to_string();
    // Asked for again after a commit whose answer was lost.
    if exists(tx.connection, &key)? {
        return Ok(true);
    }
    let values = params![row.namespace, row.principal, cap.seen_since_ms, cap.max as i64];
    let open: i64 = tx.connection.prepare_cached(COUNT)?.query_row(values, |row| row.get(0))?;
    if open >= cap.max as i64 {
        return Ok(false);
    }
    tx.connection.prepare_cached(PUT)?.execute(params![
        key,
        row.namespace,
        row.namespace_name,
        row.principal,
        row.revision.name(),
        row.client_name,
        row.client_info.as_deref(),
        row.capabilities.as_deref(),
        row.log_level,
        row.created_at_ms,
        row.last_seen_at_ms,
        row.closed_at_ms,
    ])?;
    for uri in &row.subscriptions {
        tx.connection.prepare_cached(SUBSCRIBE)?.execute(params![key, uri])?;
    }
    Ok(true)
}

macro_rules! session_columns {
    () => {
        "SELECT key, namespace, namespace_name, principal, revision, client_name, client_info, capabilities, \
         log_level, created_at_ms, last_seen_at_ms, closed_at_ms FROM sessions"
    };
}

const ONE: &str = concat!(session_columns!(), " WHERE key = ?1");

const SUBSCRIPTIONS: &str = "SELECT uri FROM session_subscriptions WHERE session_key = ?1 ORDER BY uri";

fn one(connection: &Connection, key: SessionKey) -> Sql<Option<SessionRow>> {
    let row = connection.prepare_cached(ONE)?.query_row([key.to_string()], |row| Ok(read(row))).optional()?;
    row.transpose()?.map(|row| subscribed(connection, row)).transpose()
}

fn subscribed(connection: &Connection, mut row: SessionRow) -> Sql<SessionRow> {
    let mut statement = connection.prepare_cached(SUBSCRIPTIONS)?;
    let uris = statement.query_map([row.key.to_string()], |row| row.get(0))?;
    row.subscriptions = uris.collect::<rusqlite::Result<_>>()?;
    Ok(row)
}

fn read(row: &Row<'_>) -> Sql<SessionRow> {
    let key: Id<SessionKey> = row.get(0)?;
    let revision: String = row.get(4)?;
    let known = Revision::find(&revision);
    let revision = known.ok_or_else(|| Fault::damaged(format!("a session has the unknown revision {revision}")))?;
    Ok(SessionRow {
        key: key.0,
        namespace: row.get(1)?,
        namespace_name: row.get(2)?,
        principal: row.get(3)?,
        revision,
        client_name: row.get(5)?,
        client_info: row.get::<_, Option<String>>(6)?.map(Into::into),
        capabilities: row.get::<_, Option<String>>(7)?.map(Into::into),
        log_level: row.get(8)?,
        subscriptions: Vec::new(),
        created_at_ms: row.get(9)?,
        last_seen_at_ms: row.get(10)?,
        closed_at_ms: row.get(11)?,
    })
}

const BUSY: &str = "SELECT 1 FROM session_messages m JOIN executions e ON e.id = m.execution_id \
    WHERE m.session_key = ?1 AND m.seq = 0 AND e.ended_at_ms IS NULL LIMIT 1";

fn is_busy(connection: &Connection, key: SessionKey) -> Sql<bool> {
    Ok(connection.prepare_cached(BUSY)?.query_row([key.to_string()], |_| Ok(())).optional()?.is_some())
}

const CLOSE: &str = "UPDATE sessions SET closed_at_ms = ?2 WHERE key = ?1 AND closed_at_ms IS NULL";

const SET_LEVEL: &str = "UPDATE sessions SET log_level = ?2 WHERE key = ?1 AND closed_at_ms IS NULL";

const IS_OPEN: &str = "SELECT 1 FROM sessions WHERE key = ?1 AND closed_at_ms IS NULL";

const IS_SUBSCRIBED: &str = "SELECT 1 FROM session_subscriptions WHERE session_key = ?1 AND uri = ?2";

const COUNT_SUBSCRIPTIONS: &str = "SELECT count(*) FROM session_subscriptions WHERE session_key = ?1";

const SUBSCRIBE: &str = "INSERT INTO session_subscriptions (session_key, uri) VALUES (?1, ?2) \
    ON CONFLICT (session_key, uri) DO NOTHING";

const UNSUBSCRIBE: &str = "DELETE FROM session_subscriptions WHERE session_key = ?1 AND uri = ?2";

fn apply_change(tx: &Tx<'_>, key: SessionKey, change: &SessionChange, now_ms: i64) -> Sql<SessionChanged> {
    let (connection, key) = (tx.connection, key.to_string());
    let changed = match change {
        SessionChange::Close => connection.prepare_cached(CLOSE)?.execute(params![key, now_ms])? > 0,
        SessionChange::LogLevel(level) => connection.prepare_cached(SET_LEVEL)?.execute(params![key, level])? > 0,
        SessionChange::Subscribe { .. } | SessionChange::Unsubscribe(_) => {
            connection.prepare_cached(IS_OPEN)?.query_row([&key], |_| Ok(())).optional()?.is_some()
        }
    };
    if !changed {
        return Ok(SessionChanged::Missing);
    }
    match change {
        SessionChange::Subscribe { uri, max } => {
            let held = connection.prepare_cached(IS_SUBSCRIBED)?.query_row(params![key, uri], |_| Ok(())).optional()?;
            let count: i64 = connection.prepare_cached(COUNT_SUBSCRIPTIONS)?.query_row([&key], |row| row.get(0))?;
            if held.is_none() && count >= *max as i64 {
                return Ok(SessionChanged::Full);
            }
            connection.prepare_cached(SUBSCRIBE)?.execute(params![key, uri])?;
        }
        SessionChange::Unsubscribe(uri) => {
            connection.prepare_cached(UNSUBSCRIBE)?.execute(params![key, uri])?;
        }
        SessionChange::Close | SessionChange::LogLevel(_) => {}
    }
    Ok(SessionChanged::Done)
}

const TOUCH: &str = "UPDATE sessions SET last_seen_at_ms = max(last_seen_at_ms, ?2) \
    WHERE key = ?1 AND closed_at_ms IS NULL";

fn touch(tx: &Tx<'_>, seen: &[(SessionKey, i64)]) -> Sql<()> {
    let mut statement = tx.connection.prepare_cached(TOUCH)?;
    for (key, at_ms) in seen {
        statement.execute(params![key.to_string(), at_ms])?;
    }
    Ok(())
}

const CLOSED_SINCE: &str = "SELECT key FROM sessions INDEXED BY sessions_closed WHERE closed_at_ms > ?1";

fn closed_since(connection: &Connection, since_ms: i64) -> Sql<Vec<SessionKey>> {
    let mut statement = connection.prepare_cached(CLOSED_SINCE)?;
    let keys = statement.query_map([since_ms], |row| Ok(row.get::<_, Id<SessionKey>>(0)?.0))?;
    Ok(keys.collect::<rusqlite::Result<_>>()?)
}

const PAGE: &str = concat!(
    session_columns!(),
    " WHERE key > ?1 AND (?2 IS NULL OR namespace = ?2) AND (?3 IS NULL OR principal = ?3) \
     AND (?4 OR closed_at_ms IS NULL) AND (?5 IS NULL OR last_seen_at_ms > ?5) \
     AND (?6 IS NULL OR substr(key, 1, length(?6)) = ?6) ORDER BY key LIMIT ?7"
);

fn page(connection: &Connection, query: &SessionQuery) -> Sql<Vec<SessionRow>> {
    let after = query.after.map(|key| key.to_string()).unwrap_or_default();
    let mut statement = connection.prepare_cached(PAGE)?;
    let values = params![
        after,
        query.namespace,
        query.principal,
        query.closed,
        query.seen_since_ms,
        query.key_prefix,
        query.limit as i64,
    ];
    let rows = statement.query_map(values, |row| Ok(read(row)))?.collect::<rusqlite::Result<Vec<_>>>()?;
    rows.into_iter().map(|row| subscribed(connection, row?)).collect()
}

const PUT_MESSAGE: &str = "INSERT INTO session_messages (session_key, stream, seq, request_id, execution_id, name, body, \
    at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (session_key, stream, seq) DO NOTHING";

fn open_stream(tx: &Tx<'_>, row: &StreamRow) -> Sql<()> {
    let (key, execution) = (row.session.to_string(), IdText::execution(row.execution));
    let none: Option<&str> = None;
    let values = params![key, row.stream, 0, row.request_id, execution, none, &*row.context, row.at_ms];
    tx.connection.prepare_cached(PUT_MESSAGE)?.execute(values)?;
    Ok(())
}

const PUSHED: &str = "SELECT seq FROM session_messages WHERE session_key = ?1 AND stream = ?2 AND name = ?3";

const LAST: &str = "SELECT coalesce(max(seq), 0) FROM session_messages WHERE session_key = ?1 AND stream = ?2";

fn push(tx: &Tx<'_>, message: &StreamMessage) -> Sql<i64> {
    let (connection, key) = (tx.connection, message.session.to_string());
    let scope = params![key, message.stream, message.name];
    if let Some(seq) = connection.prepare_cached(PUSHED)?.query_row(scope, |row| row.get(0)).optional()? {
        return Ok(seq);
    }
    let last: i64 = connection.prepare_cached(LAST)?.query_row(params![key, message.stream], |row| row.get(0))?;
    let seq = message.seq_min.max(last + 1);
    let none: Option<&str> = None;
    let values = params![key, message.stream, seq, none, none, message.name, &*message.body, message.at_ms];
    connection.prepare_cached(PUT_MESSAGE)?.execute(values)?;
    Ok(seq)
}

const OPENING: &str = "SELECT request_id, execution_id, body, at_ms FROM session_messages \
    WHERE session_key = ?1 AND stream = ?2 AND seq = 0";

const MESSAGES: &str = "SELECT seq, body FROM session_messages \
    WHERE session_key = ?1 AND stream = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4";

fn stream(connection: &Connection, (session, stream): (SessionKey, &str), after: i64, limit: usize) -> Sql<StreamSeen> {
    let key = session.to_string();
    let mut statement = connection.prepare_cached(OPENING)?;
    let opening = statement.query_row(params![key, stream], |row| {
        Ok(StreamRow {
            session,
            stream: stream.to_owned(),
            request_id: row.get(0)?,
            execution: row.get::<_, Id<_>>(1)?.0,
            context: row.get::<_, String>(2)?.into(),
            at_ms: row.get(3)?,
        })
    });
    let opening = opening.optional()?;
    let mut statement = connection.prepare_cached(MESSAGES)?;
    // Number 0 is the opening, not a message.
    let values = params![key, stream, after.max(0), limit as i64];
    let messages = statement.query_map(values, |row| Ok((row.get(0)?, row.get::<_, String>(1)?.into())))?;
    Ok(StreamSeen { opening, messages: messages.collect::<rusqlite::Result<_>>()? })
}

const EXPIRED: &str = "SELECT key FROM sessions s INDEXED BY sessions_seen WHERE last_seen_at_ms <= ?1 \
    AND NOT EXISTS (SELECT 1 FROM session_messages m JOIN executions e ON e.id = m.execution_id \
    WHERE m.session_key = s.key AND m.seq = 0 AND e.ended_at_ms IS NULL) ORDER BY last_seen_at_ms LIMIT ?2";

const CLOSED: &str = "SELECT key FROM sessions INDEXED BY sessions_closed WHERE closed_at_ms <= ?1 \
    ORDER BY closed_at_ms LIMIT ?2";

const DELETE_SESSION: &str = "DELETE FROM sessions WHERE key = ?1";

const DELETE_SUBSCRIPTIONS: &str = "DELETE FROM session_subscriptions WHERE session_key = ?1";

const DELETE_MESSAGES: &str = "DELETE FROM session_messages WHERE session_key = ?1";

const OLD_MESSAGES: &str = "SELECT session_key, stream, seq FROM session_messages INDEXED BY session_messages_at \
    WHERE at_ms <= ?1 ORDER BY at_ms LIMIT ?2";

const DELETE_MESSAGE: &str = "DELETE FROM session_messages WHERE session_key = ?1 AND stream = ?2 AND seq = ?3";

fn prune(tx: &Tx<'_>, retention: SessionRetention) -> Sql<usize> {
    let (connection, batch) = (tx.connection, retention.batch as i64);
    let mut gone = 0;
    for (sql, until_ms) in [(EXPIRED, retention.seen_until_ms), (CLOSED, retention.closed_until_ms)] {
        let keys: Vec<String> = {
            let mut statement = connection.prepare_cached(sql)?;
            let keys = statement.query_map(params![until_ms, batch], |row| row.get(0))?;
            keys.collect::<rusqlite::Result<_>>()?
        };
        for key in keys {
            for sql in [DELETE_MESSAGES, DELETE_SUBSCRIPTIONS, DELETE_SESSION] {
                connection.prepare_cached(sql)?.execute([&key])?;
            }
            gone += 1;
        }
    }
    let old: Vec<(String, String, i64)> = {
        let mut statement = connection.prepare_cached(OLD_MESSAGES)?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let rows = statement.query_map(params![retention.messages_until_ms, batch], read)?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (key, stream, seq) in old {
        gone += connection.prepare_cached(DELETE_MESSAGE)?.execute(params![key, stream, seq])?;
    }
    Ok(gone)
}

/// What the test of query plans reads.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    COUNT,
    EXISTS,
    ONE,
    SUBSCRIPTIONS,
    BUSY,
    CLOSE,
    SET_LEVEL,
    IS_OPEN,
    IS_SUBSCRIBED,
    COUNT_SUBSCRIPTIONS,
    UNSUBSCRIBE,
    TOUCH,
    CLOSED_SINCE,
    PAGE,
    PUSHED,
    LAST,
    OPENING,
    MESSAGES,
    EXPIRED,
    CLOSED,
    DELETE_SESSION,
    DELETE_SUBSCRIPTIONS,
    DELETE_MESSAGES,
    OLD_MESSAGES,
    DELETE_MESSAGE,
];
