#!/usr/bin/env bash
# Each combination of features builds without a warning and within its number of crates, and the
# smallest one serves.
set -euo pipefail
cd "$(dirname "$0")/.."

combination() {
  local crates_max=$1 crates
  shift
  crates=$(cargo tree --locked -e normal --prefix none "$@" | sed 's/ (.*//' | sort -u | wc -l)
  echo "$crates crates of $crates_max: ${*:-default features}"
  [ "$crates" -le "$crates_max" ]
  cargo clippy --locked --all-targets "$@" -- -D warnings
}

combination 20 --no-default-features
combination 40 --no-default-features --features cli
combination 60

# In a directory of its own, since the program has the same name in each combination.
cargo test --locked --no-default-features --target-dir target/bare \
  --lib --test bare --test library --test transcripts
# What takes long is memory and backpressure, which are the library's and the same in every build.
tests/cases/run.py --skip 'mem-*' --skip 'flow-*' -- target/bare/debug/rocco mcp
