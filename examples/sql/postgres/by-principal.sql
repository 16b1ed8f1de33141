-- What each principal had done, and how it ended.
SELECT e.namespace,
       e.principal,
       count(*) AS calls,
       sum(CASE WHEN e.state = 'completed' THEN 1 ELSE 0 END) AS completed,
       sum(e.is_error::int) AS of_these_with_an_error,
       sum(CASE WHEN e.state = 'failed' THEN 1 ELSE 0 END) AS failed,
       sum(CASE WHEN e.state = 'cancelled' THEN 1 ELSE 0 END) AS cancelled,
       sum(CASE WHEN e.state = 'unknown' THEN 1 ELSE 0 END) AS unknown,
       sum(e.attempt) AS attempts,
       to_char(to_timestamp(max(e.created_at_ms) / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS last_call_at
FROM executions e
GROUP BY e.namespace, e.principal
ORDER BY calls DESC, e.namespace, e.principal;
