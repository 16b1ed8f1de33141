-- Did it happen? Everything that came under one idempotency key, and what is known of it.
-- Put the client's key in the first line.
WITH asked (key) AS (VALUES ('order-17'))
SELECT e.id,
       e.upstream,
       e.tool,
       e.principal,
       CASE
           WHEN e.state = 'completed' AND e.is_error THEN 'it ran, and answered with an error'
           WHEN e.state = 'completed' AND e.source = 'resolve' THEN 'a person says that it happened'
           WHEN e.state = 'completed' AND e.source = 'reconcile' THEN 'its server says that it happened'
           WHEN e.state = 'completed' THEN 'it happened'
           WHEN e.state = 'unknown' THEN 'nobody knows yet'
           WHEN e.state = 'cancelled' AND e.effect = 'none' THEN 'it was cancelled before it began'
           WHEN e.state = 'cancelled' THEN 'it was cancelled, and may have happened'
           WHEN e.state = 'failed' AND e.effect_possible THEN 'it failed, and may have happened'
           WHEN e.state = 'failed' THEN 'it failed'
           ELSE 'it goes on'
       END AS answer,
       e.attempt AS attempts,
       to_char(to_timestamp(e.created_at_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS asked_at,
       to_char(to_timestamp(e.ended_at_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS ended_at
FROM executions e
JOIN asked ON asked.key = e.key
ORDER BY e.created_at_ms;
