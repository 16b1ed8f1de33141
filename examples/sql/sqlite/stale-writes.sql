-- Results that came too late: under an older fencing token, or for a call that had ended. None of them changed anything.
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', v.at_ms / 1000, 'unixepoch') AS at,
       v.execution_id,
       e.tool,
       json_extract(v.body, '$.reason') AS reason,
       json_extract(v.body, '$.fencing_token') AS under_token,
       e.fencing_token AS newest_token,
       json_extract(v.body, '$.result.sha256') AS result_sha256
FROM execution_events v
JOIN executions e ON v.execution_id = e.id
WHERE v.type = 'rejected'
ORDER BY v.at_ms, v.execution_id, v.seq;
