#!/usr/bin/env python3
"""Has strace make the server's system calls fail, one at a time, and watches what it does.

First a session runs under strace undisturbed, which shows how often each call is made before the
first message and how often afterwards. Then it runs again for each row of the table below, with
that call failing in that way at that moment. Each ends as the table says:

  served   every reply comes, once and in order, exit 0, and stderr stays empty;
  late     the same, but a reply may wait for the next message or the end of input: the fault is a
           lie that no kernel tells (no data, though there is some; no room, though there is some);
  line     the replies so far are right, exit 1, and stderr has one line;
  ended    the replies so far are right, exit 0 as for a client that left, and stderr stays empty;
  either   as `late` or as `line`: the error may come behind a part that was written, and pass;

None hangs (asleep for ten seconds while a reply is owed), spins (two seconds of CPU time, where a session
needs a few hundredths) or crashes. A run in which the fault did not fall is repeated, since a
moment may pass otherwise on a busy machine.

No memory at all is not for strace to say: brk(2) tells of an error by its old value. So the
address space of a running server is limited to what it has and a little more. Typical traffic is
then served as ever; a long frame may end the server as it ends every Rust program that gets no
memory, by SIGABRT with one line.

Short counts need no strace: real ones come from pipes of one page, writes of one byte and readers
that take a few bytes, on each way in which the server reads and writes.

  faults.py -- target/release/rocco mcp
  faults.py --table              what is expected, without a run
"""

import fcntl
import os
import queue
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import proof
import harness  # which proof has made importable
from proof import Item, Tally, difference, one, opening, told_lines, wants_of
from harness import Server, short

WORKERS = 4  # a session waits far more than it works
CPU_LIMIT_S = 2.0
ASLEEP_S = 10  # a busy machine keeps a process runnable or traced, but not asleep
NUDGE_S = 1.0
ATTEMPTS = 6
REST_S = 0.25  # long enough for the server to come to rest, most of the time

# Ways in which the server is connected, and with it the calls that it makes.
#   pipes      opened anew: read and write
#   sockets    recvfrom and sendto
#   nowait     pipes that cannot be opened anew: preadv2 and pwritev2, as with most other files
#   fallback   a kernel or a file system that knows neither: poll, read and write, as on terminals
#   files      stdin and stdout are regular files: read and write
NOWAIT = ["-e", "inject=fcntl:error=EINVAL"]
FALLBACK = [*NOWAIT, "-e", "inject=preadv2:error=EOPNOTSUPP",
            "-e", "inject=pwritev2:error=EOPNOTSUPP"]
MODES = {"pipes": [], "sockets": [], "nowait": NOWAIT, "fallback": FALLBACK, "files": []}
READ_FATAL = "ENOMEM EMFILE ENOSPC EBADF"
WRITE_FATAL = "ENOMEM EMFILE ENOSPC EDQUOT EFBIG EBADF"
GONE = "EPIPE ECONNRESET"

# How the session is connected, the call, the errors, the moments, what is expected.
#   start      each time that the call is made between main and the first message, one by one;
#   first      at the first time after the first reply;
#   twice      at the first two times after the first reply;
#   middle     in the midst of the session;
#   always     at each time from the first message on;
#   second     at every second time from the first reply on;
#   end        each time that the call is made after the end of input.
TABLE = [
    ("pipes", "ioctl", "EINTR EIO ENOSYS ENOMEM", "start", "served"),
    ("pipes", "epoll_create1", "EINTR EMFILE ENFILE ENOMEM ENOSYS EIO", "start", "line"),
    ("pipes", "pipe2", "EINTR EMFILE ENFILE ENOMEM ENOSYS EIO", "start", "line"),
    ("pipes", "rt_sigaction", "EINTR EINVAL EIO ENOSYS ENOMEM", "start", "line"),
    ("pipes", "epoll_ctl", "EINTR EIO EMFILE ENOMEM ENOSPC ENOSYS EINVAL", "start", "line"),
    ("pipes", "mmap", "ENOMEM EAGAIN", "start", "served"),
    ("pipes", "pidfd_open", "EINTR EMFILE ENFILE ENOMEM ENOSYS EIO EPERM ESRCH", "always",
     "served"),
    # A pipe that cannot be opened anew is read and written in another way.
    ("pipes", "fcntl", "EINVAL EBADF ENOSYS", "start", "served"),
    ("pipes", "fstat", "EBADF ENOMEM EIO ENOSYS", "start", "served"),
    ("pipes", "openat", "EACCES EMFILE ENFILE ENOENT ENXIO EINTR", "start", "served"),
    # A server without a timer for rest gives each wait a time of its own.
    ("pipes", "timerfd_create", "EINTR EMFILE ENFILE ENOMEM ENOSYS", "start", "served"),
    ("pipes", "timerfd_settime", "EINTR EINVAL ENOMEM", "first", "line"),
    *[(wire, call, errors, moments, expected)
      for wire, read, write in (("pipes", "read", "write"), ("sockets", "recvfrom", "sendto"),
                                ("nowait", "preadv2", "pwritev2"))
      for call, errors, moments, expected in (
          (read, "EINTR", "first middle second", "served"),
          (read, "EAGAIN", "first middle second", "late"),
          (read, READ_FATAL, "first middle always", "line"),
          (read, GONE, "first middle always", "ended"),
          (read, "EIO", "first middle always", "line"),
          (write, "EINTR", "first middle second", "served"),
          # Room is asked for anew before each wait, so that it is told of though no edge comes.
          (write, "EAGAIN", "first twice", "served"),
          (write, "EAGAIN", "middle second", "late"),
          (write, GONE, "first middle always", "ended"),
      )],
    # stderr is written by the same call, so the word on a failure needs it to work again.
    ("pipes", "write", f"{WRITE_FATAL} EIO", "first middle", "line"),
    ("sockets", "sendto", f"{WRITE_FATAL} EIO", "first middle always", "line"),
    ("nowait", "pwritev2", f"{WRITE_FATAL} EIO", "first middle always", "line"),
    ("nowait", "preadv2", "EOPNOTSUPP ENOSYS EINVAL ESPIPE", "first middle always", "served"),
    ("nowait", "pwritev2", "EOPNOTSUPP ENOSYS EINVAL ESPIPE", "first middle always", "served"),
    ("pipes", "epoll_wait", "EINTR", "first middle second", "served"),
    ("pipes", "epoll_wait", "EAGAIN EIO ENOMEM EMFILE EBADF ENOSYS EINVAL", "first middle always",
     "line"),
    # The output is full, and the loop asks to be told of room.
    ("pipes", "epoll_ctl", "EINTR EIO EMFILE ENOMEM ENOSPC ENOSYS", "middle", "line"),
    ("pipes", "mmap", "ENOMEM EAGAIN", "first middle always", "served"),
    ("pipes", "mremap", "ENOMEM", "first always", "served"),
    ("pipes", "munmap", "ENOMEM EINVAL", "first middle always", "served"),
    ("pipes", "close", "EINTR EIO", "end", "served"),
    ("pipes", "rt_sigaction", "EINTR EINVAL ENOMEM", "end", "served"),
    ("pipes", "munmap", "EINVAL ENOMEM", "end", "served"),
    ("pipes", "sigaltstack", "EINVAL ENOMEM", "end", "served"),
    ("sockets", "epoll_wait", "EINTR", "first middle second", "served"),
    ("fallback", "", "", "", "served"),
    ("fallback", "ppoll", "EINTR", "first middle second", "served"),
    ("fallback", "ppoll", "ENOMEM EINVAL EFAULT ENOSYS", "first", "line"),
    # Behind the first piece of a write it counts as a write that was short.
    ("fallback", "ppoll", "ENOMEM EINVAL EFAULT ENOSYS", "middle", "either"),
    ("fallback", "read", "EINTR", "first middle second", "served"),
    ("fallback", "read", "EAGAIN", "first middle second", "late"),
    ("fallback", "read", READ_FATAL, "first middle always", "line"),
    ("fallback", "read", GONE, "first middle always", "ended"),
    ("fallback", "write", "EINTR", "first middle second", "served"),
    ("fallback", "write", "EAGAIN", "first", "served"),
    ("fallback", "write", "EAGAIN", "middle", "late"),
    ("fallback", "write", WRITE_FATAL, "first", "line"),
    ("fallback", "write", WRITE_FATAL, "middle", "either"),
    ("fallback", "write", GONE, "first always", "ended"),
    ("fallback", "epoll_wait", "EINTR", "first middle second", "served"),
    ("files", "", "", "", "served"),
    # A read of a file that fails says that the disk does, not that a client has left.
    ("files", "read", "EINTR", "always-second", "served"),
    ("files", "read", f"{READ_FATAL} EIO", "always", "line"),
    ("files", "write", "EINTR", "first second", "served"),
    # stderr is written by the same call, so the word on a failure needs it to work again.
    ("files", "write", f"{WRITE_FATAL} EIO", "first", "line"),
    ("files", "write", "EPIPE", "first always", "ended"),
    ("files", "mmap", "ENOMEM", "start", "served"),
]


def rows(table):
    """The table, one call, error and moment at a time."""
    for wire, call, errors, moments, expected in table:
        for error in errors.split() or [""]:
            for moment in moments.split() or [""]:
                yield wire, call, error, moment, expected


# The session ---------------------------------------------------------------------------------

LARGE = Item(b'{"jsonrpc":"2.0","id":20,"method":"ping","params":{"s":[' + b'"s",' * 30_000
             + b'0]}}\n', "20 result")
# Steps that are sent and whose replies are awaited. A number is a pause. The last one but one
# fills the output before anything is read.
STEPS = [
    [opening("2025-11-25")],
    [one(2, "ping", "result")], [one(3, "tools/list", "result")],
    [one(4, "tools/call", "result", proof.call(proof.BAD))],
    [one("five", "server/discover", "result", {"_meta": proof.ENVELOPE})],
    [LARGE], REST_S,
    [one(6, "ping", "result")], [Item(b"garbage\n", "none error -32700")], REST_S,
    [one(id, "tools/list", "result") for id in range(1000, 1200)],
    [one(id, "ping", "result") for id in range(2000, 2003)],
]
ITEMS = [item for step in STEPS if isinstance(step, list) for item in step]
FULL = 10  # the index of the step that fills the output


class Outcome:
    """What a session under strace came to."""

    def __init__(self):
        self.out, self.err, self.status, self.fault = b"", b"", None, ""
        self.nudged, self.trace = False, ""


class Traced(Server):
    """A server under strace, as the direct child of this process."""

    def __init__(self, argv, options, wire, folder):
        self.trace = os.path.join(folder, "trace")
        self.cpu_used = 0.0
        words = ["strace", "-D", "-f", "-q", "-e", "signal=none", "-o", self.trace, *options]
        streams = {}
        if wire == "files":
            self.files = [open(os.path.join(folder, name), mode)
                          for name, mode in (("in", "rb"), ("out", "wb"))]
            streams = {"stdin": self.files[0].fileno(), "stdout": self.files[1].fileno()}
        if wire == "sockets":
            pairs = [socket.socketpair() for _ in range(2)]
            streams = {name: theirs for name, (_, theirs) in zip(("stdin", "stdout"), pairs)}
        super().__init__([*words, *argv], read=False, **streams)
        if wire == "sockets":
            self.write_fd, self.read_fd = (ours.detach() for ours, _ in pairs)
            os.set_blocking(self.write_fd, False)
            for _, theirs in pairs:
                theirs.close()

    def watch(self):
        """Ends a spin. Whether the server still runs."""
        if self.child.poll() is not None:
            return False
        try:
            self.cpu_used = max(self.cpu_used, self.cpu_s())
        except (OSError, IndexError):
            pass
        if self.cpu_used > CPU_LIMIT_S:
            self.child.kill()
            self.child.wait()
            return False
        return True

    def is_asleep(self):
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] == "S"
        except OSError:
            return False

    def over(self):
        """Waits for the exit, watching. False if it sleeps instead."""
        asleep = None
        while self.watch():
            asleep = (asleep or time.monotonic()) if self.is_asleep() else None
            if asleep and time.monotonic() - asleep > ASLEEP_S * harness.SLOW:
                return False
            time.sleep(0.01)
        return True

    def finished_trace(self):
        """The trace, when strace has written its last word."""
        def whole():
            try:
                with open(self.trace, errors="replace") as file:
                    text = file.read()
            except OSError:
                return ""
            return text if re.search(r"\+\+\+ (exited|killed)[^\n]*\n\Z", text) else ""
        harness.until(whole, 30)
        return whole()


def session(argv, wire, options, patient):
    """Runs the session. Without patience each step waits for its replies at most a while."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        if wire == "files":
            with open(os.path.join(folder, "in"), "wb") as file:
                file.write(proof.input_of(ITEMS))
        server = Traced(argv, options, wire, folder)
        try:
            if wire != "files":
                converse(server, outcome, patient)
            if not server.over():
                outcome.fault = "a hang: the input has ended, and it sleeps"
            elif server.cpu_used > CPU_LIMIT_S:
                outcome.fault = f"a spin: {server.cpu_used:.1f} s of CPU time"
            outcome.status = server.child.poll()
            if wire == "files":
                with open(os.path.join(folder, "out"), "rb") as file:
                    outcome.out = file.read()
            if not outcome.fault:
                outcome.trace = server.finished_trace()
        finally:
            if wire == "files":
                for file in server.files:
                    file.close()
            server.finish()
        outcome.err = bytes(server.err)
    return outcome


def converse(server, outcome, patient):
    out, wanted = bytearray(), 0
    for at, step in enumerate(STEPS):
        if not isinstance(step, list):
            time.sleep(step)
            continue
        data = b"".join(item.data for item in step)
        wanted += sum(len(item.want) for item in step)
        if at == FULL:
            write_all(server, data)
            time.sleep(0.1)
            data = b""
        if not move(server, data, out, wanted, None if patient else NUDGE_S, outcome):
            break
    server.close_stdin()
    move(server, b"", out, None, None, outcome)
    outcome.out = bytes(out)


def write_all(server, data):
    view = memoryview(data)
    while view and server.watch():
        if select.select([], [server.write_fd], [], 0.2)[1]:
            try:
                view = view[os.write(server.write_fd, view) :]
            except BlockingIOError:
                pass
            except OSError:
                return


def move(server, data, out, lines, limit_s, outcome):
    """Sends data and reads up to so many lines in all, or to the end; whether to go on."""
    view, quiet, read_lines = memoryview(data), time.monotonic(), out.count(b"\n")
    asleep = None
    while view or lines is None or read_lines < lines:
        readable, writable, _ = select.select(
            [server.read_fd], [server.write_fd] if view else [], [], 0.2)
        if writable:
            try:
                view = view[os.write(server.write_fd, view) :]
                quiet = time.monotonic()
            except BlockingIOError:
                pass
            except OSError:
                view = memoryview(b"")
        if readable:
            chunk = os.read(server.read_fd, 1 << 16)
            if not chunk:
                return False
            out += chunk
            read_lines += chunk.count(b"\n")
            quiet = time.monotonic()
        # strace holds the other ends of the pipes for a moment longer than the server.
        if not server.watch() and not readable and not select.select([server.read_fd], [], [], 1)[0]:
            return False
        silent_s = time.monotonic() - quiet
        if limit_s is not None and not view and lines is not None and silent_s > limit_s:
            outcome.nudged = True
            return True
        sleeps = silent_s > 0.1 and server.is_asleep()
        asleep = (asleep or time.monotonic()) if sleeps else None
        if asleep and time.monotonic() - asleep > ASLEEP_S * harness.SLOW:
            outcome.fault = (f"a hang: it has slept for {ASLEEP_S} s with {len(view)} bytes unsent "
                             f"and {read_lines} of {lines or 'all'} lines read")
            server.child.kill()
            return False
    return True


# The undisturbed run -------------------------------------------------------------------------


class Calls:
    """How often each call is made in each part of a session, counted from the process' start."""

    def __init__(self, trace, wire):
        self.numbers = {}  # (call, part) -> which times
        counts, part = {}, "loader"
        # A pipe that was opened anew has a number of its own.
        anew = {fd: re.search(rf'"/proc/self/fd/{fd}".* = (\d+)$', trace, re.M) for fd in (0, 1)}
        stdin, stdout = (found[1] if found and wire == "pipes" else fd
                         for fd, found in anew.items())
        reader, writer = {
            "pipes": ("read", "write"), "sockets": ("recvfrom", "sendto"),
            "nowait": ("preadv2", "pwritev2"), "fallback": ("preadv2", "write"),
            "files": ("read", "write")}[wire]
        reader, writer = f"{reader}({stdin},", f"{writer}({stdout},"
        last = ("read(0,", "preadv2(0,", reader)
        for line in trace.splitlines():
            found = re.match(r"\d+ +(\w+)\(", line)
            if not found:
                continue
            words = line.split(None, 1)[1]
            call = found[1]
            counts[call] = counts.get(call, 0) + 1
            # The question whether stdin is a terminal is the first thing that the program asks.
            if part == "loader" and call == "ioctl":
                part = "start"
            elif part == "start" and words.startswith(reader):
                part = "opening"
            elif part == "steady" and words.startswith(last) and words.endswith("= 0"):
                self.add(call, part, counts)
                part = "end"
                continue
            self.add(call, part, counts)
            if part == "opening" and words.startswith(writer):
                part = "steady"

    def add(self, call, part, counts):
        self.numbers.setdefault((call, part), []).append(counts[call])

    def at(self, call, *parts):
        return sorted(n for part in parts for n in self.numbers.get((call, part), []))

    def whens(self, call, moment):
        """The values of strace's `when` for a moment; none if the call is not made then."""
        if moment == "start":
            return [str(n) for n in self.at(call, "start")]
        if moment == "end":
            return [str(n) for n in self.at(call, "end")]
        served = self.at(call, "opening", "steady")
        if not served:
            return []
        steady = self.at(call, "steady") or served
        if moment == "first":
            return [str(steady[0])]
        if moment == "twice":
            return [f"{steady[0]}..{steady[0] + 1}"]
        if moment == "middle":
            return [str(steady[len(steady) // 2])]
        if moment == "second":
            return [f"{steady[0]}+2"]
        if moment == "always-second":
            return [f"{served[0]}+2"]
        return [f"{served[0]}+"]


def injections(call, error, when):
    return ["-e", f"inject={call}:error={error}:when={when}"]


# Judging -------------------------------------------------------------------------------------


def fault_of(outcome, expected):
    """What is wrong with an outcome, or nothing."""
    if outcome.fault:
        return outcome.fault
    want, lines = wants_of(ITEMS), outcome.out.split(b"\n")
    cut = lines.pop()
    came = [proof.told(line) for line in lines]
    if expected == "either":
        expected = "line" if outcome.status == 1 else "late"
    whole = expected in ("served", "late")
    if expected == "ended" and came and came[-1] == "none error -32700":
        came.pop()  # a line that the end has cut is answered as the last one
    wrong = difference(want, came, whole)
    if wrong:
        return wrong
    if whole and cut:
        return f"the last line is cut: {short(cut, 80)}"
    if outcome.status != (expected == "line"):
        return (f"exit {outcome.status} after {len(came)} of {len(want)} replies, "
                f"stderr: {short(outcome.err)}")
    said = outcome.err.splitlines()
    if len(said) != (expected == "line"):
        return f"{len(said)} lines on stderr: {short(outcome.err)}"
    return "a reply came only after the next message" if outcome.nudged and expected == "served" \
        else ""


def inject(argv, wire, call, error, moment, expected, when):
    """Runs one row at one of its times; what is wrong, or nothing."""
    for _ in range(ATTEMPTS):
        outcome = session(argv, wire, MODES[wire] + injections(call, error, when),
                          expected not in ("late", "either"))
        fell = [line for line in outcome.trace.splitlines()
                if "(INJECTED)" in line and f" {call}(" in line]
        if fell or outcome.fault:
            return fault_of(outcome, expected)
    return f"the fault did not fall in {ATTEMPTS} runs"


# Short counts --------------------------------------------------------------------------------


def short_counts(argv, tally, folder):
    """Real ones: everything in pieces, on each way to read and write."""
    items = [opening("2025-11-25"), one(2, "tools/list", "result"),
             one("\u00e9", "tools/call", "result", proof.call(proof.BAD)),
             Item(b"x\n", "none error -32700"), one(3, "tools/list", "result")]
    data = proof.input_of(items)
    under = ["strace", "-D", "-f", "-qq", "-e", "signal=none", "-e", "trace=none", "-o",
             os.path.join(folder, "short")]
    for how, prefix in (("pipes", []), ("nowait", [*under, *NOWAIT]),
                        ("fallback", [*under, *FALLBACK])):
        for name, write_size, read_size, times in (
                ("writes of one byte", 1, 1 << 16, 1), ("a reader of 7 bytes", 1 << 16, 7, 3),
                ("pipes of one page", 1 << 16, 1000, 60)):
            with Server([*prefix, *argv], read=False) as server:
                for fd in (server.write_fd, server.read_fd):
                    fcntl.fcntl(fd, proof.F_SETPIPE_SZ, 4096)
                try:
                    out = b""
                    if write_size == 1:
                        for at in range(len(data)):
                            server.send(data[at : at + 1], proof.SILENCE_S)
                    else:
                        out = proof.exchange(server, data * times,
                                             len(wants_of(items)) * times, read_size)
                    server.close_stdin()
                    out += proof.exchange(server, b"", None, read_size)
                    status = server.exit(proof.SILENCE_S)
                    wrong = difference(wants_of(items) * times, told_lines(out))
                    wrong = wrong or (status != 0 or server.err) and server.fate()
                except (proof.Stuck, harness.Failed) as stuck:
                    wrong = str(stuck)
            tally.note(f"short counts, {how}, {name}", wrong, f"{len(out)} bytes")


# No memory -----------------------------------------------------------------------------------


def starve(argv, tally):
    """A running server gets so many KiB and no more."""
    small = [item for item in ITEMS[1:] if len(item.data) < 1000]
    for room_kib in (0, 64, 256, 1024, 4096, 65_536):
        for name, items in (("small frames", small * 5), ("a long frame", ITEMS[1:])):
            with Server(argv, read=False, env={"RUST_BACKTRACE": "0"}) as server:
                try:
                    proof.exchange(server, ITEMS[0].data, 1)
                    limit = (server._status("VmSize:") + room_kib) << 10
                    resource.prlimit(server.pid, resource.RLIMIT_AS, (limit, limit))
                    out = bytearray()
                    proof.exchange(server, proof.input_of(items), len(wants_of(items)),
                                   take=out.extend)
                except proof.Stuck:
                    pass  # it has ended, or the reply that is missing is found so below
                status = proof.ended(server)
                came = told_lines(bytes(out))
                starved = (status == -signal.SIGABRT and name == "a long frame"
                           and room_kib < 65_536)
                wrong = difference(wants_of(items), came, not starved)
                said = bytes(server.err).splitlines()
                # Rust adds a second line on how to get a backtrace.
                told = starved and said and said[0].startswith(b"memory allocation")
                if not wrong and (status != 0 and not starved or bool(said) != bool(told)):
                    wrong = f"exit {status}, stderr: {short(bytes(server.err))}"
            tally.note(f"no memory but {room_kib} KiB, {name}", wrong,
                       "SIGABRT with a word" if starved else f"{len(came)} replies")


# Everything ----------------------------------------------------------------------------------


def run_table(argv, tally, only, whole):
    work, calls = queue.Queue(), {}
    for wire, mode in MODES.items():
        outcome = session(argv, wire, mode, True)
        calls[wire] = Calls(outcome.trace, wire)
        wrong = fault_of(outcome, "served")
        made = sorted({call for call, part in calls[wire].numbers if part != "loader"})
        if not tally.note(f"undisturbed on {wire}", wrong, "calls after the loader: "
                          + " ".join(made)):
            return 0
        known = {call for _, call, *_ in TABLE}
        # What cannot fail, or what the table has under another way of connecting.
        known |= {"brk", "getppid", "exit_group", "read", "write", "poll", "mprotect",
                  "rt_sigprocmask"}
        new = [call for call in made if call not in known]
        tally.note(f"the table knows every call on {wire}", new and ", ".join(new))
    groups = {}
    for wire, call, error, moment, expected in rows(TABLE):
        name = f"{call or 'no fault'} {moment}, {wire}, {expected}"
        if not call or (only and not re.search(only, f"{name} {error}")):
            continue
        whens = calls[wire].whens(call, moment)
        group = groups.setdefault(name, {"faults": [], "left": 0, "runs": 0, "errors": []})
        if not whens:
            if not group["errors"]:
                tally.note(f"fault {name}", "the server does not make this call at that moment")
            group["errors"].append(error)
            continue
        if moment in ("start", "end") and not whole:
            # The times of a start differ in what they are for, so each gets one error at least.
            at = sum(map(ord, error)) % len(whens)
            whens = whens if error in ("ENOMEM", "EINVAL") else whens[at : at + 1]
        group["errors"].append(error)
        for when in whens:
            group["left"] += 1
            group["runs"] += 1
            work.put((name, (wire, call, error, moment, expected, when)))
    injected, lock = sum(group["runs"] for group in groups.values()), threading.Lock()

    def worker():
        while True:
            try:
                name, row = work.get_nowait()
            except queue.Empty:
                return
            try:
                wrong = inject(argv, *row)
            except Exception as error:  # a fault of this script must not pass for a pass
                wrong = f"{type(error).__name__}: {error}"
            group = groups[name]
            with lock:
                group["left"] -= 1
                if wrong:
                    group["faults"].append(f"{row[2]} at time {row[5]}: {wrong}")
                if not group["left"]:
                    tally.note(f"fault {name}", group["faults"] and "; ".join(group["faults"]),
                               f"{' '.join(dict.fromkeys(group['errors']))}, {group['runs']} runs")

    threads = [threading.Thread(target=worker) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return injected


def main():
    options = proof.command_line(__doc__, lambda parser: (
        parser.add_argument("--table", action="store_true", help="print what is expected and end"),
        parser.add_argument("--only", metavar="PATTERN",
                            help="only rows that match: 'CALL MOMENT, WIRE, EXPECTED ERROR'"),
        parser.add_argument("--long", action="store_true",
                            help="each error at each time that a call is made at start and end")))
    if options.table:
        print(f"{'connected':<10}{'call':<16}{'error':<14}{'moment':<15}expected")
        for wire, call, error, moment, expected in rows(TABLE):
            print(f"{wire:<10}{call:<16}{error:<14}{moment:<15}{expected}")
        return 0
    proof.needs("strace", "ROCCO_REQUIRE_STRACE")
    tally = Tally()
    try:
        injected = run_table(options.server, tally, options.only, options.long)
        if not options.only:
            with tempfile.TemporaryDirectory() as folder:
                short_counts(options.server, tally, folder)
            starve(options.server, tally)
        tally.note("faults were injected", not injected and "none", f"{injected} runs with a fault")
    except OSError as error:
        tally.note("the server can be started", str(error))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
