-- What needs a decision: calls that were started at most once, and whose outcome nobody knows.
SELECT e.id,
       e.upstream,
       e.tool,
       e.principal,
       e.key,
       e.error_code,
       strftime('%Y-%m-%dT%H:%M:%SZ', e.ended_at_ms / 1000, 'unixepoch') AS unknown_since
FROM executions e
WHERE e.state = 'unknown'
ORDER BY e.ended_at_ms;
