-- Calls that were refused because their key stands for another call: the sign of a client that uses a key twice.
SELECT e.upstream,
       e.tool,
       e.key,
       e.principal AS key_of,
       count(*) AS refused,
       sum(CASE WHEN v.body::jsonb #>> '{foreign}' IN ('true') THEN 1 ELSE 0 END) AS from_another_principal,
       to_char(to_timestamp(max(v.at_ms) / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS last_at
FROM execution_events v
JOIN executions e ON v.shard = e.shard AND v.execution_id = e.id
WHERE v.type = 'conflicted'
GROUP BY e.upstream, e.tool, e.key, e.principal
ORDER BY refused DESC, e.key;
