#!/usr/bin/env python3
"""Runs the server under valgrind's memcheck over the byte cases of tests/cases.

The stdin of many cases makes one session, a line end between each two. An invalid access, a use of
what was never set, and a leak are errors; so is a session that does not end with exit 0, and one
whose replies are not protocol.

  memcheck.py -- target/release/rocco mcp            a sample of the cases
  memcheck.py --all -- target/release/rocco mcp      all of them
"""

import glob
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import proof
from proof import Tally
import run as corpus  # tests/cases/run.py, which proof has made importable
from harness import Exact, messages, ping, short

CASES_MAX_BYTES = 4 << 20  # what is longer repeats itself, and memcheck is slow
SESSION_BYTES = 8 << 20
LAST = 987_654_321


def cases(whole, seed, share):
    """The input of each chosen case."""
    rng, found = random.Random(seed), []
    for path in sorted(glob.glob(os.path.join(os.path.dirname(corpus.__file__), "cases",
                                              "*.jsonl"))):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                data = corpus.bytes_of(json.loads(line, parse_int=Exact))
                if whole or rng.random() < share and len(data) <= CASES_MAX_BYTES:
                    found.append(data)
    return found


def sessions(inputs):
    """The inputs, joined to a few sessions."""
    joined, size = [[]], 0
    for data in inputs:
        if size + len(data) > SESSION_BYTES and joined[-1]:
            joined.append([])
            size = 0
        joined[-1].append(data)
        size += len(data)
    return joined


def check(argv, inputs, folder, at):
    """What memcheck says of one session, or nothing, and how many replies it had."""
    log = os.path.join(folder, f"log-{at}")
    data = b"\n".join(inputs) + b"\n" + ping(LAST)
    # cat, which writes to memory, never keeps the server waiting, as this process might that reads
    # other replies meanwhile, and as a disk might that others write to.
    with open(os.memfd_create(f"out-{at}"), "w+b") as file:
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file)
        done = subprocess.run(
            ["valgrind", "--error-exitcode=9", "--leak-check=full", f"--log-file={log}", *argv],
            input=data, stdout=reader.stdin, stderr=subprocess.PIPE)
        reader.stdin.close()
        reader.wait()
        file.seek(0)
        out = file.read()
    with open(log, errors="replace") as file:
        text = file.read()
    if done.returncode == 9:
        lines = [line.split("== ", 1)[-1].strip() for line in text.splitlines()]
        told = [line for line in lines
                if line.startswith(("Invalid", "Conditional", "Use of", "Syscall param"))
                or "definitely lost in" in line or "possibly lost in" in line]
        return f"memcheck: {'; '.join(told[:3]) or lines[-1]}", 0
    if done.returncode:
        return f"exit {done.returncode}, stderr: {short(done.stderr)}", 0
    if "ERROR SUMMARY: 0 errors" not in text:
        return f"memcheck gave no summary: {short(text[-200:])}", 0
    found, faults = messages(out, arrays=True, notes=True)
    if faults:
        return f"stdout: {faults[0]}", 0
    if not found or found[-1].get("id") != LAST:
        return "the last ping was not answered", 0
    return "", len(found)


def main():
    options = proof.command_line(__doc__, lambda parser: (
        parser.add_argument("--all", action="store_true"),
        parser.add_argument("--seed", type=int, default=1, help="decides the sample"),
        parser.add_argument("--share", type=float, default=0.4, metavar="F",
                            help="how much of the cases the sample holds")))
    proof.needs("valgrind", "ROCCO_REQUIRE_VALGRIND")
    tally = Tally()
    inputs = cases(options.all, options.seed, options.share)
    joined = sessions(inputs)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(check, options.server, part, folder, at)
                for at, part in enumerate(joined)]
        for at, (part, run) in enumerate(zip(joined, runs), 1):
            try:
                wrong, replies = run.result()
            except OSError as error:
                wrong, replies = str(error), 0
            tally.note(f"memcheck, session {at} of {len(joined)}", wrong,
                       f"{len(part)} cases, {sum(map(len, part))} bytes, {replies} replies")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
