-- Who decided what, and why: every order of a person, and every answer of a server that was asked.
SELECT to_char(to_timestamp(v.at_ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at,
       v.body::jsonb #>> '{by,principal}' AS who,
       v.type AS what,
       v.body::jsonb #>> '{by,reason}' AS reason,
       v.execution_id
FROM execution_events v
WHERE v.body::jsonb #>> '{by,principal}' IS NOT NULL
ORDER BY v.at_ms, v.execution_id, v.seq;
