-- Sessions of legacy clients (up to 2025-11-25) and their streams. docs/schema.md explains it to people who ask with SQL.

CREATE TABLE sessions (
    -- Lower-case hex of the SHA-256 of the session's id. Nothing here needs the id itself: who sends it is looked up by
    -- its hash, so that nobody who reads the database can speak in somebody's session.
    key TEXT NOT NULL PRIMARY KEY,
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
    created_at_ms INTEGER NOT NULL,
    -- Written once per heartbeat, so it is up to one heartbeat old.
    last_seen_at_ms INTEGER NOT NULL,
    closed_at_ms INTEGER
) STRICT;
CREATE INDEX sessions_open ON sessions (namespace, principal, last_seen_at_ms) WHERE closed_at_ms IS NULL;
CREATE INDEX sessions_seen ON sessions (last_seen_at_ms);
CREATE INDEX sessions_closed ON sessions (closed_at_ms) WHERE closed_at_ms IS NOT NULL;

-- Resources a session wants to hear about.
CREATE TABLE session_subscriptions (
    session_key TEXT NOT NULL,
    uri TEXT NOT NULL,
    PRIMARY KEY (session_key, uri)
) STRICT;

-- Streams that can be resumed. Number 0 opens the stream of a call: the JSON-RPC request it answers and its execution.
-- Higher numbers are messages. The answer to the call is not among them: it is rendered from the execution.
CREATE TABLE session_messages (
    session_key TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    -- Number 0: the JSON-RPC id of the request, as the client wrote it.
    request_id TEXT,
    execution_id TEXT,
    -- What makes a message one and the same, however often it is pushed.
    name TEXT,
    -- Number 0: what the answer has to fit, as JSON. Else the JSON-RPC message.
    body TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (session_key, stream, seq),
    CONSTRAINT opening_is_whole CHECK (seq <> 0 OR (request_id IS NOT NULL AND execution_id IS NOT NULL))
) STRICT;
CREATE INDEX session_messages_at ON session_messages (at_ms);
