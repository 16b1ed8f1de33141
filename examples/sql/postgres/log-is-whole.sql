-- Is the log whole? Calls whose events are not numbered 1, 2, 3 … up to the row's next number, or that ended without an
-- event that says so. No row is the right answer. (`durable-mcp db verify` checks far more.)
SELECT e.id,
       e.state,
       e.next_seq,
       count(v.seq) AS events,
       min(v.seq) AS first_seq,
       max(v.seq) AS last_seq
FROM executions e
LEFT JOIN execution_events v ON v.shard = e.shard AND v.execution_id = e.id
GROUP BY e.id, e.state, e.next_seq
HAVING count(v.seq) <> e.next_seq - 1
    OR coalesce(min(v.seq), 0) <> 1
    OR coalesce(max(v.seq), 0) <> e.next_seq - 1
    OR e.state IN ('completed', 'failed', 'cancelled')
       AND sum(CASE WHEN v.type = e.state THEN 1 ELSE 0 END) <> 1
    OR e.state = 'unknown' AND sum(CASE WHEN v.type = 'lost' THEN 1 ELSE 0 END) < 1
ORDER BY e.id;
