#!/usr/bin/env python3
"""Feeds a server millions of frames and compares every byte that it answers.

The traffic is made of blocks that repeat: typical frames of all revisions, and after every fiftieth
of those a block of hostile ones. The first answer to a block is read line by line against what each
frame is owed; every later one must be the same to the byte. After each tenth the server comes to
rest, and its resident memory must be within 256 KiB of what it was after the first.

  soak.py --frames 10000000 -- target/release/rocco mcp
"""

import fcntl
import os
import random
import select
import sys
import threading
import time

import proof
from proof import Item, Tally, difference, input_of, opening, told, traffic, wants_of
from harness import Server, ping, short

BLOCK_FRAMES = 400
HOSTILE_EVERY = 50
GROWTH_KIB = 256
MIB = 1 << 20


def hostile_items():
    """Frames that a peer may send to do harm, and the one reply that each is owed."""
    refused = ["none error -32700", "none error -32600"]
    return [
        opening("2025-11-25"),
        Item(b"[" * MIB + b"\n", refused[0]),
        Item(b"1," * (MIB // 2) + b"\n", refused[0]),
        Item(b'{"a":' * 40_000 + b"\n", refused[0]),
        Item(b'{"jsonrpc":"2.0","id":2,"method":"ping","params":{"s":"'
             + b"\\u2028" * 40_000 + b'"}}\n', "2 result"),
        Item(b'{"jsonrpc":"2.0","id":3,"method":"ping","params":{"s":"' + b"s" * 900_000
             + b'"}}\n', "3 result"),
        Item(b"x" * (MIB + 1) + b"\n", refused[1]),
        Item(b'{"jsonrpc":"2.0","id":4,"id":4,"method":"ping"}\n', refused[1]),
        Item(b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', refused[1]),
        Item(b"\xff\xfe{}\n", refused[0]),
        Item(b"[]\n", refused[1]),
        Item(b"[" + b",".join([ping(1)[:-1]] * 5000) + b"]\n", refused[1]),
        proof.one("\u2028" * 20_000, "ping", "result"),
        proof.one(5, "tools/call", "result", proof.call({"files": [""] * 1024})),
    ] + [Item(b"}\n", refused[0])] * 200


class Block:
    """A run of frames that is sent again and again."""

    def __init__(self, items):
        self.data, self.want = input_of(items), wants_of(items)
        self.frames = sum(item.data.count(b"\n") for item in items)
        self.answer = None  # what the first time brought


def plan(seed, frames):
    """The blocks in the order in which they are sent."""
    rng = random.Random(seed)
    typical = [Block(traffic(rng, revision, BLOCK_FRAMES)) for revision in proof.REVISIONS]
    hostile = Block(hostile_items())
    order = []
    while frames > 0:
        block = typical[len(order) % 5] if len(order) % HOSTILE_EVERY else hostile
        order.append(block)
        frames -= block.frames
    return order


class Reader:
    """Reads stdout and holds it against the blocks. `fault` says what was wrong."""

    def __init__(self, server):
        self.server, self.buffer, self.fault = server, b"", ""
        self.replies = self.lost = self.stray_bytes = self.bytes = 0

    def more(self):
        if not select.select([self.server.read_fd], [], [], proof.SILENCE_S)[0]:
            self.fault = self.fault or f"no byte came for {proof.SILENCE_S} s"
            return b""
        chunk = os.read(self.server.read_fd, MIB)
        if not chunk:
            self.fault = self.fault or f"stdout ended, {self.server.fate()}"
        self.bytes += len(chunk)
        return chunk

    def block(self, block):
        """Takes in the answer to one block; whether it was right."""
        if block.answer is None:
            return self.lines(block)
        at, answer = 0, block.answer
        while True:
            piece = self.buffer[: len(answer) - at]
            if piece != answer[at : at + len(piece)]:
                self.buffer = answer[:at] + self.buffer
                return self.lines(block)
            at += len(piece)
            self.buffer = self.buffer[len(piece) :]
            if at == len(answer):
                self.replies += len(block.want)
                return True
            self.buffer = self.more()
            if not self.buffer:
                self.buffer = answer[:at]
                return self.lines(block)

    def lines(self, block):
        """As many lines as the block is owed, each looked at."""
        while self.buffer.count(b"\n") < len(block.want):
            chunk = self.more()
            if not chunk:
                break
            self.buffer += chunk
        lines = self.buffer.split(b"\n", len(block.want))
        rest = lines.pop()
        came = [told(line) for line in lines]
        stray = [len(line) + 1 for line, word in zip(lines, came) if word.startswith("not protocol")]
        wrong = difference(block.want, came)
        if not wrong and block.answer is None:
            block.answer = self.buffer[: len(self.buffer) - len(rest)]
        elif not wrong and not self.fault:
            wrong = "the answer to a block that was sent before has changed"
        self.fault = self.fault or wrong
        self.stray_bytes += sum(stray)
        self.replies += len(came) - len(stray)
        self.lost += len(block.want) - len(came) + len(stray)
        self.buffer = rest
        return not self.fault


def soak(argv, order, tally):
    with Server(argv, read=False) as server:
        for fd in (server.write_fd, server.read_fd):
            try:
                fcntl.fcntl(fd, proof.F_SETPIPE_SZ, MIB)
            except OSError:
                pass  # the user's share of large pipes is used up, and small ones do as well
        os.set_blocking(server.write_fd, True)
        reader, resting, busy_s, sent = Reader(server), [], 0.0, 0

        def write(blocks):
            try:
                for block in blocks:
                    view = memoryview(block.data)
                    while view:
                        view = view[os.write(server.write_fd, view) :]
            except OSError:
                pass  # it is gone, and the reader sees that

        for tenth in range(10):
            part = order[len(order) * tenth // 10 : len(order) * (tenth + 1) // 10]
            if not part:
                continue
            writer = threading.Thread(target=write, args=(part,), daemon=True)
            start = time.monotonic()
            writer.start()
            good = all(reader.block(block) for block in part)
            busy_s += time.monotonic() - start
            sent += sum(block.frames for block in part)
            if not good:
                break
            writer.join()
            resting.append(proof.settled_kib(server))
        peak = server.peak_kib()
        if reader.fault:
            server.signal(9)
            server.exit()
        tally.note("every frame is answered once, in order, to the byte",
                   reader.fault and f"{reader.fault}; {reader.lost} replies lost in that block",
                   f"{sent} frames, {reader.replies} replies, {reader.lost} lost, "
                   f"{reader.bytes} bytes of stdout")
        tally.note("stdout holds protocol alone",
                   reader.stray_bytes and f"{reader.stray_bytes} bytes were not protocol",
                   "0 bytes that were not protocol")
        grown = max(resting, default=0) - (resting or [0])[0]
        tally.note("memory is flat", (grown > GROWTH_KIB or len(resting) < 2)
                   and f"{grown} KiB more at rest: {resting} KiB",
                   f"at rest {resting[0] if resting else 0} KiB, {grown} KiB more at most, "
                   f"peak {peak} KiB")
        rate = sent / busy_s if busy_s else 0
        status = proof.ended(server)
        tally.note("it ends with the input", (status != 0 or server.err)
                   and f"{server.fate()}, {short(bytes(server.err))}",
                   f"{rate:,.0f} frames a second")


def main():
    options = proof.command_line(__doc__, lambda parser: (
        parser.add_argument("--frames", type=int, default=300_000, metavar="N"),
        parser.add_argument("--seed", type=int, default=1, help="decides the typical traffic")))
    tally = Tally()
    try:
        soak(options.server, plan(options.seed, options.frames), tally)
    except OSError as error:
        tally.note("the server can be started", str(error))
    sys.exit(tally.end())


if __name__ == "__main__":
    main()
