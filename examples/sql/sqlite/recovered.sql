-- Which calls completed although an attempt was lost, how long after the loss, and how: by another attempt (`result`),
-- by the lost one after all (`late_result`), or by somebody's word (`resolve`, `reconcile`).
SELECT e.id,
       e.upstream,
       e.tool,
       e.attempt AS attempts,
       e.source,
       strftime('%Y-%m-%dT%H:%M:%SZ', min(v.at_ms) / 1000, 'unixepoch') AS first_lost_at,
       e.ended_at_ms - min(v.at_ms) AS completed_after_ms
FROM executions e
JOIN execution_events v ON v.execution_id = e.id
WHERE e.state = 'completed'
  AND (v.type = 'lost'
       OR v.type = 'retried' AND json_extract(v.body, '$.error.code') IN ('lease_expired', 'process_died', 'child_died', 'connection_lost', 'attempt_timeout', 'idle_timeout', 'worker_stopped', 'command_stopped', 'cancelled'))
GROUP BY e.id, e.upstream, e.tool, e.attempt, e.source, e.ended_at_ms
ORDER BY e.id;
