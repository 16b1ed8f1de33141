-- Workers, and what their tools keep between attempts. docs/schema.md explains it to people who ask with SQL.

-- Who runs tools. A worker inside a process of ours has the id of that process, a remote one made its id itself.
CREATE TABLE workers (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    namespace TEXT NOT NULL,
    principal TEXT NOT NULL,
    kind TEXT NOT NULL,
    slots INTEGER NOT NULL,
    sdk TEXT,
    -- What it registered: a list of objects.
    tools TEXT NOT NULL,
    -- Lower-case hex. The server signs lease tokens with it; it never leaves the server.
    lease_key TEXT NOT NULL,
    registered_at_ms INTEGER NOT NULL,
    last_seen_at_ms INTEGER NOT NULL,
    -- Without another sign of life a remote worker counts as dead from then on.
    silent_at_ms INTEGER NOT NULL,
    draining INTEGER NOT NULL,
    gone_at_ms INTEGER,
    CONSTRAINT kind_is_known CHECK (kind = 'remote' OR kind = 'local')
) STRICT;

-- One row; counts registrations, drains and departures, so that a process reads the table only when it changed.
CREATE TABLE worker_changes (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    count INTEGER NOT NULL
) STRICT;
INSERT INTO worker_changes (id, count) VALUES (1, 0);

-- Results of named steps: the next attempt gets them back instead of running the step again.
CREATE TABLE steps (
    execution_id TEXT NOT NULL,
    name TEXT NOT NULL,
    result TEXT NOT NULL,
    fencing_token INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (execution_id, name)
) STRICT;

-- How far an execution is, in its tool's own words: the newest checkpoint only.
CREATE TABLE checkpoints (
    execution_id TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL,
    fencing_token INTEGER NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;
