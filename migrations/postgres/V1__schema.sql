-- The whole schema, as one first file, for PostgreSQL, CockroachDB and YugabyteDB. docs/schema.md explains it to people
-- who ask with SQL; ../sqlite has the same tables. Everything can be run again: a process may die half-way through.
-- Times are integer milliseconds since the epoch. Ids are UUIDv7. `shard` is the last hexadecimal digit of the id of the
-- execution (0 to 15), first in every key, so that rows made one after the other lie in different places.
--@ oldest-program 1
--@ section

-- What was promised about a call at its submission. A handful of rows: every execution of a tool shares one.
CREATE TABLE IF NOT EXISTS policies (
    id TEXT NOT NULL,
    policy TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS executions (
    shard BIGINT NOT NULL,
    id UUID NOT NULL,
    namespace TEXT NOT NULL,
    upstream TEXT NOT NULL,
    tool TEXT NOT NULL,
    key TEXT,
    principal TEXT NOT NULL,
    caller TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    policy_id TEXT NOT NULL,
    effect_key UUID,
    retry_of UUID,
    bound_to UUID,
    start_by_ms BIGINT,
    state TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    attempts_allowed BIGINT NOT NULL,
    fencing_token BIGINT NOT NULL,
    lease_worker TEXT,
    lease_process UUID,
    lease_expires_at_ms BIGINT,
    effect_possible BOOLEAN NOT NULL,
    continues BOOLEAN NOT NULL,
    run_at_ms BIGINT NOT NULL,
    deadline_at_ms BIGINT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    next_seq BIGINT NOT NULL,
    is_error BOOLEAN NOT NULL,
    source TEXT,
    error_code TEXT,
    error_message TEXT,
    effect TEXT,
    notes BIGINT NOT NULL,
    version BIGINT NOT NULL,
    waiter UUID,
    delivered_at_ms BIGINT,
    handle_given BOOLEAN NOT NULL,
    payloads_kept BOOLEAN NOT NULL,
    -- Waiting for input does not count as run time.
    waited_ms BIGINT NOT NULL DEFAULT 0,
    waiting_since_ms BIGINT,
    PRIMARY KEY (shard, id),
    CONSTRAINT shard_is_known CHECK (shard >= 0 AND shard < 16),
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
                   WHEN 'waiting' THEN TRUE
                   ELSE lease_expires_at_ms IS NULL END
    ),
    CONSTRAINT end_fits_state CHECK (
        (ended_at_ms IS NOT NULL)
        = (state = 'completed' OR state = 'failed' OR state = 'cancelled' OR state = 'unknown')
    ),
    CONSTRAINT source_fits_state CHECK ((source IS NOT NULL) = (state = 'completed')),
    CONSTRAINT counters_are_sane CHECK (next_seq >= 2 AND attempt >= 0 AND fencing_token >= attempt AND version >= 1)
);

-- Work to hand out. A call that is stored already leased never enters it.
CREATE INDEX IF NOT EXISTS executions_queue ON executions (shard, state, upstream, run_at_ms)
    WHERE state = 'ready' OR state = 'scheduled';
-- Executions that wait for their time.
CREATE INDEX IF NOT EXISTS executions_scheduled ON executions (shard, run_at_ms) WHERE state = 'scheduled';
-- Leases, by when they run out.
CREATE INDEX IF NOT EXISTS executions_lease ON executions (shard, lease_expires_at_ms)
    WHERE lease_expires_at_ms IS NOT NULL;
-- Executions that wait for a worker, by when they run out of time.
CREATE INDEX IF NOT EXISTS executions_deadline ON executions (shard, deadline_at_ms)
    WHERE deadline_at_ms IS NOT NULL;
-- What people look for and is rare.
CREATE INDEX IF NOT EXISTS executions_rare ON executions (shard, state, id)
    WHERE state = 'waiting' OR state = 'failed' OR state = 'cancelled' OR state = 'unknown';
-- Unkeyed calls that may take a repeat. A hash needs no shard before it.
CREATE INDEX IF NOT EXISTS executions_twin ON executions (arguments_hash, waiter)
    WHERE key IS NULL AND delivered_at_ms IS NULL;
-- Retention: ended executions with payloads, and without.
CREATE INDEX IF NOT EXISTS executions_kept ON executions (shard, ended_at_ms)
    WHERE ended_at_ms IS NOT NULL AND state <> 'unknown' AND payloads_kept;
CREATE INDEX IF NOT EXISTS executions_bare ON executions (shard, ended_at_ms)
    WHERE ended_at_ms IS NOT NULL AND state <> 'unknown' AND NOT payloads_kept;
-- What somebody called, once it is over: an entry that is made once.
CREATE INDEX IF NOT EXISTS executions_owner ON executions (shard, principal, id) WHERE ended_at_ms IS NOT NULL;
-- A note (a stale result, a conflict) may come to an execution long after its end; whoever follows events finds it here.
CREATE INDEX IF NOT EXISTS executions_noted ON executions (shard, updated_at_ms) WHERE notes > 0;

-- What happened. `body` holds the members of the event but for its type.
CREATE TABLE IF NOT EXISTS execution_events (
    shard BIGINT NOT NULL,
    execution_id UUID NOT NULL,
    seq BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    operation UUID NOT NULL,
    PRIMARY KEY (shard, execution_id, seq),
    CONSTRAINT seq_starts_at_one CHECK (seq >= 1)
);

-- The exact JSON texts, in pieces of at most 1 MiB.
CREATE TABLE IF NOT EXISTS payloads (
    shard BIGINT NOT NULL,
    execution_id UUID NOT NULL,
    kind TEXT NOT NULL,
    chunk BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (shard, execution_id, kind, chunk)
);

-- Which execution a client's key stands for.
CREATE TABLE IF NOT EXISTS idempotency_keys (
    namespace TEXT NOT NULL,
    upstream TEXT NOT NULL,
    tool TEXT NOT NULL,
    key TEXT NOT NULL,
    execution_id UUID NOT NULL,
    ttl_ms BIGINT NOT NULL,
    PRIMARY KEY (namespace, upstream, tool, key)
);

-- Processes of ours that announced themselves. One lives until `expires_at_ms` by the clock of the database, and renews it.
CREATE TABLE IF NOT EXISTS processes (
    id UUID NOT NULL,
    started_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS tokens (
    prefix TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    principal TEXT NOT NULL,
    namespace TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT,
    revoked_at_ms BIGINT,
    PRIMARY KEY (prefix),
    CONSTRAINT tokens_sha256 UNIQUE (sha256)
);

CREATE TABLE IF NOT EXISTS upstreams (
    name TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    PRIMARY KEY (name)
);

-- One row, written by checks of health.
CREATE TABLE IF NOT EXISTS store_checks (
    id BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT there_is_one_check CHECK (id = 1)
);

-- Who runs tools. A worker inside a process of ours has the id of that process, a remote one made its id itself.
CREATE TABLE IF NOT EXISTS workers (
    id UUID NOT NULL,
    name TEXT NOT NULL,
    namespace TEXT NOT NULL,
    principal TEXT NOT NULL,
    kind TEXT NOT NULL,
    slots BIGINT NOT NULL,
    sdk TEXT,
    -- What it registered: a list of objects.
    tools TEXT NOT NULL,
    -- Lower-case hex. The server signs lease tokens with it; it never leaves the server.
    lease_key TEXT NOT NULL,
    registered_at_ms BIGINT NOT NULL,
    last_seen_at_ms BIGINT NOT NULL,
    -- Without another sign of life a remote worker counts as dead from then on.
    silent_at_ms BIGINT NOT NULL,
    draining BOOLEAN NOT NULL,
    gone_at_ms BIGINT,
    PRIMARY KEY (id),
    CONSTRAINT kind_is_known CHECK (kind = 'remote' OR kind = 'local')
);

-- One row; counts registrations, drains and departures, so that a process reads the table only when it changed.
CREATE TABLE IF NOT EXISTS worker_changes (
    id BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT there_is_one_count CHECK (id = 1)
);

-- Results of named steps: the next attempt gets them back instead of running the step again.
CREATE TABLE IF NOT EXISTS steps (
    shard BIGINT NOT NULL,
    execution_id UUID NOT NULL,
    name TEXT NOT NULL,
    result TEXT NOT NULL,
    fencing_token BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (shard, execution_id, name)
);

-- How far an execution is, in its tool's own words: the newest checkpoint only.
CREATE TABLE IF NOT EXISTS checkpoints (
    shard BIGINT NOT NULL,
    execution_id UUID NOT NULL,
    body TEXT NOT NULL,
    fencing_token BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (shard, execution_id)
);

-- Sessions of legacy clients (up to 2025-11-25) and their streams.
CREATE TABLE IF NOT EXISTS sessions (
    -- Lower-case hex of the SHA-256 of the session's id. Nothing here needs the id itself: who sends it is looked up by
    -- its hash, so that nobody who reads the database can speak in somebody's session.
    key TEXT NOT NULL,
    namespace TEXT NOT NULL,
    -- What people call the namespace.
    namespace_name TEXT NOT NULL,
    principal TEXT NOT NULL,
    revision TEXT NOT NULL,
    client_name TEXT,
    -- `clientInfo` and `capabilities` of `initialize`, as the client wrote them.
    client_info TEXT,
    capabilities TEXT,
    log_level TEXT,
    created_at_ms BIGINT NOT NULL,
    -- Written once per heartbeat, so it is up to one heartbeat old.
    last_seen_at_ms BIGINT NOT NULL,
    closed_at_ms BIGINT,
    PRIMARY KEY (key)
);
CREATE INDEX IF NOT EXISTS sessions_open ON sessions (namespace, principal, last_seen_at_ms)
    WHERE closed_at_ms IS NULL;
CREATE INDEX IF NOT EXISTS sessions_seen ON sessions (last_seen_at_ms);
CREATE INDEX IF NOT EXISTS sessions_closed ON sessions (closed_at_ms) WHERE closed_at_ms IS NOT NULL;

-- Resources a session wants to hear about.
CREATE TABLE IF NOT EXISTS session_subscriptions (
    session_key TEXT NOT NULL,
    uri TEXT NOT NULL,
    PRIMARY KEY (session_key, uri)
);

-- Streams that can be resumed. Number 0 opens the stream of a call: the JSON-RPC request it answers and its execution.
-- Higher numbers are messages. The answer to the call is not among them: it is rendered from the execution.
CREATE TABLE IF NOT EXISTS session_messages (
    session_key TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq BIGINT NOT NULL,
    -- Number 0: the JSON-RPC id of the request, as the client wrote it.
    request_id TEXT,
    execution_shard BIGINT,
    execution_id UUID,
    -- What makes a message one and the same, however often it is pushed.
    name TEXT,
    -- Number 0: what the answer has to fit, as JSON. Else the JSON-RPC message.
    body TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (session_key, stream, seq),
    CONSTRAINT opening_is_whole CHECK (
        seq <> 0 OR (request_id IS NOT NULL AND execution_shard IS NOT NULL AND execution_id IS NOT NULL)
    )
);
-- One message, one number, whichever process pushes it.
CREATE UNIQUE INDEX IF NOT EXISTS session_messages_name ON session_messages (session_key, stream, name);
CREATE INDEX IF NOT EXISTS session_messages_at ON session_messages (at_ms);

-- Questions of running tools to their clients.
CREATE TABLE IF NOT EXISTS input_requests (
    shard BIGINT NOT NULL,
    execution_id UUID NOT NULL,
    -- 1, 2, 3 … over all rounds and attempts of the execution.
    number BIGINT NOT NULL,
    round BIGINT NOT NULL,
    -- The attempt that asked last.
    attempt BIGINT NOT NULL,
    parked BOOLEAN NOT NULL,
    -- What answers name; never used twice in an execution.
    key TEXT NOT NULL,
    -- The tool's own name for it.
    name TEXT NOT NULL,
    method TEXT NOT NULL,
    params TEXT NOT NULL,
    params_hash TEXT NOT NULL,
    -- What the tool wants to see again, of a parked round.
    state TEXT,
    asked_at_ms BIGINT NOT NULL,
    -- result, error, expired or withdrawn; absent while it is open.
    outcome TEXT,
    answer TEXT,
    answer_hash TEXT,
    answered_at_ms BIGINT,
    answered_by TEXT,
    -- The writes that asked it last and that closed it: one that runs again after an ambiguous commit knows its own.
    asked_in UUID,
    closed_in UUID,
    PRIMARY KEY (shard, execution_id, number),
    CONSTRAINT outcome_is_known CHECK (
        outcome IS NULL OR outcome = 'result' OR outcome = 'error' OR outcome = 'expired' OR outcome = 'withdrawn'
    ),
    CONSTRAINT answer_fits_outcome CHECK (
        (answer IS NOT NULL) = (outcome IS NOT NULL AND (outcome = 'result' OR outcome = 'error'))
    )
);
CREATE UNIQUE INDEX IF NOT EXISTS input_requests_key ON input_requests (shard, execution_id, key);
-- Open questions, by when they were asked.
CREATE INDEX IF NOT EXISTS input_requests_open ON input_requests (shard, asked_at_ms) WHERE outcome IS NULL;

-- What seals the states that clients bring back: the newest key and the one before it.
CREATE TABLE IF NOT EXISTS sealing_keys (
    generation BIGINT NOT NULL,
    -- Lower-case hex. It never leaves the server.
    key TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (generation)
);

-- Executions that a client sees as MCP tasks.
CREATE TABLE IF NOT EXISTS tasks (
    shard BIGINT NOT NULL,
    execution_id UUID NOT NULL,
    namespace TEXT NOT NULL,
    principal TEXT NOT NULL,
    -- As which of the two it was first asked for: the extension of 2026-07-28, or the experimental feature of 2025-11-25.
    variant TEXT NOT NULL,
    ttl_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    -- From then on it is gone for its reader.
    expires_at_ms BIGINT NOT NULL,
    -- What happens then to work that still runs.
    on_expiry TEXT NOT NULL,
    -- The number of the last event of the end that a reader was shown first; kept only of an end that may change.
    shown_seq BIGINT,
    -- Where the client wanted progress reported to, as JSON.
    progress_token TEXT,
    PRIMARY KEY (shard, execution_id),
    CONSTRAINT variant_is_known CHECK (variant = 'extension' OR variant = 'experimental'),
    CONSTRAINT on_expiry_is_known CHECK (on_expiry = 'cancel' OR on_expiry = 'detach'),
    CONSTRAINT times_are_sane CHECK (expires_at_ms = created_at_ms + ttl_ms)
);
-- Tasks by when their time is over.
CREATE INDEX IF NOT EXISTS tasks_expiry ON tasks (shard, expires_at_ms);
-- Pages of somebody's own tasks.
CREATE INDEX IF NOT EXISTS tasks_owner ON tasks (namespace, principal, execution_id);

-- Numbers by minute, counted from the log.
CREATE TABLE IF NOT EXISTS series (
    minute_ms BIGINT NOT NULL,
    namespace TEXT NOT NULL,
    principal TEXT NOT NULL,
    -- `log`, `log_of_all` (everybody in the namespace, the principal is empty), or the process that counted what leaves no event.
    counted TEXT NOT NULL,
    -- The numbers, as JSON.
    body TEXT NOT NULL,
    PRIMARY KEY (minute_ms, namespace, principal, counted)
);

-- One row: every minute before it is counted.
CREATE TABLE IF NOT EXISTS series_closed (
    id BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT there_is_one_moment CHECK (id = 1)
);

--@ section postgresql yugabytedb
-- The log is append-only, whoever holds the connection: an event goes only with its execution, which retention deletes
-- first, and an execution goes only after its end. CockroachDB is left to its grants.

CREATE OR REPLACE FUNCTION refuse_change_of_events() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kept BOOLEAN := TRUE;
BEGIN
    IF TG_OP = 'DELETE' THEN
        -- The table beside the log, whatever the search path of the session says.
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I.executions WHERE shard = $1 AND id = $2)', TG_TABLE_SCHEMA)
            INTO kept USING OLD.shard, OLD.execution_id;
        IF NOT kept THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'restrict_violation';
END
$$;

CREATE OR REPLACE FUNCTION refuse_early_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'only an ended execution may be deleted' USING ERRCODE = 'restrict_violation';
END
$$;

CREATE OR REPLACE TRIGGER execution_events_are_never_changed BEFORE UPDATE ON execution_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change_of_events();
CREATE OR REPLACE TRIGGER execution_events_go_with_their_execution BEFORE DELETE ON execution_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change_of_events();
CREATE OR REPLACE TRIGGER execution_events_are_never_emptied BEFORE TRUNCATE ON execution_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_events();
CREATE OR REPLACE TRIGGER executions_are_deleted_after_their_end BEFORE DELETE ON executions
    FOR EACH ROW WHEN (OLD.state <> 'completed' AND OLD.state <> 'failed' AND OLD.state <> 'cancelled')
    EXECUTE FUNCTION refuse_early_deletion();
CREATE OR REPLACE TRIGGER executions_are_never_emptied BEFORE TRUNCATE ON executions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_early_deletion();

--@ section postgresql
-- A row of an execution is written a few times in its life: room beside it, and a vacuum that comes often.
ALTER TABLE executions SET (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1
);
ALTER TABLE processes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE store_checks SET (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE worker_changes SET (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

--@ section
-- Rows that are only ever counted up.
INSERT INTO store_checks (id, count) VALUES (1, 0) ON CONFLICT (id) DO NOTHING;
INSERT INTO worker_changes (id, count) VALUES (1, 0) ON CONFLICT (id) DO NOTHING;
INSERT INTO series_closed (id, until_ms) VALUES (1, 0) ON CONFLICT (id) DO NOTHING;
