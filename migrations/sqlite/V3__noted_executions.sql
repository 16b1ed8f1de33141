-- A note (a stale result, a conflict) may come to an execution long after its end; whoever follows events finds it here.
-- Almost no execution has one, so almost no write touches this index.
CREATE INDEX executions_noted ON executions (updated_at_ms) WHERE notes > 0;
