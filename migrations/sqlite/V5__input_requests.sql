-- Questions of running tools to their clients. docs/schema.md explains it to people who ask with SQL.

-- Waiting for input does not count as run time.
ALTER TABLE executions ADD COLUMN waited_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN waiting_since_ms INTEGER;

CREATE TABLE input_requests (
    execution_id TEXT NOT NULL,
    -- 1, 2, 3 … over all rounds and attempts of the execution.
    number INTEGER NOT NULL,
    round INTEGER NOT NULL,
    -- The attempt that asked last.
    attempt INTEGER NOT NULL,
    parked INTEGER NOT NULL,
    -- What answers name; never used twice in an execution.
    key TEXT NOT NULL,
    -- The tool's own name for it.
    name TEXT NOT NULL,
    method TEXT NOT NULL,
    params TEXT NOT NULL,
    params_hash TEXT NOT NULL,
    -- What the tool wants to see again, of a parked round.
    state TEXT,
    asked_at_ms INTEGER NOT NULL,
    -- result, error, expired or withdrawn; absent while it is open.
    outcome TEXT,
    answer TEXT,
    answer_hash TEXT,
    answered_at_ms INTEGER,
    answered_by TEXT,
    PRIMARY KEY (execution_id, number),
    CONSTRAINT outcome_is_known CHECK (
        outcome IS NULL OR outcome = 'result' OR outcome = 'error' OR outcome = 'expired' OR outcome = 'withdrawn'
    ),
    CONSTRAINT answer_fits_outcome CHECK (
        (answer IS NOT NULL) = (outcome IS NOT NULL AND (outcome = 'result' OR outcome = 'error'))
    )
) STRICT;

CREATE UNIQUE INDEX input_requests_key ON input_requests (execution_id, key);
-- Open questions, by when they were asked.
CREATE INDEX input_requests_open ON input_requests (asked_at_ms) WHERE outcome IS NULL;

-- What seals the states that clients bring back: the newest key and the one before it.
CREATE TABLE sealing_keys (
    generation INTEGER NOT NULL PRIMARY KEY,
    -- Lower-case hex. It never leaves the server.
    key TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT;
