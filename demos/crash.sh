#!/usr/bin/env bash
# A worker is killed while it runs calls of both deliveries; another one takes over what may run again, and the rest is
# honestly unknown. See stage.sh for variables; on a server of yours DEMO_MAY_KILL=1 is needed.
# shellcheck source=demos/stage.sh
. "$(dirname "${BASH_SOURCE[0]}")/stage.sh"
require_permission kills

if [ "$own_server" = yes ]; then
  configure <<'TOML'
[scheduler]
interval = "100ms"
[worker]
poll_interval = "20ms"
[defaults]
retry = { initial_interval = "100ms" }
[log]
level = "warn"
TOML
  start server mcp,scheduler
  url=$started_url
  start worker-A worker
  start worker-B worker
fi

each=6
say "$each calls of demo_append (at_most_once) and $each of demo_flaky (at_least_once), of 0.4 s to 2.4 s"
asking=()
for n in $(seq "$each"); do
  seconds="$((4 * n / 10)).$((4 * n % 10))"
  call demo_append "{\"text\":\"$run-once-$n\",\"seconds\":$seconds}" "$run-once-$n" >"$folder/once-$n" &
  asking+=($!)
  call demo_flaky "{\"name\":\"$run-again-$n\",\"failures\":0,\"seconds\":$seconds}" "$run-again-$n" >"$folder/again-$n" &
  asking+=($!)
done

# Somebody has to run at least one call of each kind; the victim is who runs the first of them.
# Called by wait_for.
# shellcheck disable=SC2329
leased_once() { rows 'state=leased&limit=1000' | grep "\"key\":\"$run-once-" | head -n 1 || true; }
victim=$(wait_for "a worker has a call" leased_once | pid_of_worker)
# In the middle of it.
sleep 0.7
say "kill -9 worker (pid $victim)"
kill_9 "$victim"
wait "${asking[@]}"

judge() {
  local state attempt id
  state=$(execution state <"$2")
  attempt=$(execution attempt <"$2")
  id=$(execution id <"$2")
  count "$state" "${attempt:-0}"
  if [ "$state" = completed ] && [ "$attempt" -gt 1 ]; then shown_recovered=$id; fi
  if [ "$state" = unknown ]; then shown_unknown=$id; fi
  if [ "$1" = once ] && [ "$(count_events "$id" leased)" -gt 1 ]; then duplicate=$((duplicate + 1)); fi
}
for n in $(seq "$each"); do
  judge once "$folder/once-$n"
  judge again "$folder/again-$n"
done
if [ -n "${shown_recovered:-}" ]; then
  say "the log of a call that ran again:"
  tell_events "$shown_recovered"
fi
if [ -n "${shown_unknown:-}" ]; then
  say "the log of a call that must not run again:"
  tell_events "$shown_unknown"
fi
if [ "$own_server" = yes ]; then
  ledger=$(grep "^$run-once-" "$folder/data/demo/demo-ledger.txt" 2>/dev/null | cut -d ' ' -f 1 || true)
  twice=$(sort <<<"$ledger" | uniq -d | wc -w | tr -d ' ')
  say "the tool's own ledger: $(wc -w <<<"$ledger" | tr -d ' ') of $each at_most_once calls wrote their line, $twice of them twice"
  duplicate=$((duplicate + twice))
fi
must [ "$failed" = 0 ] -- "$failed calls failed"
must [ "$((recovered + unknown))" -gt 0 ] -- "the kill hit no call"
finish "nothing lost, nothing ran twice that must not, and what nobody can know is called unknown"
