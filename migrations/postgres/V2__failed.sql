-- Executions by their error: a call that goes well is not in it.
--@ oldest-program 1
--@ section
CREATE INDEX IF NOT EXISTS executions_failed ON executions (shard, error_code, id) WHERE error_code IS NOT NULL;
