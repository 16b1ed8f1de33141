#!/usr/bin/env bash
# How calls a second and latency change with the number of clients, measured with `durable-mcp bench`.
#
#   examples/load/bench.sh                       a server of its own, in a temporary folder
#   examples/load/bench.sh http://127.0.0.1:7400 a running one, with the demo tools or your own: TOOL, ARGS
#
# Variables: CLIENTS (default "1 16 64"), DURATION (5s), TOOL and ARGS as in `durable-mcp bench --help`,
# DURABLE_MCP_TOKEN, DURABLE_MCP (the program). Ends with 1 when an answer was wrong or none came.
set -euo pipefail

program=${DURABLE_MCP:-durable-mcp}
options=(--duration "${DURATION:-5s}" --warmup "${WARMUP:-1s}")
if [ $# -gt 0 ]; then options+=(--url "$1"); fi
if [ -n "${TOOL:-}" ]; then options+=(--tool "$TOOL"); fi
if [ -n "${ARGS:-}" ]; then options+=(--args "$ARGS"); fi

# number NAME: the first number of this name in the JSON on stdin.
number() { grep -oE "\"$1\":[0-9.]+" | head -n 1 | cut -d : -f 2; }

printf '%8s %10s %10s %10s\n' clients calls/s 'p50 ms' 'p99 ms'
read -r -a steps <<<"${CLIENTS:-1 16 64}"
for clients in "${steps[@]}"; do
  report=$("$program" bench "${options[@]}" --concurrency "$clients" --json)
  printf '%8s %10.0f %10.2f %10.2f\n' "$clients" "$(number calls_per_s <<<"$report")" \
    "$(number p50 <<<"$report")" "$(number p99 <<<"$report")"
done
