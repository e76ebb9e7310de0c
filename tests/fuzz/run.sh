#!/usr/bin/env bash
# Fuzzes each target for SECONDS: run.sh SECONDS [TARGET...]
#
# It needs a nightly toolchain and cargo-fuzz (cargo install cargo-fuzz), and says so and does
# nothing where one is missing. What it finds is left in artifacts/TARGET; such a file, put under
# ../properties/kept/TARGET, is tried by the property tests for ever.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:?usage: run.sh SECONDS [TARGET...]}
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(framer parser message writer session task)

# shellcheck source=toolchain.sh
. ./toolchain.sh
need_nightly
if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "skipped: cargo-fuzz is not installed"
  exit 0
fi

# An engine claims mebibytes; to keep many of them aside after use costs more than all else.
export ASAN_OPTIONS="quarantine_size_mb=4:${ASAN_OPTIONS:-}"
# cargo-fuzz takes no CARGO_TARGET_DIR, but is told where.
target_dir=${CARGO_TARGET_DIR:-target}
for target in "${targets[@]}"; do
  mkdir -p "corpus/$target" "artifacts/$target"
  cargo "+$nightly" fuzz build --fuzz-dir . --target-dir "$target_dir" "$target"
done
for target in "${targets[@]}"; do
  echo "== $target for $seconds s"
  log="artifacts/$target.log"
  if ! cargo "+$nightly" fuzz run --fuzz-dir . --target-dir "$target_dir" "$target" \
    "corpus/$target" "seeds/$target" -- \
    -max_total_time="$seconds" -dict=dictionary -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -verbosity=1 >"$log" 2>&1; then
    tail -n 40 "$log"
    echo "$target failed: see $log"
    exit 1
  fi
  grep -E '^(Done|stat::number_of_executed_units|stat::average|stat::peak)|DONE ' "$log"
done
