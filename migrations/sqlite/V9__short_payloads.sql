-- Most payloads are short, and a row of its own in an index for each of them was a fifteenth of what a call takes on disk.

-- What was there stays where it is: longer texts, and pieces of them.
ALTER TABLE payloads RENAME TO payload_pieces;

-- Texts so short that a page holds several under their key. A long one must not be here: SQLite copies an entry that does
-- not fit into its page each time it compares the key.
CREATE TABLE short_payloads (
    execution_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (execution_id, kind)
) STRICT, WITHOUT ROWID;

-- All of them, for whoever reads.
CREATE VIEW payloads (execution_id, kind, chunk, body) AS
    SELECT execution_id, kind, 0, body FROM short_payloads
    UNION ALL SELECT execution_id, kind, chunk, body FROM payload_pieces;
