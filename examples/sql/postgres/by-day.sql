-- Calls of each tool by day (UTC), and how many did not end well.
SELECT to_char(to_timestamp(e.created_at_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
       e.upstream,
       e.tool,
       count(*) AS calls,
       sum(CASE WHEN e.state = 'completed' AND NOT e.is_error THEN 1 ELSE 0 END) AS completed_well,
       sum(CASE WHEN e.state IN ('failed', 'unknown') OR e.is_error THEN 1 ELSE 0 END) AS not_well,
       sum(CASE WHEN e.attempt > 1 THEN 1 ELSE 0 END) AS took_more_than_one_attempt,
       max(e.ended_at_ms - e.created_at_ms) AS slowest_ms
FROM executions e
GROUP BY to_char(to_timestamp(e.created_at_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD'), e.upstream, e.tool
ORDER BY day, e.upstream, e.tool;
