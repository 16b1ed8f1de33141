-- Who ran it? Each lease of the calls under one key: the worker, and what ended the lease.
-- Put the client's key in the first line.
WITH asked (key) AS (VALUES ('order-17'))
SELECT e.id,
       l.body::jsonb #>> '{attempt}' AS attempt,
       l.body::jsonb #>> '{fencing_token}' AS fencing_token,
       l.body::jsonb #>> '{worker}' AS worker,
       to_char(to_timestamp(l.at_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS leased_at,
       n.type AS then_it_was,
       n.at_ms - l.at_ms AS after_ms
FROM executions e
JOIN asked ON asked.key = e.key
JOIN execution_events l ON l.shard = e.shard AND l.execution_id = e.id AND l.type = 'leased'
LEFT JOIN execution_events n ON n.shard = e.shard AND n.execution_id = e.id
    AND n.seq = (
        SELECT min(x.seq) FROM execution_events x
        WHERE x.shard = e.shard AND x.execution_id = e.id AND x.seq > l.seq AND x.type NOT IN ('held', 'resumed', 'rejected', 'conflicted')
    )
ORDER BY e.created_at_ms, l.seq;
