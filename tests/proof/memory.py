#!/usr/bin/env python3
"""Weighs the server under typical and under hostile traffic, each on a process of its own.

The peak is VmHWM and the resting size is VmRSS when it has settled after the traffic; both hold
the program itself and its libraries besides what the budget counts. The budget is worked out from
the table of limits in src/limits.md. The peak may be at most 48 MiB, and the resting size at most 1 MiB
above what it was after the handshake.

  memory.py -- target/release/rocco mcp
"""

import sys

import proof
from proof import Tally, opening, told_lines
from harness import Failed, HANDSHAKE, Server, ping, request

PEAK_KIB_MAX = 48 << 10
REST_KIB_MAX = 1 << 10
MIB = 1 << 20


def framed(head, unit, tail=b""):
    """A line of a mebibyte, filled with a unit."""
    return head + unit * ((MIB - len(head) - len(tail)) // len(unit)) + tail + b"\n"


def typical(count):
    """So many frames of the kind that a client sends, the handshake not counted."""
    kinds = [("ping", None), ("tools/list", None), ("tools/call", proof.call(proof.GOOD)),
             ("tools/call", proof.call(proof.BAD))]
    return b"".join(request(i, *kinds[i % 4]) for i in range(count))


def loads():
    """What is sent after the handshake, and how many lines answer it."""
    strings = b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"s":"'
    listing = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}'
    batch = b"[" + b",".join(listing % i for i in range(1024)) + b"]\n"
    wide = request(2, "tools/call", proof.call({"files": ["/" + "f" * 900] * 1100}))
    faults = request(2, "tools/call", proof.call({"files": [""] * 60_000}))
    ids = ["\u2028" * 349_000, "\u2028" * 10]
    return [
        ("5,002 frames with the handshake", typical(5000), 5000),
        ("200,000 pings", b"".join(ping(i) for i in range(200_000)), 200_000),
        ("1 MiB of [", framed(b"", b"[") * 8, 8),
        ("1 MiB of [ that close", (b"[" * (MIB // 2) + b"]" * (MIB // 2) + b"\n") * 8, 8),
        ("1 MiB of 1,", framed(b"[", b"1,", b"1]") * 8, 8),
        ('1 MiB of {"a":', framed(b"", b'{"a":') * 8, 8),
        ('1 MiB of {"a":1},', framed(strings[:-1] + b"[", b'{"a":1},', b"1]}}") * 8, 8),
        ("1 MiB of escapes", framed(strings, b"\\u2028", b'"}}') * 8, 8),
        ("one string of 1 MiB", framed(strings, b"s", b'"}}') * 8, 8),
        ("a goal of 1 MiB", framed(request(2, "tools/call", proof.call({"goal": ""}))[:-7], b"\\n",
                                  b'"}}}') * 8, 8),
        ("errors only", b"}\n" * 200_000, 200_000),
        ("unknown methods of 1 MiB", framed(b'{"jsonrpc":"2.0","id":2,"method":"', b"m", b'"}') * 8,
         8),
        ("1,024 lists in a batch", (opening("2025-03-26").data, batch * 4), (1, 4)),
        ("5,000 pings in a batch", (opening("2025-03-26").data,
                                    b"[" + b",".join([ping(3)[:-1]] * 5000) + b"]\n"), (1, 1)),
        ("ids of U+2028", b"".join(request(id, "ping") for id in ids * 8), 16),
        ("files of 1 MiB", wide * 8, 8),
        ("60,000 faults", faults * 8, 8),
        ("lines of 8 MiB", (b"x" * (8 * MIB) + b"\n") * 4, 4),
    ]


def weigh(argv, data, lines):
    """Start, peak and rest in KiB after some traffic."""
    with Server(argv, read=False) as server:
        proof.exchange(server, HANDSHAKE, 1)
        start = proof.settled_kib(server)
        parts = zip(data, lines) if isinstance(data, tuple) else [(data, lines)]
        for part, count in parts:
            proof.exchange(server, part, count)
        rest = proof.settled_kib(server)
        peak = server.peak_kib()
        last = told_lines(proof.exchange(server, ping(99), 1))
        if last != ["99 result"]:
            raise proof.Stuck(f"the ping behind it was answered with {last}")
        status = proof.ended(server)
        if status != 0:
            raise proof.Stuck(server.fate())
    return start, peak, rest


def weigh_unread(argv):
    """The same for a client that writes until nothing more is taken, and only then reads."""
    with Server(argv, read=False) as server:
        proof.exchange(server, HANDSHAKE, 1)
        start = proof.settled_kib(server)
        line, sent = request(5, "tools/list") + ping(6) * 9, 0
        try:
            while sent < 64 * MIB:
                server.send(line * 1000, 3)
                sent += len(line) * 1000
            raise proof.Stuck(f"it took {sent} bytes from a client that reads nothing")
        except Failed:
            pass  # it has stopped reading
        stuck = proof.settled_kib(server)
        server.close_stdin()
        # The last line may be cut, since the client was stopped in the midst of it.
        proof.exchange(server, b"", None)
        status = server.exit(proof.SILENCE_S)
        if status != 0:
            raise proof.Stuck(server.fate())
    return start, stuck


def main():
    options = proof.command_line(__doc__)
    tally = Tally()
    budget = proof.memory_budget_bytes(proof.table_of_limits()) // 1024
    print(f"budget of the limits: {budget} KiB; the peak may be {PEAK_KIB_MAX} KiB")
    print(f"{'traffic':<36}{'start':>8}{'peak':>8}{'rest':>8}  KiB")
    highest = highest_rest = 0
    for name, data, lines in loads():
        try:
            start, peak, rest = weigh(options.server, data, lines)
        except (proof.Stuck, OSError) as error:
            tally.note(f"memory, {name}", str(error))
            continue
        print(f"{name:<36}{start:>8}{peak:>8}{rest:>8}")
        highest, highest_rest = max(highest, peak), max(highest_rest, rest)
        over = []
        if peak > PEAK_KIB_MAX:
            over.append(f"a peak of {peak} KiB")
        if rest > start + REST_KIB_MAX:
            over.append(f"{rest} KiB at rest, where it began with {start}")
        tally.note(f"memory, {name}", " and ".join(over), f"peak {peak} KiB, rest {rest} KiB")
    try:
        start, stuck = weigh_unread(options.server)
        tally.note("memory, a client that never reads", stuck > PEAK_KIB_MAX and f"{stuck} KiB",
                   f"{stuck} KiB while it is stuck, {start} KiB before")
        highest = max(highest, stuck)
    except (proof.Stuck, OSError) as error:
        tally.note("memory, a client that never reads", str(error))
    print(f"highest peak {highest} KiB, highest rest {highest_rest} KiB, budget {budget} KiB")
    sys.exit(tally.end())


if __name__ == "__main__":
    main()
