-- Executions that were leased again, or whose result came in another way than from their attempt.
--@ oldest-program 1
--@ section
CREATE INDEX IF NOT EXISTS executions_again ON executions (shard, id) WHERE fencing_token > 1 OR source <> 'result';
