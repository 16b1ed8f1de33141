#!/usr/bin/env bash
# All set-up and all tests: format, lints, one debug build, unit and integration tests, the real clients.
# Needs Rust. Node and Python are used where they are there; outside CI their tests say loudly that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (%s)\n' "$1" "$(date +%H:%M:%S)"; }

step "clients and servers nobody here wrote"
if ! bash tests/setup.sh; then
  if [ -n "${CI:-}" ]; then echo "the set-up failed, and in CI nothing may be skipped" >&2; exit 1; fi
  echo "SKIPPED: the tests with real clients need Node 20+ and Python 3.10+" >&2
fi

step "the dashboard's build is that of its sources"
if command -v npm >/dev/null; then
  made() { cat dashboard/dist/* dashboard/src/api-types.ts | cksum; }
  committed=$(made)
  (cd dashboard && npm ci --silent --no-fund --no-audit && npm run --silent types && npm run --silent build)
  if [ "$(made)" != "$committed" ]; then
    echo "dashboard/dist or src/api-types.ts differs from what its sources make: commit what was made now" >&2
    exit 1
  fi
fi

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --locked --all-targets -- -D warnings

step "tests"
if cargo nextest --version >/dev/null 2>&1; then
  cargo nextest run --locked --no-fail-fast
else
  cargo test --locked --all-targets
fi
step "done"
