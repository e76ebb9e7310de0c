#!/usr/bin/env bash
# Shows where the instructions of a steady load go, function by function.
#   profiling/callgrind.sh [KIND [COUNT]]      kinds: see the example `steady`
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-tools_call} count=${2:-20000} out=target/profiling
mkdir -p "$out"
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
# The profile of the benches is that of a release, with symbols.
cargo build --locked --quiet --profile bench --example steady
valgrind --tool=callgrind --callgrind-out-file="$out/callgrind.$kind" \
  target/release/examples/steady "$kind" "$count" > "$out/said" 2>&1 || { cat "$out/said" >&2; exit 1; }
grep Collected "$out/said"
callgrind_annotate "$out/callgrind.$kind" 2>/dev/null | grep -E '^ *[0-9,]+ \(' | sed -n 1,25p
echo "whole record: $out/callgrind.$kind (callgrind_annotate, kcachegrind)"
