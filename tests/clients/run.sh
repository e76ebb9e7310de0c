#!/usr/bin/env bash
# Drives a server with real client libraries.
#
#   run.sh [handshake|eras] -- SERVER ARGS...
#
# `handshake` takes the libraries that know the revisions with a handshake alone,
# `eras` those that know 2026-07-28 too, each in every mode that it has. Without
# either, all are taken. A server with `--executor` in its arguments is asked to do
# a task, as tests/executor_client/executor.py does it; without it, that is a run of its own
# for each language. Prints one line for each client and the sum, and exits
# with 1 when a client failed.
#
# It needs Node 20, Python 3.11, cargo and the package registries. What it
# installs goes into this directory and is kept for the next run.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

which=all
if [[ ${1:-} == handshake || ${1:-} == eras ]]; then
    which=$1
    shift
fi
if [[ ${1:-} != -- || $# -lt 2 ]]; then
    echo "usage: run.sh [handshake|eras] -- SERVER ARGS..." >&2
    exit 2
fi
shift
server=("$@")

. "$here/install.sh"

# usage: install_venv NUMBER
install_venv() {
    python3 -m venv --clear "$here/python/.venv$1"
    "$here/python/.venv$1/bin/pip" install --quiet --disable-pip-version-check \
        -r "$here/python/requirements$1.txt"
}

install "$here/node/package-lock.json" "$here/node/node_modules/.installed" \
    npm ci --prefix "$here/node" --ignore-scripts --no-audit --no-fund --loglevel=error
for number in 1 2; do
    [[ $number == 1 && $which == eras || $number == 2 && $which == handshake ]] && continue
    install "$here/python/requirements$number.txt" "$here/python/.venv$number/.installed" \
        install_venv "$number"
done
if [[ $which != handshake ]]; then
    cargo build --quiet --locked --manifest-path "$here/rmcp/Cargo.toml" \
        --target-dir "$here/rmcp/target" >&2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0
failed=0

# Runs one client, which is ended when it hangs.
# usage: drive NAME COMMAND...
drive() {
    local name=$1 spoken status=0
    shift
    spoken=$(timeout --kill-after=10 300 "$@" -- "${server[@]}" 2>"$log") || status=$?
    if [[ $status == 124 || $status == 137 ]]; then
        echo "it was ended after 300 seconds, in which it said: $spoken" >>"$log"
    fi
    if [[ $status == 0 ]]; then
        printf 'passed  %-18s %s\n' "$name" "$spoken"
        passed=$((passed + 1))
    else
        printf 'FAILED  %s\n' "$name"
        sed 's/^/        /' "$log" >&2
        failed=$((failed + 1))
    fi
}

if [[ $which != eras ]]; then
    drive sdk1 node "$here/node/sdk1.mjs"
    drive mcp1 "$here/python/.venv1/bin/python" "$here/python/mcp1.py"
fi
if [[ $which != handshake ]]; then
    for mode in default auto auto-in-place pin; do
        drive "sdk2 $mode" node "$here/node/sdk2.mjs" "$mode"
    done
    for mode in auto legacy 2026-07-28; do
        drive "mcp2 $mode" "$here/python/.venv2/bin/python" "$here/python/mcp2.py" "$mode"
    done
    for mode in initialize auto discover; do
        drive "rmcp $mode" "$here/rmcp/target/debug/rmcp-client" "$mode"
    done
fi

if [[ $which != handshake && " ${server[*]} " != *" --executor "* ]]; then
    server+=(--executor "python3 '$here/../executor_client/executor.py'")
    drive "sdk2 executor" node "$here/node/sdk2.mjs" default
    drive "mcp2 executor" "$here/python/.venv2/bin/python" "$here/python/mcp2.py" auto
    drive "rmcp executor" "$here/rmcp/target/debug/rmcp-client" discover
    drive "mcp2 work" "$here/python/.venv2/bin/python" "$here/python/work.py"
fi

echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
