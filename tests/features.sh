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

# The dependencies of tests are those of every combination. The program has the same name in each,
# and this one is kept for the corpus.
cargo test --locked --no-default-features --lib --test bare --test library --test transcripts
mkdir -p target/bare
cp target/debug/rocco target/bare/rocco
