-- The first schema. docs/schema.md explains it to people who ask with SQL.
-- Times are integer milliseconds since the epoch. Ids are UUIDv7 in their hyphenated lower-case form.

-- What was promised about a call at its submission. A handful of rows: every execution of a tool shares one.
CREATE TABLE policies (
    id TEXT NOT NULL PRIMARY KEY,
    policy TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE executions (
    id TEXT NOT NULL PRIMARY KEY,
    namespace TEXT NOT NULL,
    upstream TEXT NOT NULL,
    tool TEXT NOT NULL,
    key TEXT,
    principal TEXT NOT NULL,
    caller TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    effect_key TEXT,
    retry_of TEXT,
    bound_to TEXT,
    start_by_ms INTEGER,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    attempts_allowed INTEGER NOT NULL,
    fencing_token INTEGER NOT NULL,
    lease_worker TEXT,
    lease_process TEXT,
    lease_expires_at_ms INTEGER,
    effect_possible INTEGER NOT NULL,
    continues INTEGER NOT NULL,
    run_at_ms INTEGER NOT NULL,
    deadline_at_ms INTEGER,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    ended_at_ms INTEGER,
    next_seq INTEGER NOT NULL,
    is_error INTEGER NOT NULL,
    source TEXT,
    error_code TEXT,
    error_message TEXT,
    effect TEXT,
    notes INTEGER NOT NULL,
    version INTEGER NOT NULL,
    waiter TEXT,
    delivered_at_ms INTEGER,
    handle_given INTEGER NOT NULL,
    payloads_kept INTEGER NOT NULL,
    -- Chains of OR: a list of more than two constants would be a temporary table at each write.
    CONSTRAINT state_is_known CHECK (
        state = 'leased' OR state = 'completed' OR state = 'ready' OR state = 'scheduled'
        OR state = 'waiting' OR state = 'failed' OR state = 'cancelled' OR state = 'unknown'
    ),
    CONSTRAINT lease_is_whole CHECK (
        (lease_worker IS NULL) = (lease_expires_at_ms IS NULL)
        AND (lease_process IS NULL) = (lease_expires_at_ms IS NULL)
    ),
    CONSTRAINT lease_fits_state CHECK (
        CASE state WHEN 'leased' THEN lease_expires_at_ms IS NOT NULL
                   WHEN 'waiting' THEN 1
                   ELSE lease_expires_at_ms IS NULL END
    ),
    CONSTRAINT end_fits_state CHECK (
        (ended_at_ms IS NOT NULL)
        = (state = 'completed' OR state = 'failed' OR state = 'cancelled' OR state = 'unknown')
    ),
    CONSTRAINT source_fits_state CHECK ((source IS NOT NULL) = (state = 'completed')),
    CONSTRAINT counters_are_sane CHECK (next_seq >= 2 AND attempt >= 0 AND fencing_token >= attempt AND version >= 1)
) STRICT;

-- Work to hand out. A call that is stored already leased never enters it.
CREATE INDEX executions_queue ON executions (state, upstream, run_at_ms)
    WHERE state = 'ready' OR state = 'scheduled';
-- Leases, by when they run out.
CREATE INDEX executions_lease ON executions (lease_expires_at_ms)
    WHERE lease_expires_at_ms IS NOT NULL;
-- Executions that wait for a worker, by when they run out of time.
CREATE INDEX executions_deadline ON executions (deadline_at_ms)
    WHERE deadline_at_ms IS NOT NULL;
-- What people look for and is rare.
CREATE INDEX executions_rare ON executions (state, id)
    WHERE state = 'waiting' OR state = 'failed' OR state = 'cancelled' OR state = 'unknown';
-- Unkeyed calls that may take a repeat.
CREATE INDEX executions_twin ON executions (arguments_hash, waiter)
    WHERE key IS NULL AND delivered_at_ms IS NULL;
-- Retention: ended executions with payloads, and without.
CREATE INDEX executions_kept ON executions (ended_at_ms)
    WHERE ended_at_ms IS NOT NULL AND state <> 'unknown' AND payloads_kept = 1;
CREATE INDEX executions_bare ON executions (ended_at_ms)
    WHERE ended_at_ms IS NOT NULL AND state <> 'unknown' AND payloads_kept = 0;

-- What happened. `body` holds the members of the event but for its type.
CREATE TABLE execution_events (
    execution_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    operation BLOB NOT NULL,
    PRIMARY KEY (execution_id, seq),
    CONSTRAINT seq_starts_at_one CHECK (seq >= 1),
    CONSTRAINT operation_is_a_uuid CHECK (length(operation) = 16)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER execution_events_are_never_changed BEFORE UPDATE ON execution_events
BEGIN
    SELECT raise(ABORT, 'events are append-only');
END;

-- Retention deletes whole executions: first the row, which is permitted once it has ended, then its events.
CREATE TRIGGER execution_events_go_with_their_execution BEFORE DELETE ON execution_events
WHEN EXISTS (SELECT 1 FROM executions WHERE id = OLD.execution_id)
BEGIN
    SELECT raise(ABORT, 'events are append-only');
END;

-- INSERT OR REPLACE deletes without a delete trigger.
CREATE TRIGGER execution_events_are_never_replaced BEFORE INSERT ON execution_events
WHEN EXISTS (SELECT 1 FROM execution_events WHERE execution_id = NEW.execution_id AND seq = NEW.seq)
BEGIN
    SELECT raise(ABORT, 'events are append-only');
END;

CREATE TRIGGER executions_are_deleted_after_their_end BEFORE DELETE ON executions
WHEN OLD.state <> 'completed' AND OLD.state <> 'failed' AND OLD.state <> 'cancelled'
BEGIN
    SELECT raise(ABORT, 'only an ended execution may be deleted');
END;

-- The exact JSON texts, in pieces of at most 1 MiB.
CREATE TABLE payloads (
    execution_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (execution_id, kind, chunk)
) STRICT;

-- Which execution a client's key stands for.
CREATE TABLE idempotency_keys (
    namespace TEXT NOT NULL,
    upstream TEXT NOT NULL,
    tool TEXT NOT NULL,
    key TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    ttl_ms INTEGER NOT NULL,
    PRIMARY KEY (namespace, upstream, tool, key)
) STRICT, WITHOUT ROWID;

-- Processes of ours that announced themselves. Whether one lives is told by the lock on its file.
CREATE TABLE processes (
    id TEXT NOT NULL PRIMARY KEY,
    started_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    prefix TEXT NOT NULL PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,
    namespace TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    revoked_at_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE upstreams (
    name TEXT NOT NULL PRIMARY KEY,
    snapshot TEXT NOT NULL,
    updated_at_ms INTEGER NOT NULL
) STRICT;

-- One row, written by checks of health.
CREATE TABLE store_checks (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    count INTEGER NOT NULL
) STRICT;
INSERT INTO store_checks (id, count) VALUES (1, 0);
