-- How many executions of a namespace have failed, out of an index that only rare ones are in.
DROP INDEX executions_rare;
CREATE INDEX executions_rare ON executions (state, id, namespace, principal)
    WHERE state = 'waiting' OR state = 'failed' OR state = 'cancelled' OR state = 'unknown';
