#!/usr/bin/env bash
# Runs the tests of the engine under the address and leak sanitizer, and the quick unit tests of
# src/wire and src/mcp under miri: sanitizers.sh
#
# Both need a nightly toolchain, and miri the components miri and rust-src; where one is missing,
# that part says so and is skipped. Tests that start programs are left out.
set -euo pipefail
cd "$(dirname "$0")"

# shellcheck source=toolchain.sh
. ./toolchain.sh
need_nightly
cd ../..
target_dir=${CARGO_TARGET_DIR:-target}

echo "== address and leak sanitizer"
CARGO_TARGET_DIR="$target_dir/asan" RUSTFLAGS="-Zsanitizer=address" \
  ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1" \
  PROPTEST_CASES="${PROPTEST_CASES:-300}" \
  cargo "+$nightly" test --locked --target x86_64-unknown-linux-gnu \
  --lib --test library --test model --test drive --test properties

echo "== miri"
if ! has_component miri || ! has_component rust-src; then
  echo "skipped: rustup component add miri rust-src --toolchain $nightly"
  exit 0
fi
# Left out is what takes an interpreter minutes: filling buffers of mebibytes, and every place of
# every byte.
CARGO_TARGET_DIR="$target_dir/miri" MIRIFLAGS="-Zmiri-disable-isolation" \
  cargo "+$nightly" miri test --locked --lib -- wire:: mcp:: \
  --skip the_bound_is_exact --skip a_byte_order_mark_does_not_count --skip errors_fit_behind \
  --skip a_reply_that_overflows --skip a_long_remainder_is_moved --skip a_suspect_is_found_at_every_place
