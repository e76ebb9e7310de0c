"""A server under test as a child on pipes, and the strict reading of what it wrote.

Everything is bounded: every wait has a deadline, every capture a size. Only children started
here are ever signalled. Linux, standard library only.
"""

import faulthandler
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time

PIPE = subprocess.PIPE
NULL = subprocess.DEVNULL
SLOW = 1.0  # run.py --slow: every deadline is multiplied by it
CAPTURE_LIMIT = 256 << 20
STDERR_LIMIT = 64 << 10
RECORD = None  # run.py --record: called with (id, stdin, stdout) of each run
RECORD_LIMIT = 1 << 20  # a run that was sent or said more is not recorded
RUNNING = threading.local()  # .id: the case that this thread is running
# Rust's panic status, and the signals (as a parent and as a shell sees them) of a crash.
CRASHES = {101} | {s for n in (4, 5, 6, 7, 8, 11, 31) for s in (-n, 128 + n)}

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


def end_after(seconds):
    """Ends this program, if it hangs, and prints where each of its threads stands."""
    faulthandler.dump_traceback_later(seconds, exit=True)


class Failed(Exception):
    """What was wanted, and what came."""

    def __init__(self, wanted, came):
        super().__init__(f"wanted {wanted}; came {came}")


def check(holds, wanted, came):
    if not holds:
        raise Failed(wanted, came)


def short(value, limit=160):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[:limit] + f"...({len(text)})"


def until(predicate, seconds, step=0.005):
    """Polls until the predicate holds; whether it did before the deadline."""
    end = time.monotonic() + seconds * SLOW
    while not predicate():
        if time.monotonic() > end:
            return bool(predicate())
        time.sleep(step)
    return True


# Messages ------------------------------------------------------------------------------------

INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


def compact(message):
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def request(id, method, params=None):
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    return compact(message) + b"\n"


def initialize(id=1, version="2025-11-25"):
    client = {"name": "t", "version": "0"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return request(id, "initialize", params)


def ping(id):
    return b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % id


HANDSHAKE = initialize() + INITIALIZED


# Reading strictly ----------------------------------------------------------------------------


class Exact(int):
    """An integer that knows how it was written: as an id, -0 is not 0."""

    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.text = text
        return self


def _constant(token):
    raise ValueError(f"{token} is not JSON")


def _members(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate member")
    return members


def parse(line):
    """One line of stdout as strict JSON; ValueError says what is wrong with it."""
    if b"\r" in line:
        raise ValueError("CR in the line")
    return json.loads(line.decode("utf-8"), parse_int=Exact, parse_constant=_constant,
                      object_pairs_hook=_members)


def key(id):
    """Ids as text, so that 1, "1" and 1.0 stay three."""
    return id.text if isinstance(id, Exact) else json.dumps(id)


def messages(out, arrays=False, notes=False):
    """The messages in a stdout, and the faults that make it no MCP stdout.

    Arrays are allowed where batches are, notifications where some are expected.
    """
    found, faults = [], []
    lines = out.split(b"\n")
    if lines.pop():
        faults.append("stdout does not end in LF")
    for line in lines:
        try:
            value = parse(line)
        except (ValueError, RecursionError) as error:
            faults.append(f"not a JSON line ({error}): {short(line)}")
            continue
        for message in value if arrays and isinstance(value, list) and value else [value]:
            fault = shape_fault(message, notes)
            if fault:
                faults.append(f"{fault}: {short(line)}")
            else:
                found.append(message)
    return found, faults


def shape_fault(message, notes=False):
    """Why this is not a response of a server, nor an expected notification, or None."""
    if not isinstance(message, dict):
        return "not an object"
    if message.get("jsonrpc") != "2.0":
        return "jsonrpc is not 2.0"
    if "method" in message:
        expected = notes and "id" not in message and isinstance(message["method"], str)
        return None if expected else "a request or notification from the server"
    if ("result" in message) == ("error" in message):
        return "not exactly one of result and error"
    if "id" in message:
        id = message["id"]
        if isinstance(id, bool) or not isinstance(id, (str, int)):
            return "id is neither string nor integer"
    elif "result" in message:
        return "result without id"
    if "result" in message:
        return None if isinstance(message["result"], dict) else "result is not an object"
    error = message["error"]
    if not isinstance(error, dict):
        return "error is not an object"
    code = error.get("code")
    if isinstance(code, bool) or not isinstance(code, int):
        return "error code is no integer"
    return None if isinstance(error.get("message"), str) else "error message is no string"


# The child -----------------------------------------------------------------------------------


class Server:
    """One run of the server.

    `shell` is a prefix such as "ulimit -s 256; exec" put before the command. stdin, stdout and
    stderr default to fresh pipes, drained by threads; descriptors given instead are used as they
    are. With read=False stdout is left alone until `drain()`.
    """

    def __init__(self, argv, *, shell=None, env=None, stdin=PIPE, stdout=PIPE, stderr=PIPE,
                 read=True):
        self.argv = list(argv) if shell is None else ["sh", "-c", shell + ' "$@"', "sh", *argv]
        self.write_fd = self.read_fd = self.err_fd = None
        self.out, self.err = bytearray(), bytearray()
        self.seen = {}  # id key -> number of replies
        self.lines = 0
        self.eof = False
        self._tail = 0
        self._sent = bytearray()
        self._record_limit = None
        if RECORD is not None and stdin is PIPE and stdout is PIPE:
            self._record_limit = RECORD_LIMIT
        self._changed = threading.Condition()
        self._threads = []
        ours = []
        if stdin is PIPE:
            stdin, self.write_fd = os.pipe()
            os.set_blocking(self.write_fd, False)
            ours.append(stdin)
        if stdout is PIPE:
            self.read_fd, stdout = os.pipe()
            ours.append(stdout)
        if stderr is PIPE:
            self.err_fd, stderr = os.pipe()
            ours.append(stderr)
        try:
            self.child = subprocess.Popen(
                self.argv, stdin=stdin, stdout=stdout, stderr=stderr,
                env={**os.environ, **(env or {})})
        finally:
            for fd in ours:
                os.close(fd)
        self.pid = self.child.pid
        if self.err_fd is not None:
            self._spawn(self._read_err)
        if read and self.read_fd is not None:
            self.drain()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.finish()

    def _spawn(self, body):
        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        self._threads.append(thread)

    def drain(self):
        """Starts reading stdout."""
        self._spawn(self._read_out)

    def _read_err(self):
        try:
            while chunk := os.read(self.err_fd, 1 << 16):
                self.err += chunk[: max(0, STDERR_LIMIT - len(self.err))]
        except OSError:
            pass

    def _read_out(self):
        try:
            while len(self.out) < CAPTURE_LIMIT:
                try:
                    chunk = os.read(self.read_fd, 1 << 16)
                except BlockingIOError:  # one socket for both, made nonblocking for writing
                    select.select([self.read_fd], [], [], 0.05)
                    continue
                if not chunk:
                    break
                self.take(chunk)
        except OSError:
            pass
        with self._changed:
            self.eof = True
            self._changed.notify_all()

    def take(self, chunk):
        """Adds to the captured stdout; scenarios that read by themselves call it too."""
        with self._changed:
            self.out += chunk
            while (end := self.out.find(b"\n", self._tail)) >= 0:
                line = bytes(self.out[self._tail : end])
                self._tail = end + 1
                self.lines += 1
                try:
                    value = json.loads(line, parse_int=Exact)
                except (ValueError, RecursionError):
                    continue
                for message in value if isinstance(value, list) else [value]:
                    if isinstance(message, dict) and "id" in message:
                        k = key(message["id"])
                        self.seen[k] = self.seen.get(k, 0) + 1
            self._changed.notify_all()

    # Writing

    def send(self, data, seconds=10.0):
        """Writes all, waiting for room; False when the server is gone. Failed when stuck."""
        if self._record_limit is not None:
            self._sent += data
            if len(self._sent) > self._record_limit:
                self._record_limit = None
        view, end = memoryview(data), time.monotonic() + seconds * SLOW
        while view:
            try:
                view = view[os.write(self.write_fd, view) :]
            except BlockingIOError:
                if time.monotonic() > end:
                    raise Failed("stdin to be read", f"{len(view)} of {len(data)} bytes left "
                                 f"after {seconds * SLOW:.0f} s") from None
                select.select([], [self.write_fd], [], 0.05)
            except (BrokenPipeError, ConnectionResetError):
                return False
        return True

    def close_stdin(self):
        if self.write_fd is not None:
            os.close(self.write_fd)
            self.write_fd = None

    def read_some(self, seconds, size=1 << 16):
        """With read=False: one read of stdout; False at its end or the deadline."""
        if not select.select([self.read_fd], [], [], seconds * SLOW)[0]:
            return False
        try:
            chunk = os.read(self.read_fd, size)
        except ConnectionResetError:
            chunk = b""
        self.take(chunk)
        self.eof = self.eof or not chunk
        return bool(chunk)

    def trickle(self, lines, size, pause_s, seconds):
        """With read=False: slow small reads until so many lines are there."""
        end = time.monotonic() + seconds * SLOW
        while self.lines < lines and time.monotonic() < end and self.read_some(2, size):
            time.sleep(pause_s)

    def close_stdout(self):
        """For read=False only: a reader blocked in read(2) would keep the pipe alive."""
        os.close(self.read_fd)
        self.read_fd = None

    # Waiting

    def wait(self, predicate, seconds):
        """Waits on the captured stdout; whether the predicate came to hold."""
        end = time.monotonic() + seconds * SLOW
        with self._changed:
            while not predicate():
                left = end - time.monotonic()
                if left <= 0 or self.eof:
                    return bool(predicate())
                self._changed.wait(min(left, 0.1))
        return True

    def answered(self, ids, seconds=10.0):
        wanted = [key(id) for id in ids]
        return self.wait(lambda: all(k in self.seen for k in wanted), seconds)

    def expect(self, id, seconds=10.0):
        check(self.answered([id], seconds), f"a reply to id {id} in {seconds * SLOW:g} s",
              f"{self.lines} lines, {self.fate()}")

    def handshake(self):
        self.send(HANDSHAKE)
        self.expect(1)

    def exit(self, seconds=5.0):
        """The exit status, or None when it is still running at the deadline."""
        try:
            return self.child.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            return None

    def must_exit(self, seconds=5.0, statuses=None):
        status = self.exit(seconds)
        wanted = "exit" if statuses is None else f"exit {statuses}"
        check(status is not None, f"{wanted} in {seconds * SLOW:g} s", "still running")
        check(statuses is None or status in statuses, wanted, f"exit {status}")
        return status

    def must_end(self, seconds=5.0):
        """It exits, however it likes but not by a crash."""
        status = self.must_exit(seconds)
        check(status not in CRASHES, "an orderly exit", f"{self.fate()}")

    def must_serve(self, id, seconds=10):
        self.send(ping(id))
        self.expect(id, seconds)

    def must_live(self):
        check(self.child.poll() is None, "a running server", self.fate())

    def fate(self):
        status = self.child.poll()
        text = "running" if status is None else f"exit {status}"
        err = bytes(self.err).decode("utf-8", "replace").strip().splitlines()
        return text + (f", stderr: {short(err[-1])}" if err else "")

    # Weighing

    def _status(self, field):
        with open(f"/proc/{self.pid}/status") as file:
            for line in file:
                if line.startswith(field):
                    return int(line.split()[1])
        return 0

    def rss_kib(self):
        return self._status("VmRSS:")

    def peak_kib(self):
        return self._status("VmHWM:")

    def cpu_s(self):
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def signal(self, number):
        self.child.send_signal(number)

    # Ending

    def finish(self):
        self.close_stdin()
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            pass
        for thread in self._threads:
            thread.join(1.0)
        for fd in (self.read_fd, self.err_fd):
            if fd is not None:
                os.close(fd)
        self.read_fd = self.err_fd = None
        if self._record_limit is not None and len(self.out) <= self._record_limit:
            RECORD(RUNNING.id, bytes(self._sent), bytes(self.out))
        self._record_limit = None


def collected(server, seconds=5.0, statuses=(0,)):
    """Closes stdin, waits for the exit and the rest of stdout; its messages, which must be pure."""
    server.close_stdin()
    server.must_exit(seconds, statuses)
    server.wait(lambda: server.eof, 5)
    found, faults = messages(bytes(server.out))
    check(not faults, "only responses on stdout", "; ".join(faults[:3]))
    return found


def want_ids(found, ids):
    """Exactly one result to each id, and nothing else."""
    came = {}
    for message in found:
        k = key(message["id"]) if "id" in message else "none"
        check("result" in message, f"a result to id {k}", short(json.dumps(message)))
        came[k] = came.get(k, 0) + 1
    wanted = [key(id) for id in ids]
    missing = [k for k in wanted if k not in came]
    check(not missing, f"replies to all {len(wanted)} ids", f"{len(missing)} missing, first: "
          f"{missing[:3]}")
    extra = list(set(came) - set(wanted)) + [k for k, n in came.items() if n > 1]
    check(not extra, "one reply per id", f"extra or doubled: {extra[:3]}")


def gone(pid):
    """Whether a process is no more, or only a zombie that nobody has reaped."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def end_process(pid):
    """Kills a descendant that a scenario learnt the number of."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


# What several scenarios do ------------------------------------------------------------------


def closed_socket(argv, last=b""):
    """One socket pair as stdin and stdout, closed by the client with replies unread."""
    ours, theirs = socket.socketpair()
    with Server(argv, stdin=theirs.fileno(), stdout=theirs.fileno()) as server:
        theirs.close()
        ours.sendall(HANDSHAKE + request(2, "tools/list"))
        time.sleep(0.2)
        if last:
            ours.sendall(last)
        ours.close()
        server.must_end()


def stuff_stdout(server):
    """Requests until nothing more can be written to a stdout that nobody reads."""
    server.send(HANDSHAKE)
    check(server.read_some(10), "a reply to initialize", server.fate())
    try:
        server.send(b"".join(request(i, "tools/list") for i in range(10, 1010)), 0.5)
    except Failed:
        pass  # it stopped reading, which is one way to be bounded
    time.sleep(0.2)
    server.must_live()


def idle_signal(argv, number):
    """One signal ends an idle server, though stdin is open."""
    with Server(argv) as server:
        server.handshake()
        time.sleep(0.1)
        server.signal(number)
        server.must_end()


class Terminal:
    """A server whose three streams are a terminal without echo and without ^C."""

    def __init__(self, argv, nonblocking=False):
        self.master, self.slave = pty.openpty()
        os.set_blocking(self.slave, not nonblocking)
        attributes = termios.tcgetattr(self.slave)
        attributes[3] &= ~(termios.ECHO | termios.ISIG)
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        self.server = Server(argv, stdin=self.slave, stdout=self.slave, stderr=self.slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.finish()
        self.hang_up()
        os.close(self.slave)

    def hang_up(self):
        if self.master is not None:
            os.close(self.master)
            self.master = None

    def type(self, data):
        os.write(self.master, data)

    def expect(self, text, seconds=10):
        seen, end = b"", time.monotonic() + seconds * SLOW
        while text not in seen and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                seen += os.read(self.master, 1 << 16)
        check(text in seen, f"{text!r} on the terminal", short(seen))


class SocketServer(Server):
    """A server on socket pairs, as Node gives them; `one` pair for both, if so wished."""

    def __init__(self, argv, one=False, read=True, buffer_bytes=None):
        self.ours, theirs = socket.socketpair()
        out_ours, out_theirs = (self.ours, theirs) if one else socket.socketpair()
        if buffer_bytes:
            out_theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        super().__init__(argv, stdin=theirs.fileno(), stdout=out_theirs.fileno())
        self.write_fd, self.read_fd = os.dup(self.ours.fileno()), os.dup(out_ours.fileno())
        os.set_blocking(self.write_fd, False)
        for end in {theirs, out_theirs, out_ours} - {self.ours}:
            end.close()
        if read:
            self.drain()

    def half_close(self):
        self.ours.shutdown(socket.SHUT_WR)

    def finish(self):
        self.ours.close()
        super().finish()


# argv: who else holds the pipes ("none", "in", "both"), how the server is started ("direct",
# "wrapped": as the child of a shell), the server. Prints the ids of the process that it started
# and of the sibling.
ORPHAN_CLIENT = """
import subprocess, sys
leak, start, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
if start == "wrapped":
    argv = ["sh", "-c", '"$@"; exit $?', "sh", *argv]
child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
sibling = 0
if leak != "none":
    held = [child.stdin.fileno()] + [child.stdout.fileno()] * (leak == "both")
    sibling = subprocess.Popen(["sleep", "60"], pass_fds=held, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL).pid
child.stdin.write(sys.stdin.buffer.readline() + sys.stdin.buffer.readline())
child.stdin.flush()
child.stdout.readline()
print(child.pid, sibling, flush=True)
sys.stdin.read()
"""


def child_of(parent):
    """The only child of a process, or 0."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    return int(name)
        except OSError:
            pass
    return 0


class Orphan:
    """A server whose client is another process, which can be killed."""

    def __init__(self, argv, leak="none", wrapped=False):
        self.pid = self.wrapper = self.sibling = 0
        start = "wrapped" if wrapped else "direct"
        self.client = subprocess.Popen(
            [sys.executable, "-c", ORPHAN_CLIENT, leak, start, *argv], stdin=PIPE, stdout=PIPE,
            stderr=NULL)
        self.client.stdin.write(HANDSHAKE)
        self.client.stdin.flush()
        if select.select([self.client.stdout], [], [], 10 * SLOW)[0]:
            words = self.client.stdout.readline().split()
            if len(words) == 2:
                self.pid, self.sibling = int(words[0]), int(words[1])
        if wrapped and self.pid:
            self.wrapper, self.pid = self.pid, child_of(self.pid)

    def __enter__(self):
        if not self.pid:
            self.__exit__()
            raise Failed("a handshake through another process", "none")
        return self

    def __exit__(self, *_):
        self.kill_client()
        for pid in (self.pid, self.wrapper, self.sibling):
            if pid and not gone(pid):
                end_process(pid)

    def kill_client(self):
        if self.client.poll() is None:
            self.client.kill()
        self.client.wait(5)
        for stream in (self.client.stdin, self.client.stdout):
            try:
                stream.close()
            except OSError:
                pass

    def must_be_gone(self, seconds=5):
        check(until(lambda: gone(self.pid), seconds), f"exit in {seconds * SLOW:g} s",
              "still running")


# Scenarios -----------------------------------------------------------------------------------

SCENARIOS = {}


def scenario(id, source, alone=False):
    """Registers a function of argv. `alone` keeps other work off the machine meanwhile."""

    def register(body):
        SCENARIOS[id] = (body, source, alone)
        return body

    return register
