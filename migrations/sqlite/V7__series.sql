-- Numbers by minute, counted from the log. docs/schema.md explains it to people who ask with SQL.

CREATE TABLE series (
    minute_ms INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    principal TEXT NOT NULL,
    -- `log`, `log_of_all` (everybody in the namespace, the principal is empty), or the process that counted what leaves no event.
    counted TEXT NOT NULL,
    -- The numbers, as JSON.
    body TEXT NOT NULL,
    PRIMARY KEY (minute_ms, namespace, principal, counted)
) STRICT, WITHOUT ROWID;

-- One row: every minute before it is counted.
CREATE TABLE series_closed (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    until_ms INTEGER NOT NULL
) STRICT;
INSERT INTO series_closed (id, until_ms) VALUES (1, 0);
