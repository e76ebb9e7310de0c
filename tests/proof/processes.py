#!/usr/bin/env python3
"""A hundred sessions at once, of which some are killed and some lose their client.

Each session is of one revision, over pipes, socket pairs or a terminal, and started directly or
through a shell that stays. A tenth of the servers get SIGKILL at a moment that the seed decides,
another tenth lose their parent while the client's pipe stays open, and another tenth lose it while
a third process holds that pipe. Afterwards:

  every session that was left alone, or lost only its parent, has got each reply once, in order,
  and a killed one a prefix;
  no process that was started here, by whomever, is left;
  this process has as many descriptors as before;
  no shared-memory object is left;
  the flags of terminals, pipes and sockets are as they were.

  processes.py --seed 7 --rounds 3 -- target/release/rocco mcp
"""

import bisect
import errno
import fcntl
import os
import pty
import random
import select
import signal
import socket
import subprocess
import sys
import termios
import time

import proof
import harness  # which proof has made importable
from proof import Tally, difference, told, traffic, wants_of
from harness import end_process, gone, short, until

WIRES = ["pipes", "pipes", "sockets", "socket", "terminal"]
STARTS = ["direct", "direct", "wrapped"]
# What happens to a session, how often in a hundred.
FATES = {"left": 70, "killed": 10, "parent killed": 10, "holder left": 10}
MARK = "ROCCO_PROOF_MARK"
SHELL = ["sh", "-c", '"$@"; exit $?', "sh"]
HOLDING_SHELL = ["sh", "-c", 'sleep 3600 </dev/null >/dev/null 2>&1 & "$@"; exit $?', "sh"]
# Where data moves in pieces of any size, so that frames are cut anywhere.
PIECES = [1, 2, 3, 7, 100, 1000, 4096, 20_000, 65_536]
UNREAD_LINES = 20  # of at most 3 KiB, so that a pipe holds them
TERMINAL_LINE_BYTES = 4000  # a terminal takes no longer line


class Session:
    """One client: what it sends, what it is owed and what has come."""

    def __init__(self, number, rng, fate, argv, frames, mark):
        self.number, self.rng, self.fate = number, rng, fate
        self.revision = rng.choice(proof.REVISIONS)
        self.wire = rng.choice(WIRES)
        self.start = rng.choice(STARTS)
        if fate == "holder left" and self.wire == "terminal":
            self.wire = "pipes"
        if fate in ("parent killed", "holder left"):
            self.start = "wrapped"
        items = traffic(rng, self.revision, frames)
        if self.wire == "terminal":
            items = [item for item in items if len(item.data) < TERMINAL_LINE_BYTES]
        self.items, self.want = items, wants_of(items)
        self.data = proof.input_of(items)
        # How many bytes are sent before the blow falls; with all of them sent, it falls on a
        # server that writes, or rests.
        self.blow_at = rng.choice([0, rng.randrange(len(self.data)), len(self.data)])
        self.sent, self.out, self.fault, self.lines = 0, bytearray(), "", 0
        self.ends, self.owed = [], [0]  # where each item ends, and the replies owed up to there
        for item in items:
            self.ends.append((self.ends or [0])[-1] + len(item.data))
            self.owed.append(self.owed[-1] + len(item.want))
        self.closed = self.eof = self.struck = False
        self.kept, self.before = [], []
        self.open(argv, mark)

    def name(self):
        return (f"session {self.number} ({self.revision}, {self.wire}, {self.start}, "
                f"{self.fate}{f' at {self.blow_at}' if self.fate != 'left' else ''})")

    def open(self, argv, mark):
        ours = []
        if self.wire == "terminal":
            master, slave = pty.openpty()
            attributes = termios.tcgetattr(slave)
            attributes[3] &= ~(termios.ECHO | termios.ISIG)
            attributes[1] &= ~termios.OPOST
            termios.tcsetattr(slave, termios.TCSANOW, attributes)
            stdin = stdout = slave
            self.write_fd, self.read_fd = master, os.dup(master)
            ours = [slave]
        elif self.wire == "pipes":
            stdin, self.write_fd = os.pipe()
            self.read_fd, stdout = os.pipe()
            ours = [stdin, stdout]
        else:
            near, far = socket.socketpair()
            near_out, far_out = (near, far) if self.wire == "socket" else socket.socketpair()
            self.write_fd, self.read_fd = os.dup(near.fileno()), os.dup(near_out.fileno())
            stdin, stdout = os.dup(far.fileno()), os.dup(far_out.fileno())
            ours = [stdin, stdout]
            for end in {near, far, near_out, far_out}:
                end.close()
        # A duplicate of the server's end shows its flags when the server is gone. On a pipe it
        # also keeps the end open, so that the exit is what tells of the end; that is well so.
        if self.wire == "terminal" or self.rng.random() < 0.3:
            self.kept = [os.dup(stdin), os.dup(stdout)]
            self.before = [flags(fd) for fd in self.kept]
        prefix, held = [], ()
        if self.start == "wrapped":
            prefix = SHELL
        if self.fate == "holder left":
            prefix, held = HOLDING_SHELL, (self.write_fd,)
        self.child = subprocess.Popen(
            [*prefix, *argv], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE,
            pass_fds=held, env={**os.environ, MARK: mark})
        for fd in ours:
            os.close(fd)
        os.set_blocking(self.write_fd, False)
        os.set_blocking(self.read_fd, False)

    # While it runs

    def wants_to_write(self):
        """Whether the next thing is to send, to close or to strike. Those two wait until the rest
        of the replies finds room without a reader, since a server gives up one that is slow at the
        end, as this process may be on a busy machine."""
        if self.closed or self.struck:
            return False
        if self.fate == "killed" or self.sent < self.limit():
            return True
        slack = 0 if self.wire == "terminal" else UNREAD_LINES
        return self.owed[bisect.bisect_right(self.ends, self.sent)] - self.lines <= slack

    def limit(self):
        """How much is sent before the end, or the blow."""
        return len(self.data) if self.fate == "left" else self.blow_at

    def write(self):
        """Sends a piece, or the end, or strikes."""
        limit = self.limit()
        if self.sent < limit:
            size = min(self.rng.choice(PIECES), limit - self.sent)
            try:
                self.sent += os.write(self.write_fd, self.data[self.sent : self.sent + size])
            except BlockingIOError:
                pass
            except OSError as error:
                self.fault = f"it does not read: {error}"
                self.closed = True
            return
        if self.fate != "left":
            self.strike()
            return
        # A client closes when it has sent all. A terminal has no closing that spares the output,
        # so the end is typed. Some wait for the replies first.
        if self.wire in ("pipes",):
            os.close(self.write_fd)
            self.write_fd = -1
        elif self.wire == "terminal":
            try:
                os.write(self.write_fd, b"\x04")
            except BlockingIOError:
                return
        else:
            self.half_close()
        self.closed = True

    def half_close(self):
        with socket.socket(fileno=os.dup(self.write_fd)) as end:
            end.shutdown(socket.SHUT_WR)

    def strike(self):
        """Kills the server, or its parent, for a reason of the seed."""
        self.struck = True
        victim = self.child.pid
        if self.fate == "killed" and self.start == "wrapped":
            if not until(lambda: self.servers(), proof.SILENCE_S):
                self.fault = "the shell has started nothing"
                return
            victim = self.servers()[0]
        elif self.fate != "killed":
            # The server watches its parent from its first message on. One that has read nothing
            # yet would take the death of a shell for that of a launcher.
            self.struck = until(self.heard, 0.0)
            if not self.struck:
                return
            if self.fate == "holder left":
                os.close(self.write_fd)
                self.write_fd = -1
        end_process(victim)

    def heard(self):
        """Whether the first message was answered; an unsent one is sent first."""
        if b"\n" in self.out:
            return True
        first = len(self.items[0].data)
        if self.sent < first:
            self.blow_at = first
        return False

    def servers(self):
        """The children of the shell."""
        return [pid for pid in children(self.child.pid) if command(pid) != b"sleep"]

    def read(self):
        try:
            chunk = os.read(self.read_fd, self.rng.choice([100, 4096, 65_536]))
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno not in (errno.EIO, errno.ECONNRESET):
                raise
            chunk = b""
        self.out += chunk
        self.lines += chunk.count(b"\n")
        self.eof = self.eof or not chunk

    def drain(self):
        """What is left in the pipe of a server that is gone."""
        while not self.eof and select.select([self.read_fd], [], [], 0)[0]:
            self.read()

    def is_over(self):
        return self.child.poll() is not None

    # Afterwards

    def judge(self):
        """What is wrong with this session."""
        if self.fault:
            return self.fault
        status = self.child.returncode
        if self.fate == "left" and status != 0:
            return f"exit {status}, {short(self.err)}"
        lines = bytes(self.out).split(b"\n")
        last = lines.pop()
        came = [told(line) for line in lines]
        if self.fate == "left":
            if last:
                return f"the last line is cut: {short(last, 80)}"
            return difference(self.want, came) or (f"stderr: {short(self.err)}"
                                                   if self.spoke() else "")
        if self.fate == "killed":
            return difference(self.want, came, whole=False)
        # A server that has lost its parent serves what is there, a cut last line included, but for
        # a terminal, which keeps that to itself.
        cut = self.data[: self.sent].rpartition(b"\n")[2]
        owed = self.want[: self.owed[bisect.bisect_right(self.ends, self.sent)]]
        if cut and len(came) > len(owed) and came[-1] == "none error -32700":
            came.pop()
        whole = difference(owed, came, whole=True)
        return whole and (difference(self.want, came, whole=False)
                          or (whole if len(came) < len(owed) else ""))

    def spoke(self):
        """Whether stderr holds more than the greeting that a terminal gets."""
        lines = self.err.splitlines()
        return len(lines) > (1 if self.wire == "terminal" else 0)

    def changed_flags(self):
        after = [flags(fd) for fd in self.kept]
        return f"{self.before} became {after}" if after != self.before else ""

    def close(self):
        for fd in [self.write_fd, self.read_fd, *self.kept]:
            if fd >= 0:
                os.close(fd)
        self.err = self.child.stderr.read() if not self.child.stderr.closed else self.err
        self.child.stderr.close()


def flags(fd):
    """The flags of a description, and those of the terminal if it is one."""
    status = fcntl.fcntl(fd, fcntl.F_GETFL)
    return [status, termios.tcgetattr(fd)[:4] if os.isatty(fd) else None]


def children(parent):
    """The processes whose parent this is."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(name))
        except OSError:
            pass
    return found


def command(pid):
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().strip()
    except OSError:
        return b""


def marked(mark):
    """The living processes that inherited this mark, whoever their parent is by now."""
    found, wanted = [], f"{MARK}={mark}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0") and not gone(int(name)):
                    found.append(int(name))
        except OSError:
            pass
    return found


def shared_memory():
    """The shared-memory objects of this user: files, segments, semaphores and queues."""
    found = set()
    for name in os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []:
        found.add(f"/dev/shm/{name}")
    for kind in ("shm", "sem", "msg"):
        try:
            with open(f"/proc/sysvipc/{kind}") as lines:
                next(lines)
                found |= {f"{kind} {line.split()[1]}" for line in lines}
        except OSError:
            pass
    return found


def in_use(name):
    """Whether a living process has this file mapped or open, so that it is no remnant."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/maps") as maps:
                if any(name in line for line in maps):
                    return True
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            if name in links:
                return True
        except OSError:
            pass
    return False


def run_all(sessions):
    """Moves bytes in all of them until each is over. What is still running after a long silence
    is killed, and that is its fault."""
    running, moved = set(sessions), time.monotonic()
    while running:
        poll = select.poll()
        by_fd = {}
        for session in running:
            if not session.eof:
                poll.register(session.read_fd, select.POLLIN)
                by_fd[session.read_fd] = (session, session.read)
            if session.wants_to_write() and session.write_fd >= 0:
                poll.register(session.write_fd, select.POLLOUT)
                by_fd[session.write_fd] = (session, session.write)
        for fd, events in poll.poll(20):
            session, act = by_fd[fd]
            before = session.sent, len(session.out), session.closed, session.struck
            act()
            if before != (session.sent, len(session.out), session.closed, session.struck):
                moved = time.monotonic()
        for session in [session for session in running if is_finished(session)]:
            session.drain()
            running.discard(session)
            moved = time.monotonic()
        if time.monotonic() - moved > proof.SILENCE_S * harness.SLOW:
            for session in running:
                session.fault = f"still running after {proof.SILENCE_S} s of silence"
            return


def is_finished(session):
    """Whether the server is gone. Behind a killed shell only its mark tells that, at the end."""
    if not session.is_over():
        return False
    if session.fate in ("parent killed", "holder left") and not session.kept:
        # Its end of the pipe closes with the last process that has it, and that is the server.
        return session.eof
    return True


def round_of(argv, seed, count, frames, tally):
    rng = random.Random(seed)
    mark = f"{os.getpid()}-{seed}"
    fates = [fate for fate, share in FATES.items() for _ in range(max(1, count * share // 100))]
    rng.shuffle(fates)
    fds_before, shared_before = sorted(os.listdir("/proc/self/fd")), shared_memory()
    sessions = [Session(number, random.Random(rng.random()), fate, argv, frames, mark)
                for number, fate in enumerate(fates)]
    run_all(sessions)
    holders = [pid for pid in marked(mark) if command(pid) == b"sleep"]
    for pid in holders:
        end_process(pid)
    # What was orphaned needs a moment to notice.
    alone = until(lambda: not marked(mark), 30)
    remnants = [] if alone else marked(mark)
    changed = [f"{session.name()}: {fault}" for session in sessions
               if (fault := session.changed_flags())]
    for pid in remnants:
        end_process(pid)
    for session in sessions:
        if session.child.poll() is None:
            session.child.kill()
            session.child.wait()
        session.drain()
        session.close()
    faults = [f"{session.name()}: {fault}" for session in sessions if (fault := session.judge())]
    left = [session for session in sessions if session.fate == "left"]
    replies = sum(session.out.count(b"\n") for session in left)
    struck = {fate: sum(s.fate == fate and s.struck for s in sessions) for fate in FATES}
    seeded = f" (seed {seed})"
    tally.note("sessions keep their replies" + seeded,
               faults and f"{len(faults)} sessions, first {faults[0]}",
               f"{len(sessions)} at once, {len(left)} left alone with {replies} replies and 0 lost, "
               f"{struck['killed']} killed, {struck['parent killed']} parents killed, "
               f"{struck['holder left']} with the pipe held")
    unstruck = [s.name() for s in sessions if s.fate != "left" and not s.struck]
    tally.note("every blow fell" + seeded, unstruck and f"not on {unstruck[0]}")
    tally.note("no process is left" + seeded,
               remnants and f"{len(remnants)} are: {remnants[:5]}")
    fds_after = sorted(os.listdir("/proc/self/fd"))
    tally.note("no descriptor is left" + seeded, fds_after != fds_before
               and f"{len(fds_before)} before, {len(fds_after)} after", f"{len(fds_after)}")
    shared = [name for name in shared_memory() - shared_before
              if not name.startswith("/") or not in_use(name)]
    tally.note("no shared-memory object is left" + seeded, ", ".join(sorted(shared)[:3]))
    terminals = sum(session.wire == "terminal" for session in sessions)
    tally.note("no flag is changed" + seeded, changed and f"{len(changed)}, first {changed[0]}",
               f"{sum(len(s.kept) for s in sessions)} descriptors, {terminals} terminals")


def main():
    options = proof.command_line(__doc__, lambda parser: (
        parser.add_argument("--seed", type=int, help="replays a round; else one is drawn"),
        parser.add_argument("--rounds", type=int, default=1, metavar="N"),
        parser.add_argument("--sessions", type=int, default=100, metavar="N"),
        parser.add_argument("--frames", type=int, default=200, metavar="N",
                            help="frames of each session")))
    tally = Tally()
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "big")
    for at in range(options.rounds):
        try:
            round_of(options.server, seed + at, options.sessions, options.frames, tally)
        except OSError as error:
            tally.note("the server can be started", str(error))
            break
    sys.exit(tally.end())


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    main()
