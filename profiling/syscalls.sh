#!/usr/bin/env bash
# Counts the system calls of the real program over a session of pings, one in flight, by name.
#   profiling/syscalls.sh [COUNT]
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-1000} out=target/profiling
mkdir -p "$out"
command -v strace >/dev/null || { echo "strace is not installed" >&2; exit 1; }
cargo build --locked --quiet --release
python3 - "$count" "$out/syscalls" <<'PY'
import collections, re, subprocess, sys

count, trace = int(sys.argv[1]), sys.argv[2]
server = subprocess.Popen(
    ["strace", "-f", "-qq", "-e", "signal=none", "-o", trace, "target/release/rocco", "mcp"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for _ in range(count):
    server.stdin.write(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n')
    server.stdin.flush()
    assert server.stdout.readline().endswith(b'"result":{}}\n')
server.stdin.close()
assert server.wait() == 0
with open(trace) as file:
    names = collections.Counter(re.findall(r"^\d+ +(\w+)\(", file.read(), re.M))
for name, times in names.most_common():
    print(f"{times:>8}  {times / count:>7.3f} a request  {name}")
PY
