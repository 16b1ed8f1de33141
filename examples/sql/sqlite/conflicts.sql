-- Calls that were refused because their key stands for another call: the sign of a client that uses a key twice.
SELECT e.upstream,
       e.tool,
       e.key,
       e.principal AS key_of,
       count(*) AS refused,
       sum(CASE WHEN json_extract(v.body, '$.foreign') IN (1) THEN 1 ELSE 0 END) AS from_another_principal,
       strftime('%Y-%m-%dT%H:%M:%SZ', max(v.at_ms) / 1000, 'unixepoch') AS last_at
FROM execution_events v
JOIN executions e ON v.execution_id = e.id
WHERE v.type = 'conflicted'
GROUP BY e.upstream, e.tool, e.key, e.principal
ORDER BY refused DESC, e.key;
