//! Sessions and their streams. Who may use one, and when it has expired, is not decided here.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_postgres::Row;

use super::bind::{count, flag, int, text, uuid};
use super::db::{Db, Reading, Tx};
use super::fault::{Fault, Kind, Sql};
use super::rows;
use crate::model::revision::Revision;
use crate::store::{
    Result, SessionCap, SessionChange, SessionChanged, SessionKey, SessionQuery, SessionRetention, SessionRow,
    StreamMessage, StreamRow, StreamSeen,
};

const PUT: &str = "INSERT INTO sessions (key, namespace, namespace_name, principal, revision, client_name, client_info, \
    capabilities, log_level, created_at_ms, last_seen_at_ms, closed_at_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (key) DO NOTHING";

const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM sessions \
    WHERE namespace = $1 AND principal = $2 AND last_seen_at_ms > $3 AND closed_at_ms IS NULL LIMIT $4) AS open";

const EXISTS: &str = "SELECT 1 FROM sessions WHERE key = $1";

/// Stores a new session; false when its principal has too many. At READ COMMITTED two that open at once may both be the
/// last: the bound is against floods, and off by as many as open in the same moment.
pub(super) async fn open_session(db: &Db, row: SessionRow, cap: SessionCap) -> Result<bool> {
    let row = &row;
    db.transaction(move |tx| Box::pin(open(tx, row, cap))).await
}

async fn open(tx: &Tx<'_>, row: &SessionRow, cap: SessionCap) -> Sql<bool> {
    let key = row.key.to_string();
    // Asked for again after a commit whose answer was lost.
    if tx.query_opt(EXISTS, &[text(&key)]).await?.is_some() {
        return Ok(true);
    }
    let max = count(cap.max);
    let values = [text(&row.namespace), text(&row.principal), int(&cap.seen_since_ms), int(&max)];
    let open: i64 = tx.query_opt(COUNT, &values).await?.map_or(Ok(0), |row| row.try_get(0))?;
    if open >= max {
        return Ok(false);
    }
    let (revision, info, capabilities) = (row.revision.name(), row.client_info.as_deref(), row.capabilities.as_deref());
    let values = [
        text(&key),
        text(&row.namespace),
        text(&row.namespace_name),
        text(&row.principal),
        text(&revision),
        text(&row.client_name),
        text(&info),
        text(&capabilities),
        text(&row.log_level),
        int(&row.created_at_ms),
        int(&row.last_seen_at_ms),
        int(&row.closed_at_ms),
    ];
    tx.execute(PUT, &values).await?;
    for uri in &row.subscriptions {
        tx.execute(SUBSCRIBE, &[text(&key), text(uri)]).await?;
    }
    Ok(true)
}

macro_rules! session_columns {
    () => {
        "SELECT key, namespace, namespace_name, principal, revision, client_name, client_info, capabilities, \
         log_level, created_at_ms, last_seen_at_ms, closed_at_ms, \
         ARRAY(SELECT u.uri FROM session_subscriptions u WHERE u.session_key = sessions.key) AS uris FROM sessions"
    };
}

const ONE: &str = concat!(session_columns!(), " WHERE key = $1");

/// One session, closed ones included.
pub(super) async fn session(db: &Db, key: SessionKey) -> Result<Option<SessionRow>> {
    db.read(move |reading| {
        Box::pin(async move {
            let row = reading.query_opt(ONE, &[text(&key.to_string())]).await?;
            row.as_ref().map(read).transpose()
        })
    })
    .await
}

fn read(row: &Row) -> Sql<SessionRow> {
    let revision: &str = row.try_get(4)?;
    let known = Revision::find(revision);
    let revision = known.ok_or_else(|| Fault::damaged(format!("a session has the unknown revision {revision}")))?;
    let mut subscriptions: Vec<String> = row.try_get(12)?;
    // By bytes, whatever order the database's language has.
    subscriptions.sort_unstable();
    Ok(SessionRow {
        key: key_in(row, 0)?,
        namespace: row.try_get(1)?,
        namespace_name: row.try_get(2)?,
        principal: row.try_get(3)?,
        revision,
        client_name: row.try_get(5)?,
        client_info: row.try_get::<_, Option<String>>(6)?.map(Into::into),
        capabilities: row.try_get::<_, Option<String>>(7)?.map(Into::into),
        log_level: row.try_get(8)?,
        subscriptions,
        created_at_ms: row.try_get(9)?,
        last_seen_at_ms: row.try_get(10)?,
        closed_at_ms: row.try_get(11)?,
    })
}

fn key_in(row: &Row, column: usize) -> Sql<SessionKey> {
    row.try_get::<_, &str>(column)?.parse().map_err(|_| Fault::damaged("a session's key is no hash"))
}

const BUSY: &str = "SELECT 1 FROM session_messages m \
    JOIN executions e ON e.id = m.execution_id AND e.shard = m.execution_shard \
    WHERE m.session_key = $1 AND m.seq = 0 AND e.ended_at_ms IS NULL LIMIT 1";

/// Whether a call of the session runs.
pub(super) async fn session_is_busy(db: &Db, key: SessionKey) -> Result<bool> {
    db.read(move |reading| {
        Box::pin(async move { Ok(reading.query_opt(BUSY, &[text(&key.to_string())]).await?.is_some()) })
    })
    .await
}

/// `$3`: it may have been closed by this, in a commit of which nothing was heard.
const CLOSE: &str = "UPDATE sessions SET closed_at_ms = $2 WHERE key = $1 \
    AND (closed_at_ms IS NULL OR ($3 AND closed_at_ms = $2))";

const SET_LEVEL: &str = "UPDATE sessions SET log_level = $2 WHERE key = $1 AND closed_at_ms IS NULL";

/// Changes nothing, so that two that change what belongs to a session take turns.
const HOLD: &str = "UPDATE sessions SET created_at_ms = created_at_ms WHERE key = $1 AND closed_at_ms IS NULL";

const SUBSCRIBED: &str = "SELECT uri FROM session_subscriptions WHERE session_key = $1";

const SUBSCRIBE: &str = "INSERT INTO session_subscriptions (session_key, uri) VALUES ($1, $2) \
    ON CONFLICT (session_key, uri) DO NOTHING";

const UNSUBSCRIBE: &str = "DELETE FROM session_subscriptions WHERE session_key = $1 AND uri = $2";

/// Changes a session that is not closed.
pub(super) async fn change_session(
    db: &Db,
    key: SessionKey,
    change: SessionChange,
    now_ms: i64,
) -> Result<SessionChanged> {
    let (key, change) = (&key.to_string(), &change);
    db.transaction(move |tx| Box::pin(apply_change(tx, key, change, now_ms))).await
}

async fn apply_change(tx: &Tx<'_>, key: &String, change: &SessionChange, now_ms: i64) -> Sql<SessionChanged> {
    let changed = match change {
        SessionChange::Close => tx.execute(CLOSE, &[text(key), int(&now_ms), flag(&tx.may_be_there)]).await?,
        SessionChange::LogLevel(level) => tx.execute(SET_LEVEL, &[text(key), text(level)]).await?,
        SessionChange::Subscribe { .. } | SessionChange::Unsubscribe(_) => tx.execute(HOLD, &[text(key)]).await?,
    };
    if changed == 0 {
        return Ok(SessionChanged::Missing);
    }
    match change {
        SessionChange::Subscribe { uri, max } => {
            let rows = tx.query(SUBSCRIBED, &[text(key)]).await?;
            let mut held = false;
            for row in &rows {
                held |= row.try_get::<_, &str>(0)? == uri;
            }
            if !held && rows.len() >= *max {
                return Ok(SessionChanged::Full);
            }
            tx.execute(SUBSCRIBE, &[text(key), text(uri)]).await?;
        }
        SessionChange::Unsubscribe(uri) => {
            tx.execute(UNSUBSCRIBE, &[text(key), text(uri)]).await?;
        }
        SessionChange::Close | SessionChange::LogLevel(_) => {}
    }
    Ok(SessionChanged::Done)
}

const TOUCH: &str = "UPDATE sessions SET last_seen_at_ms = greatest(sessions.last_seen_at_ms, seen.at_ms) \
    FROM unnest($1::TEXT[], $2::BIGINT[]) AS seen(key, at_ms) \
    WHERE sessions.key = seen.key AND sessions.closed_at_ms IS NULL";

/// Notes when sessions were used.
pub(super) async fn touch_sessions(db: &Db, mut seen: Vec<(SessionKey, i64)>) -> Result<()> {
    // A set-based update applies one of two rows with the same key: the later time of each.
    seen.sort_unstable_by_key(|(key, at_ms)| (*key, std::cmp::Reverse(*at_ms)));
    seen.dedup_by_key(|(key, _)| *key);
    let (keys, times): (Vec<String>, Vec<i64>) = seen.iter().map(|(key, at_ms)| (key.to_string(), *at_ms)).unzip();
    let (keys, times) = (&keys, &times);
    db.transaction(move |tx| {
        Box::pin(async move {
            tx.execute(TOUCH, &[super::bind::texts(keys), super::bind::ints(times)]).await?;
            Ok(())
        })
    })
    .await
}

const CLOSED_SINCE: &str = "SELECT key FROM sessions WHERE closed_at_ms > $1";

/// Sessions closed after a time.
pub(super) async fn closed_sessions(db: &Db, since_ms: i64) -> Result<Vec<SessionKey>> {
    db.read(move |reading| {
        Box::pin(async move {
            reading.query(CLOSED_SINCE, &[int(&since_ms)]).await?.iter().map(|row| key_in(row, 0)).collect()
        })
    })
    .await
}

const PAGE: &str = concat!(
    session_columns!(),
    " WHERE key > $1 AND ($2::TEXT IS NULL OR namespace = $2) AND ($3::TEXT IS NULL OR principal = $3) \
     AND ($4 OR closed_at_ms IS NULL) AND ($5::BIGINT IS NULL OR last_seen_at_ms > $5) \
     AND ($6::TEXT IS NULL OR substr(key, 1, length($6)) = $6) ORDER BY key LIMIT $7"
);

/// A page of sessions, by key.
pub(super) async fn sessions(db: &Db, query: SessionQuery) -> Result<Vec<SessionRow>> {
    let after = &query.after.map(|key| key.to_string()).unwrap_or_default();
    let query = &query;
    db.read(move |reading| {
        Box::pin(async move {
            let limit = count(query.limit);
            let values = [
                text(after),
                text(&query.namespace),
                text(&query.principal),
                flag(&query.closed),
                int(&query.seen_since_ms),
                text(&query.key_prefix),
                int(&limit),
            ];
            reading.query(PAGE, &values).await?.iter().map(read).collect()
        })
    })
    .await
}

const PUT_MESSAGE: &str = "INSERT INTO session_messages (session_key, stream, seq, request_id, execution_shard, \
    execution_id, name, body, at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
    ON CONFLICT (session_key, stream, seq) DO NOTHING";

/// Stores what a stream answers.
pub(super) async fn open_stream(db: &Db, row: StreamRow) -> Result<()> {
    let row = &row;
    db.transaction(move |tx| {
        Box::pin(async move {
            let (key, shard, context) = (row.session.to_string(), rows::shard(row.execution), &*row.context);
            let none: Option<&str> = None;
            let values = [
                text(&key),
                text(&row.stream),
                int(&0_i64),
                text(&row.request_id),
                int(&shard),
                uuid(row.execution.as_uuid()),
                text(&none),
                text(&context),
                int(&row.at_ms),
            ];
            tx.execute(PUT_MESSAGE, &values).await?;
            Ok(())
        })
    })
    .await
}

const PUSHED: &str = "SELECT seq FROM session_messages WHERE session_key = $1 AND stream = $2 AND name = $3";

const LAST: &str = "SELECT coalesce(max(seq), 0) FROM session_messages WHERE session_key = $1 AND stream = $2";

/// Appends a message; its number, which stays the same however often it is pushed.
pub(super) async fn push_message(db: &Db, message: StreamMessage) -> Result<i64> {
    let message = &message;
    db.transaction(move |tx| Box::pin(push(tx, message))).await
}

async fn push(tx: &Tx<'_>, message: &StreamMessage) -> Sql<i64> {
    let key = message.session.to_string();
    let pushed = tx.query_opt(PUSHED, &[text(&key), text(&message.stream), text(&message.name)]).await?;
    if let Some(row) = pushed {
        return Ok(row.try_get(0)?);
    }
    let last = tx.query_opt(LAST, &[text(&key), text(&message.stream)]).await?;
    let last: i64 = last.map_or(Ok(0), |row| row.try_get(0))?;
    let seq = message.seq_min.max(last + 1);
    let (no_text, no_number, no_id): (Option<&str>, Option<i64>, Option<uuid::Uuid>) = (None, None, None);
    let body = &*message.body;
    let values = [
        text(&key),
        text(&message.stream),
        int(&seq),
        text(&no_text),
        int(&no_number),
        uuid(&no_id),
        text(&message.name),
        text(&body),
        int(&message.at_ms),
    ];
    let meanwhile = || Fault::again("another process pushes to the same stream; try again");
    match tx.execute(PUT_MESSAGE, &values).await {
        Ok(1) => Ok(seq),
        Ok(_) => Err(meanwhile()),
        Err(fault) if matches!(fault.kind, Kind::Unique(_)) => Err(meanwhile()),
        Err(fault) => Err(fault),
    }
}

const OPENING: &str = "SELECT request_id, execution_id, body, at_ms FROM session_messages \
    WHERE session_key = $1 AND stream = $2 AND seq = 0";

const MESSAGES: &str = "SELECT seq, body FROM session_messages \
    WHERE session_key = $1 AND stream = $2 AND seq > $3 ORDER BY seq LIMIT $4";

/// What is stored of a stream.
pub(super) async fn stream(db: &Db, session: SessionKey, stream: &str, after: i64, limit: usize) -> Result<StreamSeen> {
    db.read(move |reading| Box::pin(seen(reading, (session, stream), after, limit))).await
}

async fn seen(
    reading: &Reading<'_>,
    (session, stream): (SessionKey, &str),
    after: i64,
    limit: usize,
) -> Sql<StreamSeen> {
    let key = session.to_string();
    let opening = reading.query_opt(OPENING, &[text(&key), text(&stream)]).await?;
    let opening = opening.map(|row| -> Sql<StreamRow> {
        Ok(StreamRow {
            session,
            stream: stream.to_owned(),
            request_id: row.try_get(0)?,
            execution: rows::execution(&row, 1)?,
            context: row.try_get::<_, String>(2)?.into(),
            at_ms: row.try_get(3)?,
        })
    });
    // Number 0 is the opening, not a message.
    let (after, limit) = (after.max(0), count(limit));
    let rows = reading.query(MESSAGES, &[text(&key), text(&stream), int(&after), int(&limit)]).await?;
    let message = |row: &Row| Ok((row.try_get(0)?, row.try_get::<_, String>(1)?.into()));
    Ok(StreamSeen { opening: opening.transpose()?, messages: rows.iter().map(message).collect::<Sql<_>>()? })
}

const EXPIRED: &str = "SELECT key FROM sessions s WHERE last_seen_at_ms <= $1 \
    AND NOT EXISTS (SELECT 1 FROM session_messages m \
    JOIN executions e ON e.id = m.execution_id AND e.shard = m.execution_shard \
    WHERE m.session_key = s.key AND m.seq = 0 AND e.ended_at_ms IS NULL) ORDER BY last_seen_at_ms LIMIT $2";

const CLOSED: &str = "SELECT key FROM sessions WHERE closed_at_ms <= $1 ORDER BY closed_at_ms LIMIT $2";

const DELETE_MESSAGES: &str = "DELETE FROM session_messages WHERE session_key = ANY($1::TEXT[])";

const DELETE_SUBSCRIPTIONS: &str = "DELETE FROM session_subscriptions WHERE session_key = ANY($1::TEXT[])";

const DELETE_SESSIONS: &str = "DELETE FROM sessions WHERE key = ANY($1::TEXT[])";

const DELETE_OLD_MESSAGES: &str = "DELETE FROM session_messages WHERE (session_key, stream, seq) IN \
    (SELECT m.session_key, m.stream, m.seq FROM session_messages m WHERE m.at_ms <= $1 ORDER BY m.at_ms LIMIT $2)";

/// Rows of one transaction at most.
const BATCH_MAX: usize = 100;

/// Deletes what is not kept.
pub(super) async fn prune_sessions(db: &Db, retention: SessionRetention) -> Result<usize> {
    // After a commit of which nothing was heard the next run finds gone what the one before deleted.
    let most = &AtomicUsize::new(0);
    db.transaction(move |tx| {
        Box::pin(async move {
            let gone = prune(tx, retention).await?;
            Ok(most.fetch_max(gone, Ordering::Relaxed).max(gone))
        })
    })
    .await
}

async fn prune(tx: &Tx<'_>, retention: SessionRetention) -> Sql<usize> {
    let batch = count(retention.batch.min(BATCH_MAX));
    let mut gone = 0;
    for (sql, until_ms) in [(EXPIRED, retention.seen_until_ms), (CLOSED, retention.closed_until_ms)] {
        let mut keys = Vec::new();
        for row in tx.query(sql, &[int(&until_ms), int(&batch)]).await? {
            keys.push(row.try_get::<_, String>(0)?);
        }
        if keys.is_empty() {
            continue;
        }
        for sql in [DELETE_MESSAGES, DELETE_SUBSCRIPTIONS] {
            tx.execute(sql, &[super::bind::texts(&keys)]).await?;
        }
        gone += tx.execute(DELETE_SESSIONS, &[super::bind::texts(&keys)]).await?;
    }
    gone += tx.execute(DELETE_OLD_MESSAGES, &[int(&retention.messages_until_ms), int(&batch)]).await?;
    Ok(gone as usize)
}

/// What the tests of query plans read, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[
    (EXISTS, "text"),
    (ONE, "text"),
    (BUSY, "text"),
    (CLOSE, "text, bigint, bool"),
    (SET_LEVEL, "text, text"),
    (SUBSCRIBED, "text"),
    (UNSUBSCRIBE, "text, text"),
    (PUSHED, "text, text, text"),
    (LAST, "text, text"),
    (OPENING, "text, text"),
    (MESSAGES, "text, text, bigint, bigint"),
];
