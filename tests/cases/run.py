#!/usr/bin/env python3
"""Runs the corpus against an MCP stdio server: run.py [options] -- SERVER ARGS...

Prints one line for each failure and last "N passed, M failed"; exits 0 only if none failed.
"""

import argparse
import base64
import glob
import json
import os
import re
import signal
import sys
import threading
import time
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import harness  # noqa: E402
import shapes  # noqa: E402
from harness import (  # noqa: E402
    Exact, Failed, INITIALIZED, Server, compact, initialize, key, messages, ping, short,
)

WORKERS = 2
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


# Cases ---------------------------------------------------------------------------------------


def part_bytes(part):
    """The bytes of one part of a recipe."""
    if isinstance(part, str):
        return part.encode("utf-8")
    if "hex" in part:
        return bytes.fromhex(part["hex"])
    if "repeat" in part:
        return part["repeat"].encode("utf-8") * part["times"]
    if "prefixes" in part:  # each proper one but the empty one, as a line of its own
        data = part["prefixes"].encode("utf-8")
        return b"".join(data[:size] + b"\n" for size in range(1, len(data)))
    first, last = part["range"]
    lines = part["line"] if isinstance(part["line"], list) else [part["line"]]
    return b"".join(part_bytes(numbered(line, i, part) if isinstance(line, str) else line)
                    for i in range(first, last + 1) for line in lines)


def numbered(text, i, form):
    """A text of a range: {i} is the number, {pad} are i mod `mod` letters."""
    pad = form.get("fill", "p") * (i % form.get("mod", 1))
    return text.replace("{i}", str(i)).replace("{pad}", pad)


def line_bytes(line):
    """One line without its LF: raw text, a recipe, or a message to be written compactly."""
    if isinstance(line, str):
        return line.encode("utf-8")
    if isinstance(line, dict) and "gen" in line:
        return b"".join(map(part_bytes, line["gen"]))
    return compact(line)


def bytes_of(case):
    if "lines" in case:
        body = b"".join(line_bytes(line) + b"\n" for line in case["lines"])
    elif "gen" in case:
        body = b"".join(map(part_bytes, case["gen"]))
    elif "stdin_b64" in case:
        body = base64.b64decode(case["stdin_b64"])
    else:
        body = case["stdin"].encode("utf-8")
    if "session" not in case:
        return body
    last = b"" if case.get("eof") == "now" else ping(99)
    return initialize(1, case["session"]) + INITIALIZED + body + last


def wanted(case):
    """The case's `want`, with what its session brings along."""
    want = case["want"]
    if "session" not in case:
        return want
    hello = {"protocolVersion": case["session"], "capabilities": {"tools": {"$is": "object"}},
             "serverInfo": {"name": {"$is": "string"}, "version": {"$is": "string"}}}
    replies = [{"id": 1, "kind": "result", "has": hello}]
    if case.get("eof") != "now":
        replies.append({"id": 99, "kind": "result", "has": {"$empty": True}})
    return {**want, "replies": replies + want.get("replies", [])}


def pieces(case, data):
    """The writes, as (bytes, seconds to wait behind, id to wait for)."""
    chunks = case.get("chunks", [])
    if isinstance(chunks, dict):
        step, pause = chunks["every"], chunks["pause_ms"] / 1000
        for at in range(0, len(data), step):
            yield data[at : at + step], pause, None
        return
    start = 0
    for at, pause_ms, *rest in chunks:
        yield data[start:at], pause_ms / 1000, rest[0] if rest else None
        start = at
    yield data[start:], 0, None


def run_case(case, argv):
    """Runs one byte case; the faults found."""
    want, data = wanted(case), bytes_of(case)
    shell = f"ulimit -s {case['stack_kib']}; exec" if "stack_kib" in case else None
    if "late_ms" in case:
        shell = f"sleep {case['late_ms'] / 1000}; exec"
    faults = []
    with Server(argv, shell=shell, env=case.get("env")) as server:
        for piece, pause, id in pieces(case, data):
            if not server.send(piece, 20):
                break
            if pause:
                time.sleep(pause)
            if id is not None and not server.answered([id], 10):
                faults.append(f"wanted a reply to id {id} before the next write; none came")
        peak = cpu = 0.0
        if case.get("eof") != "now":
            ids = case.get("until", [99])
            seconds = want.get("answer_ms", 10_000) / 1000
            if ids and not server.answered(ids, seconds):
                faults.append(f"wanted replies to {short(ids)} within {seconds * harness.SLOW:g} s "
                              f"with stdin open; {server.fate()}")
            time.sleep(case.get("hold_ms", 0) / 1000)
            if server.child.poll() is not None:
                faults.append(f"wanted it to run until EOF; {server.fate()}")
            else:
                peak, cpu = server.peak_kib(), server.cpu_s()
        server.close_stdin()
        exit_s = want.get("exit_ms", 5_000) / 1000
        status = server.exit(exit_s)
        if status is None:
            faults.append(f"wanted exit within {exit_s * harness.SLOW:g} s of EOF; still running")
        elif status not in want.get("exit", [0]):
            faults.append(f"wanted exit {want.get('exit', [0])}; {server.fate()}")
        server.wait(lambda: server.eof, 5)
        if "rss_mib" in want and peak > want["rss_mib"] * 1024:
            faults.append(f"wanted at most {want['rss_mib']} MiB; peak {peak / 1024:.1f} MiB")
        if "cpu_ms" in want and cpu * 1000 > want["cpu_ms"] * harness.SLOW:
            faults.append(f"wanted at most {want['cpu_ms']} ms of CPU; {cpu * 1000:.0f} ms")
        return faults + judge(want, bytes(server.out))


# Judging -------------------------------------------------------------------------------------


def ids_of(entry):
    if "id" in entry:
        id = entry["id"]
        if isinstance(id, dict):
            id = id.get("before", "") + id["repeat"] * id["times"]
        return [id]
    if "ids" in entry:
        return entry["ids"]
    first, last = entry["range"]
    form = entry.get("format")
    return [numbered(form, i, entry) if form else i for i in range(first, last + 1)]


RULES = {
    "$in": lambda value, rule: any(same(value, one) for one in rule),
    "$is": lambda value, rule: isinstance(value, KINDS[rule])
    and (rule == "boolean") == isinstance(value, bool),
    "$starts": lambda value, rule: isinstance(value, str) and value.startswith(rule),
    "$match": lambda value, rule: isinstance(value, str) and re.search(rule, value, re.DOTALL),
    "$holds": lambda value, rule: isinstance(value, str) and all(text in value for text in rule),
    "$lacks": lambda value, rule: isinstance(value, str) and not any(t in value for t in rule),
    "$min": lambda value, rule: isinstance(value, int) and not isinstance(value, bool)
    and value >= rule,
    "$empty": lambda value, rule: isinstance(value, dict) and set(value) <= {"_meta"},
    "$contains": lambda value, rule: isinstance(value, list)
    and any(same(one, rule) for one in value),
}


def same(value, want):
    """Equality in which 1, 1.0, true and "1" are four values."""
    scalar = not isinstance(want, (dict, list)) and not isinstance(value, (dict, list))
    return key(value) == key(want) if scalar else value == want


def mismatch(want, value, path="result"):
    """Why a value does not have what `has` asks for, or None."""
    if isinstance(want, list):
        if not isinstance(value, list) or len(value) != len(want):
            return f"{path}: {short(value)}"
        faults = (mismatch(w, v, f"{path}[{i}]") for i, (w, v) in enumerate(zip(want, value)))
        return next((fault for fault in faults if fault), None)
    if not isinstance(want, dict):
        return None if same(value, want) else f"{path} is {short(value)}"
    if "$shape" in want:
        name, *arguments = want["$shape"]
        return mismatch(getattr(shapes, name)(*arguments), value, path)
    if any(name in RULES for name in want):
        holds = all(RULES[name](value, rule) for name, rule in want.items())
        return None if holds else f"{path}: {short(json.dumps(value))}"
    if "$all" in want or "$every" in want:  # each member of an object, each element of an array
        rule, kind = (want["$all"], dict) if "$all" in want else (want["$every"], list)
        if not isinstance(value, kind):
            return f"{path}: {short(value)}"
        inner = value.items() if kind is dict else enumerate(value)
        faults = (mismatch(rule, member, f"{path}.{name}") for name, member in inner)
        return next((fault for fault in faults if fault), None)
    if not isinstance(value, dict):
        return f"{path}: {short(value)}"
    return members_mismatch(want, value, path)


def members_mismatch(want, value, path):
    for name, member in want.items():
        if name == "$only":  # no member but these
            extra = sorted(set(value) - set(member))
            if extra:
                return f"{path} has {short(extra)}"
            continue
        absent = isinstance(member, dict) and member.get("$absent")
        if absent and name in value:
            return f"{path}.{name} is there"
        if not absent and name not in value:
            return f"{path}.{name} is missing"
        fault = None if absent else mismatch(member, value[name], f"{path}.{name}")
        if fault:
            return fault
    return None


def reply_fault(entry, message):
    """Why a reply is not of the wanted kind, or None."""
    codes = entry.get("codes", [])
    if "error" in message:
        error = message["error"]
        if entry["kind"] == "result" or error["code"] not in codes:
            return f"error {error['code']} ({short(error['message'], 60)})"
        return mismatch(entry["error"], error, "error") if "error" in entry else None
    if entry["kind"] == "error":
        return f"result {short(json.dumps(message['result']), 80)}"
    return mismatch(entry["has"], message["result"]) if "has" in entry else None


def wanted_text(entry):
    kind = entry["kind"]
    if kind != "result":
        kind = ("result or error " if kind == "any" else "error ") + \
            " or ".join(str(code) for code in entry["codes"])
    return kind + (f" with {short(json.dumps(entry['has']), 100)}" if "has" in entry else "")


def merged(groups):
    """Groups of id-less errors that share a code become one."""
    done = []
    for codes, low, high in groups:
        codes, kept = set(codes), []
        for other in done:
            if other[0] & codes:
                codes, low, high = codes | other[0], low + other[1], high + other[2]
            else:
                kept.append(other)
        done = [*kept, (codes, low, high)]
    return done


def range_text(low, high):
    return str(low) if low == high else f"{low} to {high}"


def judge(want, out):
    """The faults in what a run wrote."""
    found, faults = messages(out, want.get("arrays", False), "notes" in want)
    replies, loose = {}, []
    for message in found:
        if "id" in message:
            replies.setdefault(key(message["id"]), []).append(message)
        elif "error" in message:
            loose.append(message["error"]["code"])
    groups = [(g["codes"], g["min"], g["max"]) for g in want.get("loose", [])]
    known = set()
    for entry in want.get("replies", []):
        low, high = entry.get("times", [1, 1])
        for id in ids_of(entry):
            k = key(id)
            known.add(k)
            came = replies.get(k, [])
            if not came and "or_loose" in entry:
                groups.append((entry["or_loose"], 1, 1))
            elif not low <= len(came) <= high:
                faults.append(f"id {short(k, 40)}: wanted {range_text(low, high)} x "
                              f"{wanted_text(entry)}; {len(came)} came")
            for message in came:
                fault = reply_fault(entry, message)
                if fault:
                    faults.append(f"id {short(k, 40)}: wanted {wanted_text(entry)}; came {fault}")
    for k in replies:
        if k not in known:
            faults.append(f"wanted nothing for id {short(k, 40)}; came "
                          f"{short(json.dumps(replies[k][0]), 100)}")
    faults += loose_faults(merged(groups), loose)
    faults += note_faults(want.get("notes", []), [m for m in found if "method" in m])
    if "first" in want and (not found or key(found[0].get("id")) != key(want["first"])):
        faults.append(f"wanted id {want['first']} first; came "
                      f"{short(json.dumps(found[0])) if found else 'nothing'}")
    arrays = sum(line.startswith(b"[") for line in out.split(b"\n"))
    if "array_lines" in want and arrays != want["array_lines"]:
        faults.append(f"wanted {want['array_lines']} arrays; {arrays} came")
    if "lines" in want and out.count(b"\n") != want["lines"]:
        faults.append(f"wanted {want['lines']} lines; {out.count(10)} came")
    return faults


def loose_faults(groups, loose):
    """The faults in the errors without id."""
    faults, counted = [], 0
    for codes, low, high in groups:
        n = sum(code in codes for code in loose)
        counted += n
        if not low <= n <= high:
            faults.append(f"wanted {range_text(low, high)} x error {sorted(codes)} without id; "
                          f"{n} came" + (f" (all without id: {short(loose, 60)})" if loose else ""))
    if counted != len(loose):
        groups_text = [sorted(codes) for codes, _, _ in groups]
        faults.append(f"wanted errors without id only of {groups_text}; came {short(loose, 80)}")
    return faults


def note_faults(entries, notes):
    """The faults in the notifications. Each must be of an entry, and each entry as often."""
    faults, left = [], list(notes)
    for entry in entries:
        low, high = entry.get("times", [1, 1])
        came = [note for note in left if note["method"] == entry["method"]
                and not mismatch(entry.get("has", {}), note.get("params", {}), "params")]
        left = [note for note in left if note not in came]
        if not low <= len(came) <= high:
            faults.append(f"wanted {range_text(low, high)} x {entry['method']} with "
                          f"{short(json.dumps(entry.get('has', {})))}; {len(came)} came")
    if left:
        faults.append(f"wanted no other notification; came {short(json.dumps(left[0]))}")
    return faults


# Everything ----------------------------------------------------------------------------------


Item = namedtuple("Item", "id body alone")


def load():
    """The cases and scenarios that lie beside this file."""
    work = []
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.jsonl"))):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                case = json.loads(line, parse_int=Exact)
                work.append(Item(case["id"], lambda argv, case=case: run_case(case, argv),
                                 case.get("alone", False)))
    for path in sorted(glob.glob(os.path.join(HERE, "scenarios*.py"))):
        __import__(os.path.basename(path)[:-3])
    work += [Item(id, body, alone) for id, (body, _, alone) in harness.SCENARIOS.items()]
    ids = [item.id for item in work]
    twice = {id for id in ids if ids.count(id) > 1}
    if twice:
        raise ValueError(f"two cases of one name: {', '.join(sorted(twice))}")
    return work


def attempt(item, argv):
    start = time.monotonic()
    harness.RUNNING.id = item.id
    try:
        faults = item.body(argv) or []
    except Failed as failure:
        faults = [str(failure)]
    except Exception as error:  # a fault of the runner, or a server that cannot be started
        faults = [f"runner: {type(error).__name__}: {short(str(error))}"]
    return item.id, faults, time.monotonic() - start


def chosen(work, options, refuse):
    """What --only and --skip leave; both take shell patterns."""
    for pattern in options.only + options.skip:
        if not any(fnmatchcase(item.id, pattern) for item in work):
            refuse(f"no such case: {pattern}")
    if options.only:
        work = [item for item in work if any(fnmatchcase(item.id, p) for p in options.only)]
    return [item for item in work if not any(fnmatchcase(item.id, p) for p in options.skip)]


def recorder(path):
    """What appends a run to a file, from several threads."""
    lock, file = threading.Lock(), open(path, "a", encoding="ascii")

    def record(id, stdin, stdout):
        line = {"id": id, "stdin_b64": base64.b64encode(stdin).decode(),
                "stdout_b64": base64.b64encode(stdout).decode()}
        with lock:
            file.write(json.dumps(line) + "\n")
            file.flush()

    return record


def main():
    # A server keeps an ignored hang-up, as nohup wants it. What is handled here is not inherited.
    signal.signal(signal.SIGHUP, lambda *_: None)
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", action="append", metavar="ID", default=[],
                           help="this case, or those of a pattern; may be repeated")
    arguments.add_argument("--skip", action="append", metavar="ID", default=[],
                           help="not this case, or not those of a pattern")
    arguments.add_argument("--slow", type=float, default=1.0, metavar="F",
                           help="multiply every deadline by F")
    arguments.add_argument("--record", metavar="FILE",
                           help="append a line of JSON for each run: id, stdin_b64, stdout_b64")
    arguments.add_argument("--times", action="store_true", help="print how long each one took")
    arguments.add_argument("--list", action="store_true", help="print the ids and end")
    arguments.add_argument("server", nargs="*", metavar="SERVER")
    options = arguments.parse_args()
    harness.SLOW = options.slow
    harness.end_after(900 * options.slow)
    work = chosen(load(), options, arguments.error)
    if options.list:
        print("\n".join(item.id for item in work))
        return 0
    if not options.server:
        arguments.error("which server? put its command behind --")
    if options.record:
        harness.RECORD = recorder(options.record)
    argv, passed, failed = options.server, 0, 0
    if os.sep in argv[0]:
        argv[0] = os.path.abspath(argv[0])

    def tell(outcome):
        nonlocal passed, failed
        id, faults, seconds = outcome
        if options.times:
            print(f"{seconds:8.2f} s  {id}", flush=True)
        if faults:
            failed += 1
            more = f" (+{len(faults) - 2} more)" if len(faults) > 2 else ""
            print(f"FAIL {id}: {' | '.join(faults[:2])}{more}", flush=True)
        else:
            passed += 1

    with ThreadPoolExecutor(WORKERS) as pool:
        for outcome in pool.map(lambda item: attempt(item, argv),
                                [item for item in work if not item.alone]):
            tell(outcome)
    for item in work:
        if item.alone:
            tell(attempt(item, argv))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
