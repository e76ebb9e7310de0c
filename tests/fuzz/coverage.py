#!/usr/bin/env python3
"""Prints the coverage of src/ as a table, without the lines of unit tests: coverage.py LCOV."""

import os
import sys


def counts(path):
    """How often each line of each file was reached."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            kind, _, rest = line.strip().partition(":")
            if kind == "SF":
                lines = found.setdefault(os.path.relpath(rest), {})
            elif kind == "DA":
                number, count = map(int, rest.split(",")[:2])
                lines[number] = max(lines.get(number, 0), count)
    return found


def production(path, lines):
    """The lines before the unit tests of a file."""
    with open(path, encoding="utf-8") as file:
        text = file.read().split("#[cfg(test)]\nmod tests", 1)[0]
    last = text.count("\n")
    return {number: count for number, count in lines.items() if number <= last}


def ranges(numbers):
    """Numbers as text, with neighbours taken together."""
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def main():
    total = reached = 0
    print("| file | lines | reached | not reached |")
    print("|---|---|---|---|")
    for path, lines in sorted(counts(sys.argv[1]).items()):
        lines = production(path, lines)
        missed = [number for number, count in lines.items() if count == 0]
        total += len(lines)
        reached += len(lines) - len(missed)
        if lines:
            share = 100 * (len(lines) - len(missed)) / len(lines)
            print(f"| {path} | {len(lines)} | {share:.1f}% | {ranges(missed)} |")
    print(f"| all | {total} | {100 * reached / total:.1f}% | {total - reached} lines |")


if __name__ == "__main__":
    main()
