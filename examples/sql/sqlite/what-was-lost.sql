-- What was lost? Attempts of which nobody learnt how they went, by tool and reason, and how many of their calls
-- completed all the same.
SELECT e.upstream,
       e.tool,
       json_extract(v.body, '$.error.code') AS reason,
       count(*) AS attempts_lost,
       sum(CASE WHEN e.state = 'completed' THEN 1 ELSE 0 END) AS of_calls_that_completed,
       sum(CASE WHEN e.state = 'unknown' THEN 1 ELSE 0 END) AS of_calls_still_unknown
FROM execution_events v
JOIN executions e ON v.execution_id = e.id
WHERE v.type = 'lost'
   OR v.type IN ('retried', 'failed')
      AND json_extract(v.body, '$.error.code') IN ('lease_expired', 'process_died', 'child_died', 'connection_lost', 'attempt_timeout', 'idle_timeout', 'worker_stopped', 'command_stopped', 'cancelled')
      AND json_extract(v.body, '$.by.principal') IS NULL
GROUP BY e.upstream, e.tool, json_extract(v.body, '$.error.code')
ORDER BY attempts_lost DESC, e.upstream, e.tool, reason;
