#!/usr/bin/env bash
# Drives a server through what hosts make of its tools before their models see them.
#
#   run.sh -- SERVER ARGS...
#
# google-genai, openai-agents in its strict mode, the grammars of llama.cpp, and the AI SDK with its
# MCP client and zod convert the schemas of the tools. Each has to take every tool with all of its
# arguments, and a valid call is made through each conversion: without an executor, and with
# tests/executor_client/executor.py, which does the task. Prints one line for each and the sum, and
# exits with 1 when one failed.
#
# It needs Node 20, Python 3.11, the package registries and 400 MB. What it installs goes into this
# directory and is kept for the next run. Of llama.cpp the source of its Python package is loaded,
# and one file of that is run: nothing is built.
#
# To try newer versions: change package.json, and
#
#   npm install --package-lock-only --omit-lockfile-registry-resolved
#
# and likewise the lists for Python.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} != -- || $# -lt 2 ]]; then
    echo "usage: run.sh -- SERVER ARGS..." >&2
    exit 2
fi
shift
server=("$@")

. "$here/../install.sh"

install_python() {
    python3 -m venv --clear "$here/.venv"
    "$here/.venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
}

# Its metadata needs the tools of a build, and nothing else of it does.
install_grammars() {
    local source
    rm -rf "$here/.grammars" && mkdir "$here/.grammars"
    "$here/.venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
        --require-hashes -r "$here/grammars.txt" -d "$here/.grammars"
    source=$(echo "$here"/.grammars/*.tar.gz)
    tar -xzf "$source" -C "$here/.grammars" --strip-components=2 --wildcards \
        '*/llama_cpp/llama_grammar.py'
    rm "$source"
}

install "$here/package-lock.json" "$here/node_modules/.installed" \
    npm ci --prefix "$here" --ignore-scripts --no-audit --no-fund --loglevel=error
install "$here/requirements.txt" "$here/.venv/.installed" install_python
install "$here/grammars.txt" "$here/.grammars/.installed" install_grammars

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0
failed=0

# Runs one host, which is ended when it hangs.
# usage: drive NAME COMMAND...
drive() {
    local name=$1 said status=0
    shift
    said=$(timeout --kill-after=10 120 "$@" -- "${server[@]}" 2>"$log") || status=$?
    if [[ $status == 0 ]]; then
        printf 'passed  %-18s %s\n' "$name" "$said"
        passed=$((passed + 1))
    else
        printf 'FAILED  %-18s exit code %s\n' "$name" "$status"
        sed 's/^/        /' "$log" >&2
        failed=$((failed + 1))
    fi
}

drive_all() {
    local host
    for host in google openai grammars; do
        drive "$host$1" "$here/.venv/bin/python" "$here/hosts.py" "$host"
    done
    drive "ai$1" node "$here/ai.mjs"
}

drive_all ''
server+=(--executor "python3 '$here/../../executor_client/executor.py'")
drive_all ' executor'

echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
