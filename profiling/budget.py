#!/usr/bin/env python3
"""Holds the instructions of each kind of frame against a committed budget.

callgrind counts them on the steady load, twice with different numbers of frames, so that a start
counts nothing. More than 2 % over the budget of profiling/budget.json fails, and names the
functions that grew. Another compiler, C library or set of vector instructions makes other code, so
there the band is 10 % and is said to be.

  budget.py                      measure and compare
  budget.py --bless              measure and write the budget anew
  budget.py --self-test          show that a function which grows is found

A budget for each function is what gungraun and its like do not keep: they compare with the last run
on the same machine, and need a runner of the same version to be installed.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "profiling" / "budget.json"
KINDS = ["ping", "tools_list", "tools_call", "initialize", "discover"]
FRAMES = 4000
WARM = 500
BAND = 0.02
FOREIGN_BAND = 0.10
# Functions below this share of a frame are summed up.
SHARE_MIN = 0.005


def built():
    """The steady load with its symbols, but optimized as the program is."""
    command = ["cargo", "build", "--locked", "--quiet", "--profile", "bench", "--example", "steady",
               "--message-format", "json"]
    out = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in out.splitlines():
        message = json.loads(line)
        if message.get("target", {}).get("name") == "steady" and message.get("executable"):
            return message["executable"]
    sys.exit("cargo built no steady load")


def environment():
    rustc = subprocess.run(["rustc", "-V"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    flags = ""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        pass
    vectors = [name for name in ("sse4_2", "avx2") if re.search(rf"\b{name}\b", flags)]
    return {"rustc": rustc.stdout.split()[1], "libc": " ".join(platform.libc_ver()),
            "machine": platform.machine(), "vectors": " ".join(vectors)}


def counted(program, kind, frames):
    """Instructions of each function over a run, by callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
                   f"--callgrind-out-file={out}", program, kind, str(frames)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return functions_of(out.read_text())


def functions_of(text):
    """Own instructions by function. The line behind `calls=` is what the callee took."""
    functions, name, skip = {}, "", False
    for line in text.splitlines():
        if line.startswith("fn="):
            name = re.sub(r"::h[0-9a-f]{16}$", "", line[3:])
        elif line.startswith("calls="):
            skip = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            words = line.split()
            if not skip and len(words) >= 2:
                functions[name] = functions.get(name, 0) + int(words[1])
            skip = False
    return functions


def measured(program, kind):
    """Instructions a frame, of each function that matters."""
    few, many = (counted(program, kind, frames) for frames in (WARM, WARM + FRAMES))
    each = {name: (many[name] - few.get(name, 0)) / FRAMES for name in many}
    total = sum(each.values())
    kept = {name: round(count) for name, count in each.items() if count >= SHARE_MIN * total}
    return {"total": round(total), "functions": dict(sorted(kept.items(), key=lambda it: -it[1]))}


def verdict(kind, budget, now, band):
    """What is wrong, or nothing."""
    over = now["total"] / budget["total"] - 1
    if over <= band:
        return ""
    names = {*budget["functions"], *now["functions"]}
    grown = {name: now["functions"].get(name, 0) - budget["functions"].get(name, 0)
             for name in names}
    worst = [f"{name} by {by}" for name, by in sorted(grown.items(), key=lambda it: -it[1])[:3]
             if by > 0]
    return (f"{kind}: {now['total']} instructions a frame, {100 * over:.1f} % over {budget['total']}; "
            f"grown: {', '.join(worst) or 'small functions alone'}")


def self_test(budget):
    """A budget from which something is taken away must fail, and name what it was taken from."""
    for kind, kept in budget["kinds"].items():
        name, count = next(iter(kept["functions"].items()))
        less = max(1, round(0.03 * kept["total"]))
        smaller = {"total": kept["total"] - less,
                   "functions": {**kept["functions"], name: count - less}}
        said = verdict(kind, smaller, kept, BAND)
        assert said and f"{name} by {less}" in said, said
        assert not verdict(kind, kept, kept, BAND)
    print(f"each of {len(budget['kinds'])} budgets finds what has grown")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bless", action="store_true", help="write the budget anew")
    parser.add_argument("--self-test", action="store_true", help="show that growth is found")
    options = parser.parse_args()
    if options.self_test:
        self_test(json.loads(BUDGET.read_text()))
        return 0
    program, here = built(), environment()
    now = {kind: measured(program, kind) for kind in KINDS}
    if options.bless:
        BUDGET.write_text(json.dumps({"environment": here, "kinds": now}, indent=1) + "\n")
    budget = json.loads(BUDGET.read_text())
    foreign = [f"{name} {budget['environment'][name]!r} there, {here[name]!r} here"
               for name in here if budget["environment"].get(name) != here[name]]
    band = FOREIGN_BAND if foreign else BAND
    if foreign:
        print(f"the budget is of another environment, so the band is {band:.0%}: "
              + "; ".join(foreign))
    faults = [verdict(kind, budget["kinds"][kind], now[kind], band) for kind in KINDS]
    for kind in KINDS:
        total, then = now[kind]["total"], budget["kinds"][kind]["total"]
        print(f"{kind:<12}{total:>8} instructions a frame, budget {then:>8}, "
              f"{100 * (total / then - 1):+.1f} %")
    for fault in filter(None, faults):
        print(f"FAILED {fault}", file=sys.stderr)
    return int(any(faults))


if __name__ == "__main__":
    sys.exit(main())
