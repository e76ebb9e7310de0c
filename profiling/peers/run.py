#!/usr/bin/env python3
"""Builds the peers, measures them beside rocco and the floor, runs the corpus against each, and
writes both tables into RESULTS.md here, and the rows that matter most into README.

  run.py                  all of it: half an hour on a quiet machine, and longer on another
  run.py --no-cold        without building anything a second time to see what a build takes
  run.py --no-corpus      without the corpus
  run.py --tables         only the tables, from results.json of the last run

It needs the Rust toolchain, Node 20, Python 3.11 and the package registries.
"""

import argparse
import datetime
import json
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results.json"
HEADING = "# rocco beside other SDKs\n\n"
FLOOD_BYTES = 64 << 20
BEGIN, END = "<!-- peers -->\n", "<!-- end of peers -->\n"

# Name, what it is, its folder, its command.
PEERS = [
    ("rmcp", "rmcp 3.11.0, as documented", "rmcp", ["target/release/rmcp-peer"]),
    ("rmcp-fast", "rmcp 3.11.0, pipes registered, one thread", "rmcp",
     ["target/release/rmcp-peer", "--fast"]),
    ("rust-mcp-sdk", "rust-mcp-sdk 1.1.0", "rust-mcp-sdk", ["target/release/rust-mcp-sdk-peer"]),
    ("typescript", "TypeScript SDK 1.32.2", "typescript", ["node", "server.mjs"]),
    ("python", "Python SDK 1.30.0", "python", [".venv/bin/python", "server.py"]),
]
NAMES = {"rocco": "rocco", "floor": "the floor", **{name: what for name, what, *_ in PEERS}}
OPENING = (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
           b'"capabilities":{},"clientInfo":{"name":"peers","version":"0"}}}\n'
           b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n'


def said(text):
    print(text, file=sys.stderr, flush=True)


def run(command, folder=ROOT, **options):
    return subprocess.run(command, cwd=folder, check=True, text=True, **options)


def command_of(folder, words):
    """A peer's command with absolute paths."""
    return [str(HERE / folder / word) if (HERE / folder / word).exists() else word
            for word in words]


def commands():
    return {"rocco": [str(ROOT / "target/release/rocco"), "mcp"],
            **{name: command_of(folder, words) for name, _, folder, words in PEERS}}


# Building ------------------------------------------------------------------------------------


def build():
    run(["cargo", "build", "--locked", "--release", "--quiet"])
    for folder in ("rmcp", "rust-mcp-sdk"):
        said(f"building {folder}")
        run(["cargo", "build", "--locked", "--release", "--quiet"], HERE / folder)
    if not (HERE / "typescript/node_modules").is_dir():
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            HERE / "typescript")
    if not (HERE / "python/.venv").is_dir():
        run([sys.executable, "-m", "venv", ".venv"], HERE / "python")
        run([".venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r",
             "requirements.txt"], HERE / "python")


def crates(folder):
    tree = run(["cargo", "tree", "--locked", "-e", "normal", "--prefix", "none"], folder,
               stdout=subprocess.PIPE).stdout
    return len({line.split(" (")[0] for line in tree.splitlines() if line})


def cold_build(folder):
    """Seconds and peak memory of the largest process, with all sources fetched before."""
    run(["cargo", "fetch", "--locked", "--quiet"], folder)
    code = ("import resource, subprocess, sys, time; start = time.monotonic(); "
            "subprocess.run(sys.argv[1:], check=True); "
            "print(time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    with tempfile.TemporaryDirectory(dir=HERE) as target:
        out = run([sys.executable, "-c", code, "cargo", "build", "--locked", "--release",
                   "--quiet", "--target-dir", target], folder, stdout=subprocess.PIPE).stdout
    seconds, peak_kib = out.split()
    return {"cold_build_s": float(seconds), "build_peak_mib": int(peak_kib) / 1024}


def builds(cold):
    figures = {}
    for name, folder, program in (
            ("rocco", ROOT, ROOT / "target/release/rocco"),
            ("rmcp", HERE / "rmcp", HERE / "rmcp/target/release/rmcp-peer"),
            ("rust-mcp-sdk", HERE / "rust-mcp-sdk",
             HERE / "rust-mcp-sdk/target/release/rust-mcp-sdk-peer")):
        figures[name] = {"crates": crates(folder), "binary_kib": program.stat().st_size / 1024}
        if cold:
            said(f"cold build of {name}")
            figures[name].update(cold_build(folder))
    figures["rmcp-fast"] = dict(figures["rmcp"])
    return figures


# Latency -------------------------------------------------------------------------------------


def latency():
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for name, command in commands().items():
            if name != "rocco":
                file.write(f"{name}\t{' '.join(command)}\n")
        file.flush()
        out = run(["cargo", "bench", "--locked", "--quiet", "--bench", "latency", "--",
                   "--peers", file.name], stdout=subprocess.PIPE).stdout
    # The benches have built the program anew, with their symbols.
    run(["cargo", "build", "--locked", "--release", "--quiet"])
    return json.loads(out.splitlines()[-1])


# Behaviour -----------------------------------------------------------------------------------


class Session:
    """A server on two pipes, with its session open."""

    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
        self.send(OPENING)
        self.child.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()

    def send(self, data):
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def reply(self, seconds=10):
        """The next line, or nothing in so long."""
        os.set_blocking(self.child.stdout.fileno(), False)
        end, line = time.monotonic() + seconds, b""
        while time.monotonic() < end and not line.endswith(b"\n"):
            line += self.child.stdout.readline() or b""
            if not line.endswith(b"\n"):
                time.sleep(0.005)
        return line

    def left(self, seconds=10):
        """How it left, and after how long."""
        start = time.monotonic()
        try:
            status = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"still there after {seconds} s"
        how = f"exit {status}" if status >= 0 else f"died of {signal.Signals(-status).name}"
        return f"{how}, {1000 * (time.monotonic() - start):.0f} ms"

    def rss_kib(self):
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def after(session, data):
    """What comes back for some bytes, and whether a ping is answered behind them."""
    try:
        session.send(data)
        session.send(PING % 77)
    except OSError:
        return f"it left: {session.left()}"
    first = session.reply()
    if b'"id":77' in first:
        return "silence, then it goes on"
    if not first:
        return "no word any more" if session.child.poll() is None else f"it left: {session.left()}"
    code = re.search(rb'"code":(-?\d+)', first)
    said = f"error {code[1].decode()}" if code else "an answer"
    goes_on = b'"id":77' in session.reply()
    return f"{said}, then it goes on" if goes_on else f"{said}, then no word any more"


def flood(command):
    """Peak memory while nobody reads, and how much of 64 MiB it took in."""
    with Session(command) as session:
        os.set_blocking(session.child.stdin.fileno(), False)
        line, taken, quiet = PING % 7 * 500, 0, time.monotonic()
        try:
            while taken < FLOOD_BYTES and time.monotonic() - quiet < 2:
                try:
                    taken += os.write(session.child.stdin.fileno(), line)
                    quiet = time.monotonic()
                except BlockingIOError:
                    time.sleep(0.01)
            return f"{session.rss_kib() / 1024:.1f} MiB after {taken / (1 << 20):.1f} MiB"
        except OSError:
            return "it left"


def behaviour(command):
    found = {}
    with Session(command) as session:
        found["garbage"] = after(session, b"this is no JSON\n")
    with Session(command) as session:
        found["a line of 8 MiB"] = after(
            session, b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"'
            + b"a" * (8 << 20) + b'"}}\n')
    found["64 MiB of requests, stdout unread"] = flood(command)
    with Session(command) as session:
        session.child.stdin.close()
        found["end of input"] = session.left()
    with Session(command) as session:
        session.child.send_signal(signal.SIGTERM)
        found["SIGTERM"] = session.left()
    with Session(command) as session:
        session.child.stdout.close()
        try:
            session.send(PING % 7)
        except OSError:
            pass
        found["a reader that has vanished"] = session.left(3)
    return found


def corpus(command):
    """Passed and failed cases of tests/cases."""
    out = subprocess.run([sys.executable, str(ROOT / "tests/cases/run.py"), "--", *command],
                         cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    passed, failed = re.search(r"(\d+) passed, (\d+) failed", out.stdout).groups()
    return {"passed": int(passed), "failed": int(failed)}


# Tables --------------------------------------------------------------------------------------


def shown(value, form="{:.0f}"):
    return "-" if value is None else form.format(value)


def us(value):
    return shown(None if value is None else value / 1000, "{:.1f}")


def triple(figures, place, kind):
    return " / ".join(us(figures.get(f"{place}/{kind}/{q}_ns")) for q in ("p50", "p95", "p99"))


def row(cells):
    return "| " + " | ".join(cells) + " |"


def tables(results):
    latency, builds = results["latency"], results["builds"]
    order = ["rocco", *(name for name, *_ in PEERS)]
    lines = [f"Measured on {results['date']}, {results['machine']}, in one run and in turns; the "
             "floor is a program that only reads, splices the id into a canned reply and writes. "
             "Times are microseconds, p50 / p95 / p99 of 3,000 exchanges over pipes. What the second "
             "table has was tried on each server by itself, the corpus on three at a time.", ""]
    lines += [row(["", *(NAMES[name] for name in order), NAMES["floor"]]),
              "|---" * (len(order) + 2) + "|"]
    figures = {name: latency.get(name, {}) for name in [*order, "floor"]}
    for place, where in (("one_cpu", "one CPU"), ("two_cpus", "two CPUs")):
        for kind, what in (("ping", "ping"), ("tools_list", "tools/list"),
                           ("tools_call", "tools/call")):
            lines.append(row([f"{what}, {where}",
                              *(triple(figures[name], place, kind) for name in figures)]))
    for key, what, form in (
            ("burst_requests_per_second", "64 in flight, requests a second", "{:,.0f}"),
            ("burst_cpu_ns", "CPU time a request of these, ns", "{:,.0f}"),
            ("large_mb_per_second", "frames of 1 MiB, MB/s", "{:,.0f}"),
            ("peak_kib", "peak memory over 5,002 frames, KiB", "{:,.0f}"),
            ("first_reply_ns", "start to first reply, ms", None)):
        cells = [us(None if figures[name].get(key) is None else figures[name][key] / 1000)
                 if form is None else shown(figures[name].get(key), form) for name in figures]
        lines.append(row([what, *cells]))
    for key, what, form in (("crates", "crates in the build", "{:.0f}"),
                            ("cold_build_s", "cold release build, s", "{:.0f}"),
                            ("build_peak_mib", "its largest process, MiB", "{:,.0f}"),
                            ("binary_kib", "binary, KiB", "{:,.0f}")):
        lines.append(row([what, *(shown(builds.get(name, {}).get(key), form)
                                  for name in [*order, "floor"])]))
    lines += ["", row(["", *(NAMES[name] for name in order)]), "|---" * (len(order) + 1) + "|"]
    if results.get("corpus"):
        lines.append(row(["cases of the corpus passed", *(
            f"{it['passed']} of {it['passed'] + it['failed']}"
            for it in (results["corpus"][name] for name in order))]))
    for what in results["behaviour"]["rocco"]:
        lines.append(row([what, *(results["behaviour"][name][what] for name in order)]))
    return "\n".join(lines) + "\n"


# The rows of both tables that README shows, in its order.
README_ROWS = ("tools/call, one CPU", "tools/call, two CPUs", "64 in flight, requests a second",
               "CPU time a request of these, ns", "peak memory over 5,002 frames, KiB",
               "start to first reply, ms", "crates in the build", "cold release build, s",
               "cases of the corpus passed", "64 MiB of requests, stdout unread")


def digest(text):
    """README's table: its rows of the tables, with the sentence that says how they came about."""
    lines = text.splitlines()
    columns = next(line for line in lines if line.startswith("|")).count("|")
    rows = {}
    for line in lines:
        if line.startswith("|"):
            rows.setdefault(line.split("|")[1].strip(), line)
    chosen = [rows[name] for name in ("", "---", *README_ROWS) if name in rows]
    filled = [line + " - |" * (columns - line.count("|")) for line in chosen]
    return "\n".join([lines[0], "", *filled]) + "\n"


def write(results):
    text = tables(results)
    (HERE / "RESULTS.md").write_text(HEADING + text)
    write_digest(text)
    print(text)


def write_digest(text):
    readme = (ROOT / "README.md").read_text()
    head, _, rest = readme.partition(BEGIN)
    _, _, tail = rest.partition(END)
    (ROOT / "README.md").write_text(head + BEGIN + digest(text) + END + tail)


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} x {model[1] if model else platform.machine()}, " \
           f"Linux {platform.release().split('-')[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for option in ("no-cold", "no-corpus", "tables"):
        parser.add_argument(f"--{option}", action="store_true")
    options = parser.parse_args()
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if options.tables:
        return write(before)
    build()
    results = {"date": datetime.date.today().isoformat(), "machine": machine()}
    results["latency"] = latency()
    results["builds"] = builds(not options.no_cold)
    for name, kept in before.get("builds", {}).items() if options.no_cold else ():
        results["builds"][name] = {**kept, **results["builds"][name]}
    results["behaviour"] = {}
    for name, command in commands().items():
        said(f"behaviour of {name}")
        results["behaviour"][name] = behaviour(command)
    results["corpus"] = before.get("corpus")
    RESULTS.write_text(json.dumps(results, indent=1))
    if not options.no_corpus:
        said("the corpus against each, which is mostly waiting")
        with ThreadPoolExecutor(3) as pool:
            results["corpus"] = dict(zip(commands(), pool.map(corpus, commands().values())))
        RESULTS.write_text(json.dumps(results, indent=1))
    return write(results)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
