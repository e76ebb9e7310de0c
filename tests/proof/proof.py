"""What the proofs share: the command line, the tally, traffic whose replies are known, and pipes.

Linux, Python 3.9 or newer, standard library only. Nothing here has a deadline that a busy machine
could miss: a silence of two minutes is what counts as a hang.
"""

import argparse
import fcntl
import json
import os
import select
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cases"))
sys.dont_write_bytecode = True

import harness  # noqa: E402
from harness import INITIALIZED, compact, initialize, key, parse, shape_fault, short  # noqa: E402

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
REVISIONS = [*HANDSHAKES, STATELESS]
SILENCE_S = 120
HANG_S = 3600  # as long as none of the proofs takes, with --long either
F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", 1031)  # Python names it since 3.10
TICKS = os.sysconf("SC_CLK_TCK")


# The command line and the tally --------------------------------------------------------------


def command_line(text, add=None):
    """The options of a script, and the server's command behind `--`."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [options] -- SERVER ARGS...")
    if add:
        add(parser)
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:split])
    options.server = words[split + 1 :]
    harness.end_after(HANG_S)
    if not options.server and not getattr(options, "table", False):
        parser.error("the server's command is missing: put it behind --")
    return options


class Tally:
    """Prints a line for each check and counts them."""

    def __init__(self):
        self.passed = self.failed = 0
        self.lock = threading.Lock()

    def note(self, name, fault, figures=""):
        """One check: `fault` says what is wrong with it, or is empty."""
        with self.lock:
            if fault:
                self.failed += 1
                print(f"FAILED {name}: {fault}", flush=True)
            else:
                self.passed += 1
                print(f"ok {name}" + (f": {figures}" if figures else ""), flush=True)
        return not fault

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def needs(tool, variable):
    """Whether a tool is installed. Without it a script is skipped, unless the variable is set."""
    if any(os.access(os.path.join(place, tool), os.X_OK)
           for place in os.environ.get("PATH", "").split(":")):
        return True
    if os.environ.get(variable):
        print(f"FAILED {tool} is not installed, and {variable} is set")
        print("0 passed, 1 failed")
        sys.exit(1)
    print(f"skipped: {tool} is not installed")
    print("0 passed, 0 failed")
    sys.exit(0)


# Traffic whose replies are known -------------------------------------------------------------


class Item:
    """Bytes for stdin, and what each line of the answer must tell (see `told`)."""

    def __init__(self, data, *want):
        self.data, self.want = data, list(want)


def told(line):
    """What a line of stdout says: to whom, and whether it is a result or which error."""
    try:
        value = parse(line)
    except (ValueError, RecursionError) as error:
        return f"not protocol ({error}): {short(line, 80)}"
    if isinstance(value, list) and value:
        return "[" + ", ".join(map(told_message, value)) + "]"
    return told_message(value)


def told_message(message):
    fault = shape_fault(message)
    if fault:
        return f"not protocol ({fault}): {short(json.dumps(message), 80)}"
    who = key(message["id"]) if "id" in message else "none"
    return f"{who} result" if "result" in message else f"{who} error {message['error']['code']}"


def difference(want, came, whole=True):
    """Where two lists of what was told differ, or nothing. Without `whole` a prefix is enough."""
    for at, (one, other) in enumerate(zip(want, came)):
        if one != other:
            return f"reply {at + 1}: wanted {short(one, 80)}; came {short(other, 120)}"
    if len(came) > len(want):
        return f"{len(came) - len(want)} replies too many, first {short(came[len(want)], 120)}"
    if whole and len(came) < len(want):
        return f"{len(want) - len(came)} of {len(want)} replies lost, first {short(want[len(came)])}"
    return ""


GOOD = {"goal": "Retry a failed upload up to five times.", "repo": "/srv/uploader",
        "files": ["src/upload.rs"], "acceptance": ["cargo test passes"]}
BAD = {"goal": " ", "repo": "uploader", "files": ["/a", "../b", "-c"], "more": 1}
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {}}


def one(id, method, outcome, params=None):
    return Item(harness.request(id, method, params), f"{id_key(id)} {outcome}")


def id_key(id):
    return str(id) if isinstance(id, int) else json.dumps(id)


def call(arguments, name="larry_submit_task"):
    return {"name": name, "arguments": arguments}


def opening(revision, id=1):
    """How a session of a revision begins."""
    if revision == STATELESS:
        return one(id, "server/discover", "result", {"_meta": ENVELOPE})
    return Item(initialize(id, revision) + INITIALIZED, f"{id} result")


def handshake_kinds(revision):
    """What a session of a handshake revision may hold: weights and functions of an id."""
    return [
        (30, lambda id: one(id, "ping", "result")),
        (6, lambda id: one(id, "tools/list", "result")),
        (14, lambda id: one(id, "tools/call", "result", call(GOOD))),
        (8, lambda id: one(id, "tools/call", "result", call(BAD))),
        (4, lambda id: one(id, "tools/call", "error -32602", call({}, "nobody"))),
        (4, lambda id: one(id, "resources/list", "error -32601")),
        (4, lambda id: Item(compact({"jsonrpc": "2.0", "method": "notifications/cancelled",
                                     "params": {"requestId": id}}) + b"\n")),
        (2, lambda id: Item(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % len(str(id)))),
        (3, lambda id: Item(b'{"id":' + compact(id)[:-1] + b"\n", "none error -32700")),
        (2, lambda id: Item(b"\n \r\n\n5\n", "none error -32600")),
        (2, lambda id: one(id, "initialize", "result", {
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "again", "version": "0"}})),
        (3, lambda id: batch(id, revision)),
        (6, enveloped),
    ]


def batch(id, revision):
    """Two requests and a notification at once, which one revision alone knows."""
    first, second = (harness.request(id, method)[:-1] for method in ("ping", "nonsense"))
    data = b"[" + first + b"," + INITIALIZED[:-1] + b"," + second + b"]\n"
    if revision != "2025-03-26":
        return Item(data, "none error -32600")
    return Item(data, f"[{id_key(id)} result, {id_key(id)} error -32601]")


def enveloped(id):
    return one(id, "tools/call", "result", {**call(GOOD), "_meta": ENVELOPE})


STATELESS_KINDS = [
    (20, lambda id: one(id, "server/discover", "result", {"_meta": ENVELOPE})),
    (8, lambda id: one(id, "tools/list", "result", {"_meta": ENVELOPE})),
    (20, enveloped),
    (8, lambda id: one(id, "tools/call", "result", {**call(BAD), "_meta": ENVELOPE})),
    (20, lambda id: one(id, "ping", "error -32601", {"_meta": ENVELOPE})),
    (6, lambda id: one(id, "server/discover", "error -32022", {
        "_meta": {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}})),
    (5, lambda id: Item(b"[1,2\n", "none error -32700")),
    (5, lambda id: Item(b'"x"\n', "none error -32600")),
]


def traffic(rng, revision, count):
    """So many items of a revision, as a seeded generator decides them."""
    kinds = STATELESS_KINDS if revision == STATELESS else handshake_kinds(revision)
    weights = [weight for weight, _ in kinds]
    items = [opening(revision)]
    for number, (_, make) in enumerate(rng.choices(kinds, weights, k=count - 1), 2):
        shape = rng.random()
        if shape < 0.7:
            id = number
        elif shape < 0.8:
            id = rng.choice([2**53 + number, -number, 2**63 - number])
        else:
            id = f"{number}-" + rng.choice(["a", "\u00e9\u2028", "\\\"\n", "\U0001f600", "x" * 300])
        items.append(make(id))
    return items


def input_of(items):
    return b"".join(item.data for item in items)


def wants_of(items):
    return [line for item in items for line in item.want]


# Pipes and processes -------------------------------------------------------------------------


class Stuck(Exception):
    """Neither side moved for too long, or the server left early."""


def exchange(server, data, lines=None, read_size=1 << 16, take=None, pause_s=0.0):
    """Writes all of it and reads so many lines meanwhile, or up to the end of stdout.

    `server` has been started with read=False. `take` gets each chunk, else all of it comes back.
    """
    out, kept = bytearray(), take is None
    take = out.extend if kept else take
    view, read_lines = memoryview(data), 0
    while view or lines is None or read_lines < lines:
        readable, writable, _ = select.select(
            [server.read_fd], [server.write_fd] if view else [], [], SILENCE_S)
        if not readable and not writable:
            raise Stuck(f"no byte moved for {SILENCE_S} s, {len(view)} bytes unsent, "
                        f"{read_lines} lines read")
        if writable:
            try:
                view = view[os.write(server.write_fd, view[: 1 << 20]) :]
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                view = memoryview(b"")
        if readable:
            chunk = os.read(server.read_fd, read_size)
            if not chunk:
                if lines is None:
                    break
                raise Stuck(f"stdout ended after {read_lines} lines of {lines}, {server.fate()}")
            read_lines += chunk.count(b"\n")
            take(chunk)
            if pause_s:
                time.sleep(pause_s)
    return bytes(out)


def told_lines(out):
    """What each line of a stdout tells; a last line without LF is not protocol."""
    lines = out.split(b"\n")
    last = lines.pop()
    return [told(line) for line in lines] + ([f"not protocol: cut {short(last, 80)}"] if last else [])


def settled_kib(server, samples=10):
    """The resident memory when it has stayed the same for a second."""
    last, same = -1, 0
    while same < samples:
        now = server.rss_kib()
        same = same + 1 if now == last else 0
        last = now
        time.sleep(0.1)
    return last


def ended(server):
    """Closes stdin and waits for the end; the exit status, or None after a long silence."""
    server.close_stdin()
    return server.exit(SILENCE_S)


def table_of_limits():
    """The limits as the manual tells them."""
    limits = {}
    with open(os.path.join(HERE, "..", "..", "src", "limits.md"), encoding="utf-8") as lines:
        for line in lines:
            cells = [cell.strip(" `\n") for cell in line.split("|")]
            if len(cells) == 5 and cells[1].isupper() and cells[2].replace(",", "").isdigit():
                limits[cells[1]] = int(cells[2].replace(",", ""))
    return limits


def memory_budget_bytes(limits):
    """The sum that src/limits.rs has under this name."""
    per_byte = limits["PARSER_BYTES_PER_FRAME_BYTE"]
    return (limits["RING_BYTES"] + limits["FRAME_PADDING_BYTES"] + limits["OUTBOX_BYTES"]
            + (limits["FRAME_BYTES_MAX"] + limits["FRAME_BYTES_WARM"]) * per_byte
            + limits["ARENA_BYTES_MAX"]
            + limits["EXECUTOR_RING_BYTES"] + limits["FRAME_PADDING_BYTES"]
            + limits["EXECUTOR_UNANSWERED_BYTES_MAX"] + limits["EXECUTOR_LINE_BYTES_MAX"]
            + limits["FRAME_BYTES_WARM"] * per_byte)
