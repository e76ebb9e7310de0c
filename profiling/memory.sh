#!/usr/bin/env bash
# Shows the memory budget of src/limits.rs, term by term, beside the high-water marks of the real
# program under typical and under hostile traffic.
#   profiling/memory.sh
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --locked --quiet --release
python3 - <<'PY'
import sys

sys.path.insert(0, "tests/proof")
import proof

limits = proof.table_of_limits()
per_byte = limits["PARSER_BYTES_PER_FRAME_BYTE"]
terms = [
    ("the ring", limits["RING_BYTES"] + limits["FRAME_PADDING_BYTES"]),
    ("the outbox", limits["OUTBOX_BYTES"]),
    ("parsing the longest frame", limits["FRAME_BYTES_MAX"] * per_byte),
    ("the parser's warm buffers", limits["FRAME_BYTES_WARM"] * per_byte),
    ("the arena", limits["ARENA_BYTES_MAX"]),
    ("an executor's ring", limits["EXECUTOR_RING_BYTES"] + limits["FRAME_PADDING_BYTES"]),
    ("lines it has not answered", limits["EXECUTOR_UNANSWERED_BYTES_MAX"]),
    ("a line that is written to it", limits["EXECUTOR_LINE_BYTES_MAX"]),
    ("the warm buffers for its lines", limits["FRAME_BYTES_WARM"] * per_byte),
]
assert sum(size for _, size in terms) == proof.memory_budget_bytes(limits)
for name, size in terms:
    print(f"{size / 1024:>10.0f} KiB  {name}")
print(f"{proof.memory_budget_bytes(limits) / 1024:>10.0f} KiB  in all, the program itself not counted")
PY
python3 tests/proof/memory.py -- target/release/rocco mcp
