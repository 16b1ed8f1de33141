#!/usr/bin/env bash
# Clients repeat their calls by time-out, by key and after a cut stream; each call runs once. See stage.sh for variables.
# shellcheck source=demos/stage.sh
. "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

if [ "$own_server" = yes ]; then
  printf '[log]\nlevel = "warn"\n' | configure
  start server mcp,worker,scheduler
  url=$started_url
fi
requests=0

# ran ID WHAT: how often a worker got the lease of it, which must be once.
ran() {
  local times
  times=$(count_events "$1" leased)
  say "  execution $1: run $times time(s)"
  count_execution "$1"
  if [ "$times" -gt 1 ]; then duplicate=$((duplicate + 1)); fi
  must [ "$times" = 1 ] -- "$2 ran $times times"
}

say "1. a client gives up after 0.5 s, then calls again (no key)"
arguments="{\"text\":\"$run impatient\",\"seconds\":2}"
if call demo_append "$arguments" '' --max-time 0.5 >/dev/null 2>&1; then wrong+=("the call was answered too soon"); fi
answer=$(call demo_append "$arguments")
requests=$((requests + 2))
say "  told: $(text <<<"$answer")"
must [ "$(execution attached <<<"$answer")" = true ] -- "the repeated call was not taken by the first one"
ran "$(execution id <<<"$answer")" "the repeated call"

say "2. twenty clients with one key at once"
asking=()
for n in $(seq 20); do
  call demo_append "{\"text\":\"$run crowd\",\"seconds\":1}" "$run-crowd" >"$folder/crowd-$n" &
  asking+=($!)
done
wait "${asking[@]}"
requests=$((requests + 20))
ids=$(for n in $(seq 20); do execution id <"$folder/crowd-$n"; done | sort -u)
say "  20 answers, $(wc -w <<<"$ids" | tr -d ' ') execution(s)"
must [ "$(wc -w <<<"$ids" | tr -d ' ')" = 1 ] -- "one key got several executions"
ran "$(head -n 1 <<<"$ids")" "the call of the crowd"

say "3. the stream of the answer is cut, and the call is sent again under a new id (2026-07-28, no key)"
arguments="{\"text\":\"$run cut\",\"seconds\":2.5}"
call demo_append "$arguments" '' --max-time 1.5 -D "$folder/cut" >/dev/null 2>&1 || true
say "  the answer that was cut had begun: $(grep -i '^content-type' "$folder/cut" | tr -d '\r')"
answer=$(call demo_append "$arguments")
requests=$((requests + 2))
must [ "$(execution attached <<<"$answer")" = true ] -- "the call sent again was not taken by the first one"
ran "$(execution id <<<"$answer")" "the call of the cut stream"

say "4. the same in a session of 2025-11-25"
legacy() {
  authorized_curl "$@" -X POST "$url/mcp" -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream'
}
legacy -D "$folder/head" -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"curl","version":"1"}}}' >/dev/null
session=$(grep -i '^mcp-session-id:' "$folder/head" | cut -d : -f 2 | tr -d ' \r')
in_session=(-H "Mcp-Session-Id: $session" -H 'MCP-Protocol-Version: 2025-11-25')
legacy "${in_session[@]}" -d '{"jsonrpc":"2.0","method":"notifications/initialized"}' >/dev/null
body() { printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"demo_append","arguments":{"text":"%s legacy","seconds":2.5}}}' "$1" "$run"; }
legacy "${in_session[@]}" --max-time 1.5 -d "$(body 2)" >/dev/null 2>&1 || true
answer=$(legacy "${in_session[@]}" -d "$(body 3)")
requests=$((requests + 2))
must [ "$(execution attached <<<"$answer")" = true ] -- "the call sent again in the session was not taken by the first one"
ran "$(execution id <<<"$answer")" "the call of the session"

say "5. the same key with other arguments"
answer=$(call demo_append "{\"text\":\"$run other\"}" "$run-crowd")
requests=$((requests + 1))
say "  refused with $(field code <<<"$answer"): $(field message <<<"$answer")"
must [ "$(field code <<<"$answer")" = -31409 ] -- "the conflict was not refused"

if [ "$own_server" = yes ]; then
  lines=$(grep -c "^$run" "$folder/data/demo/demo-ledger.txt" || true)
  say "the tool's own ledger: $lines lines for $requests requests"
  must [ "$lines" = "$calls" ] -- "the ledger shows $lines runs of $calls calls"
fi
must [ "$completed" = "$calls" ] -- "only $completed of $calls calls are completed"
finish "$requests requests, $calls calls, each run once"
