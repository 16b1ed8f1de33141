-- How many calls were answered by an execution that was there, by principal, over the last day. They leave no event, so
-- that a repeat costs nothing; the processes count them.
SELECT s.namespace,
       s.principal,
       sum(CAST(s.body::jsonb #>> '{repeats}' AS BIGINT)) AS answered_again,
       to_char(to_timestamp(max(s.minute_ms) / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS last_minute
FROM series s
WHERE s.counted NOT IN ('log', 'log_of_all')
GROUP BY s.namespace, s.principal
ORDER BY answered_again DESC, s.principal;
