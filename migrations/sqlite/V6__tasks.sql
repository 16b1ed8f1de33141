-- Executions that a client sees as MCP tasks. docs/schema.md explains it to people who ask with SQL.

CREATE TABLE tasks (
    execution_id TEXT NOT NULL PRIMARY KEY,
    namespace TEXT NOT NULL,
    principal TEXT NOT NULL,
    -- As which of the two it was first asked for: the extension of 2026-07-28, or the experimental feature of 2025-11-25.
    variant TEXT NOT NULL,
    ttl_ms INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    -- From then on it is gone for its reader.
    expires_at_ms INTEGER NOT NULL,
    -- What happens then to work that still runs.
    on_expiry TEXT NOT NULL,
    -- The number of the last event of the end that a reader was shown first; kept only of an end that may change.
    shown_seq INTEGER,
    -- Where the client wanted progress reported to, as JSON.
    progress_token TEXT,
    CONSTRAINT variant_is_known CHECK (variant = 'extension' OR variant = 'experimental'),
    CONSTRAINT on_expiry_is_known CHECK (on_expiry = 'cancel' OR on_expiry = 'detach'),
    CONSTRAINT times_are_sane CHECK (expires_at_ms = created_at_ms + ttl_ms)
) STRICT, WITHOUT ROWID;

-- Tasks by when their time is over.
CREATE INDEX tasks_expiry ON tasks (expires_at_ms);
-- Pages of somebody's own tasks.
CREATE INDEX tasks_owner ON tasks (namespace, principal, execution_id);
