-- What people look for among very many executions, and mostly find nothing.

-- An error, and an attempt that was repeated: a call that goes well is in neither index.
CREATE INDEX executions_failed ON executions (error_code, id) WHERE error_code IS NOT NULL;
CREATE INDEX executions_again ON executions (id) WHERE fencing_token > 1 OR source <> 'result';

-- Whose call it is, which never changes: a quarter of what a row takes to be read over. It grows at its end, which costs a
-- write less than an index by key would, whose entries go anywhere.
CREATE INDEX executions_whose ON executions (id, namespace, upstream, tool, key, principal, caller);
