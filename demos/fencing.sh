#!/usr/bin/env bash
# A worker is stopped past its lease while its tool runs, and continued later; its fencing token decides what its late
# result is worth. See stage.sh for variables; on a server of yours DEMO_MAY_KILL=1 is needed.
# shellcheck source=demos/stage.sh
. "$(dirname "${BASH_SOURCE[0]}")/stage.sh"
require_permission stops

if [ "$own_server" = yes ]; then
  # A command is a process of its own: it goes on while its worker is stopped, and its answer waits in the pipe.
  # shellcheck disable=SC2016
  tool='cat >/dev/null; sleep 1; echo "$DURABLE_MCP_FENCING_TOKEN" >>LEDGER; echo "done under token $DURABLE_MCP_FENCING_TOKEN"'
  tool=${tool//LEDGER/$folder/ledger.txt}
  configure <<TOML
[lease]
ttl = "1800ms"
heartbeat = "1500ms"
[scheduler]
interval = "100ms"
[worker]
poll_interval = "20ms"
[defaults]
retry = { initial_interval = "200ms" }
[log]
level = "warn"
[tools.rebuild_index]
command = ["sh", "-c", '''$tool''']
delivery = "at_least_once"
[tools.charge_card]
command = ["sh", "-c", '''$tool''']
TOML
  start server mcp,scheduler
  url=$started_url
  start worker-A worker
  start worker-B worker
  again=rebuild_index again_arguments='{}' once=charge_card once_arguments='{}'
else
  again=demo_flaky again_arguments="{\"name\":\"$run\",\"failures\":0,\"seconds\":2}"
  once=demo_append once_arguments="{\"text\":\"$run\",\"seconds\":2}"
fi

# stop_holder ID: stops the worker that has the first lease. Sets victim.
stop_holder() {
  victim=$(wait_for "a worker has the call" event "$1" leased 1 | pid_of_worker)
  sleep 0.3
  say "kill -STOP worker (pid $victim), in the middle of its tool"
  kill -STOP "$victim"
}

say "1. $again may run again (at_least_once)"
call "$again" "$again_arguments" "$run-again" >"$folder/again" &
caller=$!
id=$(wait_for "the call is stored" with_key "$run-again" | field id)
stop_holder "$id"
wait_for "the lease expires" plain_event "$id" retried >/dev/null
wait_for "another worker takes the call" event "$id" leased 2 >/dev/null
say "kill -CONT worker (pid $victim): it brings its result under the old token"
kill -CONT "$victim"
wait "$caller"
say "the caller is told: $(text <"$folder/again")"
if [ "$own_server" = yes ]; then
  rejected=$(wait_for "the late result is refused" event "$id" rejected)
  must [ "$(field fencing_token <<<"$rejected")" = 1 ] -- "the wrong result was refused"
fi
tell_events "$id"
count_execution "$id"
must [ "$(event "$id" completed | field fencing_token)" = 2 ] -- "the call did not end under the newest token"

say "2. $once must not run twice (at_most_once)"
call "$once" "$once_arguments" "$run-once" >"$folder/once" &
caller=$!
id=$(wait_for "the call is stored" with_key "$run-once" | field id)
stop_holder "$id"
wait_for "the lease expires" plain_event "$id" lost >/dev/null
wait "$caller"
say "the caller is told: $(execution state <"$folder/once")"
must [ "$(execution state <"$folder/once")" = unknown ] -- "the caller was not told that the outcome is unknown"
sleep 1
say "kill -CONT worker (pid $victim): its token is still the newest"
kill -CONT "$victim"
wait_for "the late result counts" event "$id" completed >/dev/null
answer=$(call "$once" "$once_arguments" "$run-once")
say "asked again with the same key: $(text <<<"$answer")"
tell_events "$id"
must [ "$(event "$id" completed | field source)" = late_result ] -- "the late result did not complete the call"
count_execution "$id"
# Its worker had been given up.
recovered=$((recovered + 1))
duplicate=$(($(count_events "$id" leased) - 1))

if [ "$own_server" = yes ]; then
  say "the tools' own ledger, by fencing token: $(tr '\n' ' ' <"$folder/ledger.txt")"
fi
finish "the older token changed nothing, the newest one completed a call whose outcome had been unknown"
