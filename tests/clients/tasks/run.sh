#!/usr/bin/env bash
# Drives a server with a real AI client that follows tasks by the tasks extension.
#
#   run.sh [SCENARIO...] -- SERVER ARGS...
#   run.sh agent -- ROCCO
#
# The client is Claude Code, in its interactive mode, in a pseudo-terminal. The
# model that it talks to is a mock on loopback (model.py), the executor is one
# that ends tasks as their goal says (executor.py), and record.py notes down what
# the client and the server say to each other. check.py has the scenarios and
# what is demanded of each; all are played if none is named. Prints one line for
# each and the sum, and exits with 1 when one failed: what was recorded of that
# one is kept, and it is said where. No account is needed, and nothing but the
# installation leaves the machine.
#
# The second form has the same program, and Codex, as the agent of `rocco executor`
# within both walls, with the same mock of their models: agent.py says what is
# demanded of them.
#
# It needs Node 20, Python 3.9, Linux on x86-64 or arm64, the package registry,
# and 800 MB for the programs, which is why .ci/run does without it. What it
# installs goes into this directory and is kept for the next run.
#
# To try a newer version: change package.json, and
#
#   npm install --package-lock-only --omit-lockfile-registry-resolved
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if ! cmp -s "$here/package-lock.json" "$here/node_modules/.installed"; then
    npm ci --prefix "$here" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    cp "$here/package-lock.json" "$here/node_modules/.installed"
fi

if [ "${1:-}" = agent ]; then
    shift
    exec python3 "$here/agent.py" "$@"
fi
exec python3 "$here/check.py" "$@"
