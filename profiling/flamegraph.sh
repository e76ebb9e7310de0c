#!/usr/bin/env bash
# Draws a flame graph of a steady load from perf's samples.
#   profiling/flamegraph.sh [KIND [COUNT]]     kinds: see the example `steady`
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-tools_call} count=${2:-3000000} out=target/profiling inferno=0.12.8
mkdir -p "$out"
command -v perf >/dev/null || { echo "perf is not installed (Debian: linux-perf)" >&2; exit 1; }
if ! perf record --quiet --output "$out/perf.try" -- true >/dev/null 2>&1; then
  echo "perf may not record here: see /proc/sys/kernel/perf_event_paranoid" >&2
  exit 1
fi
if [ ! -x "$out/inferno/bin/inferno-flamegraph" ]; then
  cargo install --quiet --locked --root "$out/inferno" --version "$inferno" inferno
fi
cargo build --locked --quiet --profile bench --example steady
perf record --quiet --call-graph dwarf,16384 --freq 499 --output "$out/perf.$kind" -- \
  target/release/examples/steady "$kind" "$count" >/dev/null
perf script --input "$out/perf.$kind" 2>/dev/null |
  "$out/inferno/bin/inferno-collapse-perf" |
  "$out/inferno/bin/inferno-flamegraph" --title "rocco, $kind, in process" >"$out/$kind.svg"
echo "$out/$kind.svg"
