-- How many calls were answered by an execution that was there, by principal, over the last day. They leave no event, so
-- that a repeat costs nothing; the processes count them.
SELECT s.namespace,
       s.principal,
       sum(CAST(json_extract(s.body, '$.repeats') AS BIGINT)) AS answered_again,
       strftime('%Y-%m-%dT%H:%M:%SZ', max(s.minute_ms) / 1000, 'unixepoch') AS last_minute
FROM series s
WHERE s.counted NOT IN ('log', 'log_of_all')
GROUP BY s.namespace, s.principal
ORDER BY answered_again DESC, s.principal;
