#!/bin/sh
# Installs the official TypeScript and Python clients that the integration tests drive. Safe to repeat, fast when done.
# Installs nothing outside tests/clients; never starts a client. Exit 3: Node or Python is missing.
set -eu
cd "$(dirname "$0")/clients"

missing() {
    echo "setup: $1 is MISSING: install it, or the tests that need it cannot run" >&2
    exit 3
}

# The stamp holds what was installed, so that a changed pin installs again.
stamp_of() {
    cat "$@" | cksum
}

command -v node >/dev/null || missing "node (20 or newer)"
command -v npm >/dev/null || missing "npm"
node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' || missing "node 20 or newer"

python=
for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.10; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    if "$candidate" -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || missing "python 3.10 or newer (with venv)"

wanted=$(stamp_of package.json package-lock.json)
if [ "$(cat node_modules/.installed 2>/dev/null || true)" != "$wanted" ]; then
    npm ci --no-fund --no-audit
    echo "$wanted" > node_modules/.installed
fi

wanted=$(stamp_of requirements.txt)
if [ "$(cat .venv/.installed 2>/dev/null || true)" != "$wanted" ]; then
    "$python" -m venv --clear .venv
    .venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
    echo "$wanted" > .venv/.installed
fi
echo "setup: the clients are ready" >&2
