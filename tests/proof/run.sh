#!/usr/bin/env bash
# Runs every proof against one server: run.sh [--long] -- SERVER ARGS...
# One line per check, and last "N passed, M failed"; exit 0 only if none failed. What needs strace
# or valgrind is skipped with a word where they are missing, unless ROCCO_REQUIRE_STRACE or
# ROCCO_REQUIRE_VALGRIND is set.
set -uo pipefail

usage() {
  cat <<'TEXT'
usage: run.sh [--long] -- SERVER ARGS...
  processes.py   a hundred sessions at once, some of them killed or orphaned
  faults.py      system calls that fail, and short counts
  memory.py      peak and rest under typical and hostile traffic
  soak.py        many frames, every byte of the answers compared
  linear.py      instructions for each byte, at n and at 2n bytes
  memcheck.py    valgrind over the byte cases of tests/cases
--long takes about half an hour: 20 rounds of processes, each error at each time that a call is
made, 10 million frames, all byte cases. Each script has a --help and can be run by itself.
TEXT
}

here="$(cd "$(dirname "$0")" && pwd)"
long=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case "$1" in
    --long) long=1 ;;
    --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
if [ $# -lt 2 ]; then
  usage >&2
  exit 2
fi
shift

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
passed=0 failed=0

# Runs one script and adds its tally. One that ends without a tally has failed.
prove() {
  local script="$1" from tally
  shift
  from=$SECONDS
  echo "== $script"
  python3 "$here/$script" "$@" 2>&1 | tee "$log" | grep -v '^[0-9]* passed, [0-9]* failed$'
  tally="$(grep '^[0-9]* passed, [0-9]* failed$' "$log" | tail -1)"
  if [ -z "$tally" ]; then
    echo "FAILED $script: it ended without a tally"
    tally="0 passed, 1 failed"
  fi
  set -- $tally
  passed=$((passed + $1)) failed=$((failed + $3))
  echo "   $((SECONDS - from)) s"
}

prove processes.py ${long:+--rounds 20} -- "$@"
prove faults.py ${long:+--long} -- "$@"
prove memory.py -- "$@"
if [ -n "$long" ]; then
  prove soak.py --frames 10000000 -- "$@"
  prove linear.py --bytes 400000 -- "$@"
  prove memcheck.py --all -- "$@"
else
  prove soak.py --frames 300000 -- "$@"
  prove linear.py -- "$@"
  prove memcheck.py -- "$@"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
