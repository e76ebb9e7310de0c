#!/usr/bin/env bash
# Reports which lines of src/ the tests reach: coverage.sh
#
# Instruments the stable build, runs the cargo tests and then the case corpus against the program,
# and prints a table of files with the lines that nothing reached. Lines of unit tests do not count.
# It needs the llvm-tools component of the toolchain, and says so where it is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=$(echo "$(rustc --print sysroot)"/lib/rustlib/*/bin)
if ! [ -x "$tools/llvm-profdata" ] || ! [ -x "$tools/llvm-cov" ]; then
  echo "skipped: rustup component add llvm-tools"
  exit 0
fi

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/coverage"
export RUSTFLAGS="-C instrument-coverage"
mkdir -p "$CARGO_TARGET_DIR"
profiles="$(cd "$CARGO_TARGET_DIR" && pwd)/profiles"
rm -rf "$profiles"
# Programs of one kind share a few files, since the corpus starts many hundreds.
export LLVM_PROFILE_FILE="$profiles/%4m.profraw"

# The corpus is run below, and what counts system calls would count those of the profile.
tests=(--lib --bins)
for file in tests/*.rs; do
  name=$(basename "$file" .rs)
  case $name in cases | syscalls | alloc | licences) ;; *) tests+=(--test "$name") ;; esac
done
programs=$(cargo test --locked --no-run "${tests[@]}" 2>&1 | tee /dev/stderr |
  sed -n 's/.*Executable.*(\(.*\))$/\1/p')
cargo test --locked --no-fail-fast "${tests[@]}" || echo "some tests failed under instruments"
program="$CARGO_TARGET_DIR/debug/rocco"
tests/cases/run.py --slow 3 -- "$program" mcp || echo "some cases failed under instruments"

"$tools/llvm-profdata" merge -sparse --failure-mode=all "$profiles"/*.profraw \
  -o "$profiles/all.profdata"
objects=()
for object in $programs; do objects+=(-object "$object"); done
"$tools/llvm-cov" export -format=lcov -instr-profile "$profiles/all.profdata" "$program" \
  "${objects[@]}" -sources src >"$profiles/lcov.info"
python3 tests/fuzz/coverage.py "$profiles/lcov.info"
