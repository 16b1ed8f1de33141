#!/bin/sh
# Stands for a long job: reads its arguments as JSON from stdin, works, and prints a whole tool result.
# The idempotency key is the same on every attempt, so that a write of its own can be made once.
set -eu

arguments=$(cat)
sleep "${REPORT_SECONDS:-5}"
printf '{"content":[{"type":"text","text":"report done under key %s for %s bytes of arguments"}]}\n' \
  "$DURABLE_MCP_IDEMPOTENCY_KEY" "${#arguments}"
