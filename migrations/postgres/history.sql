-- Which migrations ran here, and who may run the next one. Made before the first migration, and never changed.

CREATE TABLE IF NOT EXISTS schema_history (
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- SHA-256 of the file, lower-case hex.
    checksum TEXT NOT NULL,
    -- The oldest schema a program may know and still work on this one.
    oldest_program BIGINT NOT NULL,
    applied_at_ms BIGINT NOT NULL,
    PRIMARY KEY (version)
);

-- One row. Whoever changed `holder` to itself migrates; the others wait until its time is over or it is done.
CREATE TABLE IF NOT EXISTS schema_guard (
    id BIGINT NOT NULL,
    holder UUID,
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT there_is_one_guard CHECK (id = 1)
);
