#!/usr/bin/env bash
# What the four demos share: a server to play on, one call by curl, what the store says about it, counts and a verdict.
# Sourced, not run. Needs bash and curl.
#
#   DURABLE_MCP_URL    a running server (started with --demo); without it the demo starts its own and ends it
#   DURABLE_MCP_TOKEN  a token for that server
#   DURABLE_MCP        the program, for a server of its own (default: durable-mcp)
set -euo pipefail

program=${DURABLE_MCP:-durable-mcp}
token=${DURABLE_MCP_TOKEN:-}
url=${DURABLE_MCP_URL:-}
url=${url%/}
url=${url%/mcp}
# No variable of ours may change a server that the demo starts.
unset DURABLE_MCP_URL DURABLE_MCP_TOKEN DURABLE_MCP
own_server=no
if [ -z "$url" ]; then own_server=yes; fi
# Tells the keys of this run from those of others; the demos use it.
# shellcheck disable=SC2034
run="demo-$$-$RANDOM"

folder=$(mktemp -d "${TMPDIR:-/tmp}/durable-mcp-script-XXXXXX")
pids=()
wrong=()

# Ends what was started, by its own id, and takes the folder away.
clean_up() {
  local pid
  for pid in ${pids[@]+"${pids[@]}"}; do
    kill -9 "$pid" 2>/dev/null || true
  done
  # What dies may still write for a moment.
  sleep 0.1
  rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

# must CONDITION-AS-COMMAND… -- WHAT-IS-WRONG
must() {
  local condition=()
  while [ "$1" != -- ]; do
    condition+=("$1")
    shift
  done
  shift
  if ! "${condition[@]}"; then wrong+=("$*"); fi
}

# start NAME ROLES [ADDRESS]: a process on the demo's store. Sets started_pid and started_url.
start() {
  local name=$1 roles=$2 address=${3:-127.0.0.1:0} log tries=0
  log="$folder/$name-$RANDOM.log"
  : >"$log"
  DURABLE_MCP_CONFIG="$folder/durable-mcp.toml" DURABLE_MCP_DATA_DIR="$folder/data" \
    "$program" serve --demo --roles "$roles" --listen "$address" </dev/null >/dev/null 2>>"$log" &
  started_pid=$!
  pids+=("$started_pid")
  # The shell need not tell that it was killed: that is what happens here.
  disown "$started_pid"
  until grep -q ' listens on http' "$log"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ] || ! kill -0 "$started_pid" 2>/dev/null; then
      echo "$name did not start:" >&2
      cat "$log" >&2
      exit 1
    fi
    sleep 0.05
  done
  # Only a server with the role `mcp` says the path of that endpoint.
  started_url=$(sed -n 's/.* listens on \(http:[^ ]*\)$/\1/p' "$log" | sed 's/\/mcp$//')
  say "$name (pid $started_pid) on $started_url"
}

# Configuration of a server of the demo's own, on stdin.
configure() { cat >"$folder/durable-mcp.toml"; }

authorized_curl() {
  if [ -n "$token" ]; then
    curl -sS -H "Authorization: Bearer $token" "$@"
  else
    curl -sS "$@"
  fi
}

# call TOOL ARGUMENTS [KEY] [CURL-OPTION…]: one tools/call of revision 2026-07-28; prints the answer as it came.
call() {
  local tool=$1 arguments=$2 key=${3:-} meta
  shift 2
  if [ $# -gt 0 ]; then shift; fi
  meta='"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}'
  meta="$meta,\"io.modelcontextprotocol/clientInfo\":{\"name\":\"curl\",\"version\":\"1\"}"
  if [ -n "$key" ]; then meta="$meta,\"durable-mcp/idempotencyKey\":\"$key\""; fi
  authorized_curl "$@" -X POST "$url/mcp" \
    -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H "Mcp-Name: $tool" \
    -d "{\"jsonrpc\":\"2.0\",\"id\":$RANDOM,\"method\":\"tools/call\",\"params\":{\"name\":\"$tool\",\"arguments\":$arguments,\"_meta\":{$meta}}}"
}

# A path of the API, as JSON.
api() { authorized_curl --fail-with-body "$url/api/v1/$1"; }

# field NAME: the first member of this name in the JSON on stdin, without quotes.
field() { grep -oE "\"$1\":(\"[^\"]*\"|[-0-9a-z.]*)" | head -n 1 | cut -d : -f 2- | tr -d '"' || true; }

# execution NAME: a member of _meta["durable-mcp/execution"] in the answer on stdin.
execution() { grep -o '"durable-mcp/execution":{[^}]*}' | tail -n 1 | cut -d : -f 2- | field "$1" || true; }

# The text that a tool answered.
text() { grep -o '"text":"[^"]*"' | head -n 1 | cut -d : -f 2- | sed -e 's/\\n/ /g' -e 's/"//g' -e 's/ *$//' || true; }

# rows QUERY: one execution a line.
rows() { api "executions?$1" | sed 's/{"id":"/\
&/g' | grep '^{"id":"' || true; }

# with_key KEY [QUERY]: the execution of this key.
with_key() { rows "limit=1000${2:+&$2}" | grep "\"key\":\"$1\"" || true; }

# events ID: one event a line.
events() { api "executions/$1/events" | sed 's/{"seq":/\
&/g' | grep '^{"seq":' || true; }

# count_events ID TYPE
count_events() { events "$1" | grep -c "\"type\":\"$2\"" || true; }

# wait_for WHAT COMMAND…: until the command prints something; prints that.
patience=${DEMO_PATIENCE:-60}
wait_for() {
  local what=$1 end=$((SECONDS + patience)) found
  shift
  while true; do
    found=$("$@" 2>/dev/null || true)
    if [ -n "$found" ]; then
      printf '%s\n' "$found"
      return
    fi
    if [ "$SECONDS" -ge "$end" ]; then
      echo "not within $patience s: $what" >&2
      exit 1
    fi
    sleep 0.1
  done
}

# event ID TYPE [TOKEN]: the last event of this type (and fencing token).
event() {
  events "$1" | grep "\"type\":\"$2\"" | grep "\"fencing_token\":${3:-[0-9]}" | tail -n 1 || true
}

# plain_event ID TYPE: the last event of this type, which names no token.
plain_event() { events "$1" | grep "\"type\":\"$2\"" | tail -n 1 || true; }

# tell_events ID: the whole log of an execution, one line for each event.
tell_events() {
  local line words name value
  events "$1" | while IFS= read -r line; do
    words=$(printf '%s' "$line" | field type)
    for name in worker attempt fencing_token code reason source; do
      value=$(printf '%s' "$line" | field "$name")
      if [ -n "$value" ]; then words="$words  $name=$value"; fi
    done
    printf '          %s  %s\n' "$(printf '%s' "$line" | field seq)" "$words"
  done
}

# kill_9 PID: kills a process and waits until it is gone, so that its address is free.
kill_9() {
  kill -9 "$1"
  while kill -0 "$1" 2>/dev/null; do sleep 0.05; done
}

# The process id in a worker's name.
pid_of_worker() { field worker | grep -o '[0-9]*$'; }

# Kills and stops are for processes of the demo's own, unless somebody says otherwise.
require_permission() {
  if [ "$own_server" = no ] && [ -z "${DEMO_MAY_KILL:-}" ]; then
    echo "this demo $1 the worker process that runs its call; set DEMO_MAY_KILL=1 to let it do that to the workers" >&2
    echo "of $url. They have to run on this machine, apart from the server, and something has to start them again." >&2
    exit 2
  fi
}

# count STATE ATTEMPT: adds a call that ended like this to the counts.
completed=0 recovered=0 failed=0 unknown=0 lost=0 duplicate=0 calls=0
count() {
  calls=$((calls + 1))
  case $1 in
    completed)
      completed=$((completed + 1))
      if [ "$2" -gt 1 ]; then recovered=$((recovered + 1)); fi
      ;;
    failed) failed=$((failed + 1)) ;;
    unknown) unknown=$((unknown + 1)) ;;
    *) lost=$((lost + 1)) ;;
  esac
}

# count_execution ID: the same, as the store has it.
count_execution() {
  local row
  row=$(api "executions/$1")
  count "$(field state <<<"$row")" "$(field attempt <<<"$row")"
}

# finish VERDICT: prints the counts and the verdict; ends with 0 only when nothing was wrong.
finish() {
  must [ "$lost" = 0 ] -- "$lost calls are lost"
  must [ "$duplicate" = 0 ] -- "$duplicate calls ran more often than they may"
  printf '\n  calls %s   completed %s   recovered %s   failed %s   lost %s   duplicate %s   unknown %s\n\n' \
    "$calls" "$completed" "$recovered" "$failed" "$lost" "$duplicate" "$unknown"
  if [ "${#wrong[@]}" -eq 0 ]; then
    echo "As it must be: $1 ($SECONDS s)"
    exit 0
  fi
  local what
  printf 'NOT as it must be: %s' "${wrong[0]}"
  for what in "${wrong[@]:1}"; do printf '; %s' "$what"; done
  printf '\n'
  exit 1
}
