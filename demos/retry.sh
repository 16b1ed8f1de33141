#!/usr/bin/env bash
# A flaky tool is tried again with growing pauses; what runs out fails for good, and says so. A server of the demo's own is
# killed between two attempts. See stage.sh for variables.
# shellcheck source=demos/stage.sh
. "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

if [ "$own_server" = yes ]; then
  configure <<'TOML'
[scheduler]
interval = "100ms"
[defaults]
retry = { max_attempts = 3, initial_interval = "1s" }
[log]
level = "warn"
TOML
  start server mcp,worker,scheduler
  url=$started_url
fi

say "call \"report\": demo_flaky loses its first 2 attempts; call \"hopeless\": it loses all"
report() { call demo_flaky "{\"name\":\"$run-report\",\"failures\":2}" "$run-report"; }
hopeless() { call demo_flaky "{\"name\":\"$run-hopeless\",\"failures\":1000}" "$run-hopeless"; }
{ report >"$folder/report" 2>/dev/null || true; } &
{ hopeless >"$folder/hopeless" 2>/dev/null || true; } &
id=$(wait_for "the call is stored" with_key "$run-report" | field id)

# Called by wait_for.
# shellcheck disable=SC2329
second_retry() { [ "$(count_events "$id" retried)" -lt 2 ] || echo yes; }
if [ "$own_server" = yes ]; then
  wait_for "the second retry is scheduled" second_retry >/dev/null
  say "kill -9 server (pid $started_pid), while the third attempt is scheduled"
  kill_9 "$started_pid"
  start server mcp,worker,scheduler "${url#http://}"
  say "the callers ask again with their keys"
fi
answer=$(report)
answer_hopeless=$(hopeless)
id_hopeless=$(execution id <<<"$answer_hopeless")
say "the log of \"report\":"
tell_events "$id"
say "told: $(text <<<"$answer")"
say "the log of \"hopeless\":"
tell_events "$id_hopeless"
say "told: $(text <<<"$answer_hopeless")"

allowed=$(api "executions/$id_hopeless" | field attempts_allowed)
must [ "$(execution state <<<"$answer")" = completed ] -- "the report is not completed"
must [ "$(count_events "$id" leased)" = 3 ] -- "the report had $(count_events "$id" leased) attempts instead of 3"
must [ "$(execution state <<<"$answer_hopeless")" = failed ] -- "the hopeless call did not fail"
must [ "$(count_events "$id_hopeless" leased)" = "$allowed" ] -- "the hopeless call did not have its $allowed attempts"
count_execution "$id"
count_execution "$id_hopeless"
finish "every attempt came in its turn, and what ran out says so"
