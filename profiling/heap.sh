#!/usr/bin/env bash
# Shows what a steady load claims from the heap, by valgrind's dhat: all of it at the start, and
# nothing for a frame.
#   profiling/heap.sh [KIND [COUNT]]           kinds: see the example `steady`
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-tools_call} count=${2:-20000} out=target/profiling
mkdir -p "$out"
command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
cargo build --locked --quiet --profile bench --example steady
for frames in 1 "$count"; do
  echo "$frames frames of $kind:"
  valgrind --tool=dhat --dhat-out-file="$out/dhat.$kind.$frames" \
    target/release/examples/steady "$kind" "$frames" 2>&1 |
    grep -E 'Total:|At t-gmax:|At t-end:' | sed 's/^==[0-9]*== /  /'
done
echo "whole record: $out/dhat.$kind.$count (dh_view.html of valgrind)"
