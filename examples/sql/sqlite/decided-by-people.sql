-- Who decided what, and why: every order of a person, and every answer of a server that was asked.
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', v.at_ms / 1000, 'unixepoch') AS at,
       json_extract(v.body, '$.by.principal') AS who,
       v.type AS what,
       json_extract(v.body, '$.by.reason') AS reason,
       v.execution_id
FROM execution_events v
WHERE json_extract(v.body, '$.by.principal') IS NOT NULL
ORDER BY v.at_ms, v.execution_id, v.seq;
