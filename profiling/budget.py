#!/usr/bin/env python3
"""Holds the instructions of each kind of frame against a committed budget.

callgrind counts them on the steady load, twice with different numbers of frames, so that a start
counts nothing. More than 2 % over the budget of profiling/budget.json fails, and names the
functions that grew; what was inlined goes by its file. Another compiler, C library or set of
vector instructions makes other code, so there the band is 10 % and is said to be.

  budget.py                      measure and compare
  budget.py --bless              measure and write the budget anew
  budget.py --self-test          the same, then plant work in two functions and show that each is
                                 found

gungraun holds totals to limits, but not each function to its own, so it could fail and not say
what grew.
"""

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
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

COPY = ROOT / "target" / "profiling" / "copy"
# Where work is planted: a file, which is to be named, a function's head, and a kind that comes by.
PLANTS = [
    ("src/wire/outbox.rs", "pub fn begin_frame(&mut self) {", "ping"),
    ("src/task/arguments.rs", "fn goal_fault(goal: &str) -> Option<Reason> {", "tools_call"),
]
WORK = "let mut turn = 0; while turn < 100 { turn += 1; std::hint::black_box(turn); }"


def built():
    """The steady load with its symbols, but optimized as the program is. It is built in a copy
    without what only tests need, which would be built for it as well."""
    command = ["cargo", "build", "--quiet", "--profile", "bench", "--example", "steady",
               "--no-default-features", "--message-format", "json"]
    out = subprocess.run(command, cwd=COPY, check=True, stdout=subprocess.PIPE, text=True).stdout
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
    """Own instructions by function, and by file where another of ours was inlined into it. The
    line behind `calls=` is what the callee took."""
    functions, name, file, skip = {}, "", "", False
    for line in text.splitlines():
        if line.startswith("fn="):
            name = re.sub(r"::h[0-9a-f]{16}$", "", line[3:])
        elif line.startswith(("fl=", "fi=", "fe=")):
            ours = line[3:].removeprefix(f"{COPY}/")
            file = f" in {ours}" if ours.startswith("src/") else ""
        elif line.startswith("calls="):
            skip = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            words = line.split()
            if not skip and len(words) >= 2:
                functions[name + file] = functions.get(name + file, 0) + int(words[1])
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
    # One that the budget does not list had less than the share from which on it would.
    least = round(SHARE_MIN * budget["total"])
    grown = {name: count - budget["functions"].get(name, least)
             for name, count in now["functions"].items()}
    worst = [f"{name} by {by}" for name, by in sorted(grown.items(), key=lambda it: -it[1])[:3]
             if by > 0]
    return (f"{kind}: {now['total']} instructions a frame, {100 * over:.1f} % over {budget['total']}; "
            f"grown: {', '.join(worst) or 'small functions alone'}")


def copy():
    """Copies what the steady load is built from, without what only tests need."""
    for folder in ("src", "examples"):
        shutil.rmtree(COPY / folder, ignore_errors=True)
    # New times, by which cargo sees what an earlier plant has changed.
    shutil.copytree(ROOT / "src", COPY / "src", copy_function=shutil.copy)
    (COPY / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "steady.rs", COPY / "examples")
    shutil.copy(ROOT / "Cargo.lock", COPY)
    sections = re.split(r"^(?=\[)", (ROOT / "Cargo.toml").read_text(), flags=re.M)
    others = re.compile(r'\[\[(bench|test)|\[dev-|\[lints|\[\[example\]\]\nname = "(?!steady)')
    kept = [section for section in sections if not others.match(section)]
    (COPY / "Cargo.toml").write_text("".join(kept) + "\n[workspace]\n")


def self_test(sound):
    """Work that is planted in a function must fail, and name it. All of it is planted in one build,
    since a build takes longer than what is measured."""
    for file, head, _ in PLANTS:
        text = (COPY / file).read_text()
        assert text.count(head) == 1, f"{head} is in {file}"
        (COPY / file).write_text(text.replace(head, f"{head} {WORK}"))
    program = built()
    for file, _, kind in PLANTS:
        said = verdict(kind, sound[kind], measured(program, kind), BAND)
        print(f"planted in {file}: {said or 'not found'}")
        assert f" in {file} by " in said, f"{file} is not named"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bless", action="store_true", help="write the budget anew")
    parser.add_argument("--self-test", action="store_true", help="show that growth is found")
    options = parser.parse_args()
    here = environment()
    copy()
    program = built()
    with ThreadPoolExecutor(2) as pool:
        now = dict(zip(KINDS, pool.map(lambda kind: measured(program, kind), KINDS)))
    if options.self_test:
        self_test(now)
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
