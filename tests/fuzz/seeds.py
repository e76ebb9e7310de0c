#!/usr/bin/env python3
"""Makes the seeds of the fuzz targets anew from tests/transcripts and tests/cases: seeds.py.

A seed is named by its content, so that a second run changes nothing. The seeds are small on
purpose: a fuzzer makes long inputs of short ones by itself.
"""

import glob
import hashlib
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TESTS, "cases"))

import run  # noqa: E402

SEED_BYTES_MAX = 600
SESSION_BYTES_MAX = 4000
TARGET_BYTES_MAX = 45_000


def transcripts():
    """What the client of each transcript says, line by line."""
    for path in sorted(glob.glob(os.path.join(TESTS, "transcripts", "*.txt"))):
        with open(path, "rb") as file:
            yield [line[2:].rstrip(b"\n") for line in file if line.startswith(b"> ")]


def cases():
    """The bytes of each case that is small."""
    for path in sorted(glob.glob(os.path.join(TESTS, "cases", "cases", "*.jsonl"))):
        with open(path, encoding="utf-8") as file:
            for line in file:
                data = run.bytes_of(json.loads(line))
                if len(data) <= SESSION_BYTES_MAX:
                    yield data


def texts(values):
    """Every string in JSON values, names of members too."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from texts(value.keys())
            yield from texts(value.values())
        elif isinstance(value, list):
            yield from texts(value)


def values(lines):
    for line in lines:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            pass


def arguments(messages):
    """The arguments of the calls of a task."""
    for message in messages:
        params = message.get("params") if isinstance(message, dict) else None
        if isinstance(params, dict) and params.get("name") == "larry_submit_task":
            yield json.dumps(params.get("arguments"), separators=(",", ":")).encode("utf-8")


def write(target, seeds):
    """As many of the seeds as fit, the short ones first, spread over all lengths."""
    folder = os.path.join(HERE, "seeds", target)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    seeds = sorted(set(seeds), key=lambda seed: (len(seed), seed))
    step = max(1, -(-sum(map(len, seeds)) // TARGET_BYTES_MAX))
    for seed in seeds[::step]:
        name = hashlib.sha256(seed).hexdigest()[:16]
        with open(os.path.join(folder, name), "wb") as file:
            file.write(seed)
    kept = seeds[::step]
    print(f"{target}: {len(kept)} seeds, {sum(map(len, kept))} bytes")


def main():
    sessions = [b"".join(line + b"\n" for line in lines) for lines in transcripts()]
    small = [session for session in sessions if len(session) <= SESSION_BYTES_MAX]
    bytes_of_cases = list(cases())
    said = [line for lines in transcripts() for line in lines]
    said += [line for data in bytes_of_cases for line in data.split(b"\n")]
    said = [line for line in said if 0 < len(line) <= SEED_BYTES_MAX]
    messages = list(values(said))
    framed = [data for data in bytes_of_cases if len(data) <= 160]
    write("framer", framed + [b"\xfe\xfe\n", b"\xfe\xfea\nb", b"\xfe\xfe\xfe\n\xfea"])
    write("parser", said)
    write("message", [line for line in said if line.lstrip().startswith(b"{")])
    texts_said = [text.encode("utf-8", "surrogatepass") for text in texts(messages)]
    write("writer", texts_said)
    write("session", small + [data for data in bytes_of_cases if len(data) <= 1500])
    write("task", list(arguments(messages)))


if __name__ == "__main__":
    main()
