-- Results that came too late: under an older fencing token, or for a call that had ended. None of them changed anything.
SELECT to_char(to_timestamp(v.at_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at,
       v.execution_id,
       e.tool,
       v.body::jsonb #>> '{reason}' AS reason,
       v.body::jsonb #>> '{fencing_token}' AS under_token,
       e.fencing_token AS newest_token,
       v.body::jsonb #>> '{result,sha256}' AS result_sha256
FROM execution_events v
JOIN executions e ON v.shard = e.shard AND v.execution_id = e.id
WHERE v.type = 'rejected'
ORDER BY v.at_ms, v.execution_id, v.seq;
