#!/usr/bin/env python3
"""Counts instructions on the worst shapes of input, at n and at 2n bytes.

callgrind counts what the server executes from its start to its end; what an empty session takes is
subtracted. Bytes doubled may cost at most 2.1 times the instructions, and no shape more than
an absolute bound for each byte. Counts do not depend on what else the machine does.

  linear.py -- target/release/rocco mcp
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import proof
from proof import Tally, opening
from harness import HANDSHAKE, ping, request

RATIO_MAX = 2.1
PER_BYTE_MAX = 800  # a line of one byte gets an error reply of its own
BASE_BYTES = 200_000
PING = b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":'


def frame(unit, size, head=PING + b"[", tail=b"0]}}\n"):
    """One line of about this size, filled with a unit."""
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def members(size, width=7, value="1"):
    """An object with many names, each once."""
    one = f'"%0{width}d":{value},'
    count = size // len(one % 0)
    return PING + b"{" + "".join(one % i for i in range(count)).encode() + b'"z":0}}}\n'


def tool(arguments, size, unit):
    """A call with a list that fills the size."""
    text = request(2, "tools/call", proof.call({**arguments, "files": []}))
    head, tail = text.rsplit(b"[]", 1)
    return head + b"[" + b",".join(unit(i) for i in range(size // (len(unit(0)) + 1))) + b"]" + tail


def batch(size, open_as):
    one = ping(2)[:-1]
    return opening(open_as).data + b"[" + b",".join([one] * (size // (len(one) + 1))) + b"]\n"


STRING = PING + b'"'
SHAPES = {
    "nesting, [": lambda n: b"[" * n + b"\n",
    "nesting, [ that close": lambda n: b"[" * (n // 2) + b"]" * (n // 2) + b"\n",
    'nesting, {"a":': lambda n: frame(b'{"a":', n, b"", b"\n"),
    "nesting to the bound, again and again": lambda n: frame(
        b"[" * 1000 + b"]" * 1000 + b",", n),
    "a wide array": lambda n: frame(b"0,", n),
    "a wide array of objects": lambda n: frame(b"{},", n),
    "many members": members,
    "the same member": lambda n: frame(b'"a":1,', n, PING + b"{", b'"b":0}}}\n'),
    "many params": lambda n: members(n).replace(b'"params":{"x":{', b'"params":{', 1)
    .replace(b"}}}\n", b"}}\n"),
    "many members of the message": lambda n: members(n).replace(
        b'"params":{"x":{', b"", 1).replace(b"}}}\n", b"}\n"),
    "long names": lambda n: members(n, 4000),
    "escapes": lambda n: frame(b"\\n", n, STRING, b'"}}\n'),
    "escapes of six": lambda n: frame(b"\\u2028", n, STRING, b'"}}\n'),
    "one string": lambda n: frame(b"s", n, STRING, b'"}}\n'),
    "one string of UTF-8": lambda n: frame("\u2028".encode(), n, STRING, b'"}}\n'),
    "long numbers": lambda n: frame(b"1234567890123456789,", n),
    "one number": lambda n: frame(b"7", n, PING + b"0.", b"}}\n"),
    "numbers with exponents": lambda n: frame(b"1.7976931348623157e308,", n),
    "one id": lambda n: frame("\u2028".encode(), n, b'{"jsonrpc":"2.0","method":"ping","id":"',
                              b'"}\n'),
    "one method": lambda n: frame(b"\\u0001", n, b'{"jsonrpc":"2.0","id":2,"method":"', b'"}\n'),
    "blank lines": lambda n: b"\n" * n,
    "blank lines of spaces": lambda n: b" \r\n" * (n // 3),
    "spaces in one line": lambda n: frame(b" ", n),
    "garbage": lambda n: b"}\n" * (n // 2),
    "pings": lambda n: ping(2) * (n // len(ping(2))),
    "a line over the bound": lambda n: b"x" * (n + (1 << 20)) + b"\n",
    "a batch that is refused": lambda n: batch(n, "2025-11-25"),
    "a batch with too many messages": lambda n: batch(n, "2025-03-26"),
    "many files": lambda n: tool(proof.GOOD, n, lambda i: b'"f%06d"' % i),
    "long files": lambda n: tool(proof.GOOD, n, lambda i: b'"%04000d"' % i),
    "many faults": lambda n: tool(proof.BAD, n, lambda i: b'""'),
    "files given twice": lambda n: tool(proof.GOOD, n, lambda i: b'"same"'),
    "unknown arguments": lambda n: request(2, "tools/call", proof.call(
        {f"{i:06}": 0 for i in range(n // 11)})),
}


def count(argv, data, folder, name):
    """The instructions of one session."""
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    with open(path, "rb") as stdin:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *argv],
            stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    os.unlink(path)
    found = re.search(rb"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        raise OSError(f"exit {done.returncode}: {done.stderr[-200:]!r}")
    return int(found[1])


def weigh(argv, folder, at, shape, size, empty):
    """Bytes and instructions at the two sizes."""
    figures = []
    for times in (1, 2):
        data = shape(size * times)
        used = count(argv, HANDSHAKE + data, folder, f"{at}-{times}") - empty
        figures.append((len(data), used))
    return figures


def main():
    options = proof.command_line(__doc__, lambda parser: (
        parser.add_argument("--bytes", type=int, default=BASE_BYTES, metavar="N",
                            help="the smaller of the two sizes"),
        parser.add_argument("--only", default="", metavar="WORD")))
    proof.needs("valgrind", "ROCCO_REQUIRE_VALGRIND")
    tally, worst = Tally(), 0.0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        try:
            empty = count(options.server, HANDSHAKE, folder, "empty")
        except OSError as error:
            tally.note("a session under callgrind", str(error))
            return tally.end()
        runs = [(name, pool.submit(weigh, options.server, folder, at, shape, options.bytes, empty))
                for at, (name, shape) in enumerate(SHAPES.items()) if options.only in name]
        for name, run in runs:
            try:
                (small, used), (large, more) = run.result()
            except OSError as error:
                tally.note(f"linear, {name}", str(error))
                continue
            # A shape cannot always be twice as long to the byte.
            ratio = 2 * (more / large) / max(used / small, 1e-9)
            each = more / large
            worst = max(worst, each)
            wrong = []
            if ratio > RATIO_MAX:
                wrong.append(f"bytes doubled, {ratio:.2f} times the work")
            if each > PER_BYTE_MAX:
                wrong.append("too much work for a byte")
            figures = f"{each:.2f} instructions a byte, {ratio:.2f} times for twice the bytes"
            tally.note(f"linear, {name}", wrong and f"{' and '.join(wrong)} ({figures})", figures)
    print(f"worst: {worst:.1f} instructions a byte")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
