"""Scenarios: stdin, stdout and stderr, whatever they are."""

import array
import fcntl
import os
import pty
import signal
import socket
import struct
import tempfile
import termios
import time

from harness import (
    check, closed_socket, collected, Failed, HANDSHAKE, messages, NULL, ping, request, scenario,
    Server, short, SocketServer, Terminal, want_ids,
)


@scenario("fd-stdin-regular-file", "troglobit/libuev#12")
def stdin_and_stdout_files(argv):
    """server < file > file: neither can be polled with epoll."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as sink:
        source.write(HANDSHAKE + request(2, "tools/list") + ping(99))
        source.flush()
        source.seek(0)
        with Server(argv, stdin=source.fileno(), stdout=sink.fileno()) as server:
            server.must_exit(statuses=(0,))
        sink.seek(0)
        found, faults = messages(sink.read())
        check(not faults, "only responses in the file", "; ".join(faults[:3]))
        want_ids(found, [1, 2, 99])


@scenario("fd-stdin-file-stdout-pipe", "clustershell/clustershell#56")
def stdin_file(argv):
    with tempfile.TemporaryFile() as source:
        source.write(HANDSHAKE + request(2, "tools/list") + ping(99))
        source.flush()
        source.seek(0)
        with Server(argv, stdin=source.fileno()) as server:
            want_ids(collected(server), [1, 2, 99])


@scenario("fd-stdout-devnull", "circonus-labs/libmtev#682")
def stdout_devnull(argv):
    with Server(argv, stdout=NULL) as server:
        server.send(HANDSHAKE + ping(99))
        time.sleep(0.3)
        server.must_live()
        server.close_stdin()
        server.must_exit(statuses=(0,))


@scenario("fd-stdout-devfull", "rust-lang/rust#78753")
def stdout_devfull(argv):
    """Every write fails with ENOSPC: an end without a crash or a spin."""
    sink = os.open("/dev/full", os.O_WRONLY)
    try:
        with Server(argv, stdout=sink) as server:
            server.send(HANDSHAKE + ping(99))
            server.exit(0.5)
            server.close_stdin()
            server.must_end()
    finally:
        os.close(sink)


@scenario("fd-stdin-closed-at-start", "rust-lang/rust#57728")
def stdin_closed(argv):
    with Server(argv, shell="exec <&-") as server:
        server.must_end()
        server.wait(lambda: server.eof, 5)
        check(not server.out, "no output", short(bytes(server.out)))


@scenario("fd-stdout-closed-at-start", "rust-lang/rust#57728")
def stdout_closed(argv):
    with Server(argv, shell="exec >&-") as server:
        server.send(HANDSHAKE + ping(99))
        server.close_stdin()
        server.must_end()


@scenario("fd-stderr-closed", "oxidecomputer/tockilator#12")
def stderr_closed(argv):
    with Server(argv, shell="exec 2>&-") as server:
        server.send(HANDSHAKE + ping(99))
        server.expect(99)
        want_ids(collected(server), [1, 99])


@scenario("fd-nonblock-restored-tty", "erlang/otp#3645")
def terminal_flags(argv):
    """After ^D, SIGTERM and SIGINT the terminal's description is as it was."""
    for how in ("^D", signal.SIGTERM, signal.SIGINT):
        with Terminal(argv) as terminal:
            before = fcntl.fcntl(terminal.slave, fcntl.F_GETFL)
            terminal.type(HANDSHAKE)
            terminal.expect(b'"protocolVersion"')
            if how == "^D":
                terminal.type(b"\x04")
            else:
                terminal.server.signal(how)
            terminal.server.must_exit()
            after = fcntl.fcntl(terminal.slave, fcntl.F_GETFL)
            check(before == after, f"flags {before:#o} after {how}", f"{after:#o}")


@scenario("fd-nonblock-same-ofd", "capnproto/capnproto#919")
def one_description(argv):
    """One socket is stdin, stdout and stderr, and the client is slow to read."""
    ours, theirs = socket.socketpair()
    with ours, Server(argv, stdin=theirs.fileno(), stdout=theirs.fileno(),
                      stderr=theirs.fileno()) as server:
        theirs.close()
        server.write_fd, server.read_fd = os.dup(ours.fileno()), os.dup(ours.fileno())
        ours.sendall(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(2, 60)))
        time.sleep(0.5)
        server.drain()
        wanted = list(range(1, 60))
        check(server.answered(wanted), "59 whole replies", f"{server.lines} lines")
        ours.shutdown(socket.SHUT_WR)
        server.must_exit(statuses=(0,))


@scenario("fd-stdout-nonblock-inherited", "rtk-ai/rtk#4177")
def nonblocking_stdout(argv):
    """stdout comes with O_NONBLOCK set and is read only after a second."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with Server(argv, stdout=write_end) as server:
        os.close(write_end)
        server.read_fd = read_end
        server.send(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(2, 400)))
        time.sleep(1)
        server.drain()
        server.answered([399])
        want_ids(collected(server), range(1, 400))


@scenario("fd-node-socket-stdin", "nodejs/node#21941")
def node_sockets(argv):
    """stdin and stdout are sockets, as from Node; EOF by closing."""
    with SocketServer(argv) as server:
        server.send(HANDSHAKE + request(2, "tools/list"))
        server.expect(2)
        server.must_serve(99)
        server.ours.close()
        want_ids(collected(server), [1, 2, 99])


@scenario("fd-half-close-socket", "vshulcz/deja-vu#2397")
def half_close(argv):
    with SocketServer(argv) as server:
        server.send(HANDSHAKE + request(2, "tools/list") + ping(99))
        server.half_close()
        want_ids(collected(server), [1, 2, 99])


@scenario("fd-econnreset", "nodejs/node-v0.x-archive#8652")
def connection_reset(argv):
    """One socket pair, closed with replies unread: read gives ECONNRESET, not EOF."""
    closed_socket(argv)


# The descriptors of the parent are left as they were found --------------------------------------

WAYS = ("EOF", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, "reader gone", "flood")


def flags_of(fd):
    return fcntl.fcntl(fd, fcntl.F_GETFL)


def leave(server, way, closed=lambda: None):
    """Ends a server that has answered a handshake. `closed` closes all that its client holds."""
    if way == "EOF":
        server.close_stdin()
    elif way == "reader gone":
        closed()
    elif way == "flood":
        try:
            lists = b"".join(request(i, "tools/list") for i in range(10, 3000))
            server.send(lists + b"x\n" * 99, 1)
        except Failed:
            pass  # it has stopped reading
        server.signal(signal.SIGTERM)
    else:
        server.signal(way)
    server.must_end()


def pipes_stay(argv, way, nonblocking):
    """Both descriptions of a pipe pair, of which the parent keeps its own descriptors."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    for fd in (in_read, out_write):
        os.set_blocking(fd, not nonblocking)
    before = flags_of(in_read), flags_of(out_write)
    with Server(argv, stdin=in_read, stdout=out_write) as server:
        server.write_fd, server.read_fd = in_write, out_read
        os.set_blocking(in_write, False)
        server.send(HANDSHAKE)
        check(server.read_some(10), "a reply to initialize", server.fate())

        def closed():
            os.close(out_write)
            server.close_stdout()

        leave(server, way, closed)
    after = flags_of(in_read), before[1] if way == "reader gone" else flags_of(out_write)
    for fd in (in_read,) if way == "reader gone" else (in_read, out_write):
        os.close(fd)
    check(before == after, f"flags {before} after {way}", f"{after}")


def sockets_stay(argv, way, nonblocking, one):
    """The server's ends of its sockets, which the parent keeps open; `one` is all three streams."""
    ours, theirs = socket.socketpair()
    out_ours, out_theirs = (ours, theirs) if one else socket.socketpair()
    for end in (theirs, out_theirs):
        end.setblocking(not nonblocking)
    before = flags_of(theirs), flags_of(out_theirs)
    with Server(argv, stdin=theirs.fileno(), stdout=out_theirs.fileno(),
                stderr=theirs.fileno() if one else NULL) as server:
        server.write_fd, server.read_fd = os.dup(ours.fileno()), os.dup(out_ours.fileno())
        os.set_blocking(server.write_fd, False)
        server.send(HANDSHAKE)
        check(server.read_some(10), "a reply to initialize", server.fate())

        def closed():
            server.close_stdin()
            server.close_stdout()
            ours.close()
            out_ours.close()

        if way == "EOF":
            ours.shutdown(socket.SHUT_WR)
        leave(server, way, closed)
    after = flags_of(theirs), flags_of(out_theirs)
    for end in (ours, theirs, out_ours, out_theirs):
        end.close()
    check(before == after, f"flags {before} after {way}", f"{after}")


@scenario("fd-flags-stay-on-pipes", "erlang/otp#3645")
def flags_stay_on_pipes(argv):
    for nonblocking in (False, True):
        for way in WAYS:
            pipes_stay(argv, way, nonblocking)


@scenario("fd-flags-stay-on-sockets", "agentic-os-org/ANOLISA#1816")
def flags_stay_on_sockets(argv):
    for nonblocking in (False, True):
        for way in WAYS:
            sockets_stay(argv, way, nonblocking, one=False)


@scenario("fd-flags-stay-on-one-socket", "capnproto/capnproto#919")
def flags_stay_on_one_socket(argv):
    for nonblocking in (False, True):
        for way in WAYS:
            sockets_stay(argv, way, nonblocking, one=True)


@scenario("fd-flags-stay-on-a-terminal", "fish-shell/fish-shell#176")
def flags_stay_on_a_terminal(argv):
    for nonblocking in (False, True):
        for way in ("EOF", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, "flood"):
            with Terminal(argv, nonblocking) as terminal:
                before = flags_of(terminal.slave)
                terminal.type(HANDSHAKE)
                terminal.expect(b'"protocolVersion"')
                if way == "EOF":
                    terminal.type(b"\x04")
                elif way == "flood":
                    terminal.type(b"".join(ping(i) for i in range(50)))
                    terminal.server.signal(signal.SIGTERM)
                else:
                    terminal.server.signal(way)
                terminal.server.must_end()
                after = flags_of(terminal.slave)
                check(before == after, f"flags {before:#o} after {way}", f"{after:#o}")


@scenario("fd-flags-stay-while-it-runs", "nodejs/node#42826")
def flags_stay_meanwhile(argv):
    """Another process on the same descriptions must not meet EAGAIN while the server runs."""
    with Terminal(argv) as terminal:
        before = flags_of(terminal.slave)
        terminal.type(HANDSHAKE)
        terminal.expect(b'"protocolVersion"')
        check(flags_of(terminal.slave) == before, f"flags {before:#o}",
              f"{flags_of(terminal.slave):#o}")
        terminal.server.signal(signal.SIGTERM)
        terminal.server.must_end()


# Descriptors that come with O_NONBLOCK ----------------------------------------------------------

@scenario("fd-stdin-nonblock-inherited", "mimblewimble/grin#2524")
def nonblocking_stdin(argv):
    """An empty stdin gives EAGAIN, which is no end and no error."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with Server(argv, stdin=read_end) as server:
        os.close(read_end)
        server.write_fd = write_end
        os.set_blocking(write_end, False)
        time.sleep(0.3)
        half = len(HANDSHAKE) // 3
        server.send(HANDSHAKE[:half])
        time.sleep(0.3)
        server.send(HANDSHAKE[half:])
        server.expect(1)
        time.sleep(0.3)
        server.must_serve(99)
        want_ids(collected(server), [1, 99])


# Packets, and sockets that carry more than bytes ------------------------------------------------

def in_halves(server, send, count=1):
    """Frames of which each half is queued by itself before the server looks. None may wait for
    the next event, which never comes, and hardly for a timer."""
    server.signal(signal.SIGSTOP)
    for i in range(count):
        data = ping(100 + i)
        send(data[:20])
        send(data[20:])
    server.signal(signal.SIGCONT)
    check(server.answered(range(100, 100 + count), 3 + count / 4), f"{count} replies in time",
          f"{server.lines - 1}")


def with_descriptors(server, descriptors):
    def send(data):
        rights = array.array("i", descriptors).tobytes()
        server.ours.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    return send


@scenario("fd-socket-ancillary-data", "policy")
def ancillary_data(argv):
    """A read ends early where descriptors were sent along: not a reason to wait for long."""
    with SocketServer(argv) as server, tempfile.TemporaryFile() as file:
        server.handshake()
        held = server.fds()
        in_halves(server, with_descriptors(server, [file.fileno()]))
        server.must_serve(99)
        check(server.fds() == held, f"{held} descriptors in the server", f"{server.fds()}")


@scenario("fd-socket-ancillary-data-often", "policy")
def ancillary_data_often(argv):
    with SocketServer(argv) as server, tempfile.TemporaryFile() as file:
        server.handshake()
        held = server.fds()
        in_halves(server, with_descriptors(server, [file.fileno()] * 3), 20)
        check(server.fds() == held, f"{held} descriptors in the server", f"{server.fds()}")
        server.ours.close()
        want_ids(collected(server), [1, *range(100, 120)])


@scenario("fd-socket-ancillary-data-then-eof", "tokio-rs/mio#1611")
def ancillary_data_then_eof(argv):
    """Half a frame, descriptors, the other half, and the end, all before the server looks."""
    with SocketServer(argv) as server, tempfile.TemporaryFile() as file:
        send = with_descriptors(server, [file.fileno()])
        server.signal(signal.SIGSTOP)
        server.send(HANDSHAKE + ping(2)[:15])
        send(ping(2)[15:])
        server.send(ping(3)[:15])
        send(ping(3)[15:-1])
        server.half_close()
        server.signal(signal.SIGCONT)
        want_ids(collected(server), [1, 2, 3])


@scenario("fd-socket-out-of-band", "policy")
def out_of_band(argv):
    """An urgent byte is no part of the stream and no reason to stop."""
    with SocketServer(argv) as server:
        server.handshake()
        server.send(ping(2)[:12])
        try:
            server.ours.send(b"!", socket.MSG_OOB)
        except OSError:
            pass  # a kernel that does not know it on these sockets
        server.send(ping(2)[12:])
        server.expect(2)
        server.must_serve(99)


def packet_pipe():
    read_end, write_end = os.pipe2(os.O_DIRECT)
    os.set_blocking(write_end, False)
    return read_end, write_end


@scenario("fd-pipe-of-packets", "policy")
def pipe_of_packets(argv):
    """A pipe in packet mode ends each read at a packet, though more is there."""
    read_end, write_end = packet_pipe()
    with Server(argv, stdin=read_end) as server:
        os.close(read_end)
        server.write_fd = write_end
        server.handshake()
        in_halves(server, server.send)
        server.signal(signal.SIGSTOP)
        server.send(ping(2)[:15])
        server.send(ping(2)[15:])
        server.send(ping(3)[:15])
        server.send(ping(3)[15:])
        server.close_stdin()
        server.signal(signal.SIGCONT)
        want_ids(collected(server), [1, 2, 3, 100])


@scenario("fd-pipe-of-many-packets", "policy")
def pipe_of_many_packets(argv):
    read_end, write_end = packet_pipe()
    with Server(argv, stdin=read_end) as server:
        os.close(read_end)
        server.write_fd = write_end
        server.handshake()
        in_halves(server, server.send, 7)  # a pipe takes sixteen packets
        for i in range(200, 400):
            server.send(ping(i))
        server.close_stdin()
        want_ids(collected(server, 30), [1, *range(100, 107), *range(200, 400)])


# Odd descriptors --------------------------------------------------------------------------------

def one_line_and_one(server, why):
    """Exit 1 with one line on stderr, and nothing on stdout."""
    server.must_exit(statuses=(1,))
    time.sleep(0.05)
    lines = bytes(server.err).splitlines()
    check(len(lines) == 1, f"one line on stderr about {why}", f"{lines[:3]}")
    check(not server.out, "no output", short(bytes(server.out)))


@scenario("fd-stdin-directory", "policy")
def stdin_directory(argv):
    folder = os.open("/", os.O_RDONLY)
    try:
        with Server(argv, stdin=folder) as server:
            one_line_and_one(server, "a directory")
    finally:
        os.close(folder)


@scenario("fd-stdin-write-only", "policy")
def stdin_write_only(argv):
    read_end, write_end = os.pipe()
    try:
        with Server(argv, stdin=write_end) as server:
            one_line_and_one(server, "a stdin that cannot be read")
    finally:
        os.close(read_end)
        os.close(write_end)


@scenario("fd-stdout-read-only", "policy")
def stdout_read_only(argv):
    read_end, write_end = os.pipe()
    try:
        with Server(argv, stdout=read_end) as server:
            server.send(HANDSHAKE + ping(99))
            server.close_stdin()
            server.must_end()
    finally:
        os.close(read_end)
        os.close(write_end)


@scenario("fd-stdin-devnull", "ProxymanApp/Proxyman#2727")
def stdin_devnull(argv):
    with Server(argv, stdin=NULL) as server:
        server.must_exit(statuses=(0,))
        server.wait(lambda: server.eof, 5)
        check(not server.out, "no output", short(bytes(server.out)))


@scenario("fd-all-three-devnull", "likec4/likec4#3092")
def all_devnull(argv):
    with Server(argv, stdin=NULL, stdout=NULL, stderr=NULL) as server:
        server.must_exit(statuses=(0,))


@scenario("fd-all-three-closed", "rust-lang/rust#88825")
def all_closed(argv):
    """Descriptors that the server opens must not become its stdin, stdout or stderr."""
    with Server(argv, shell="exec <&- >&- 2>&-; exec") as server:
        server.must_end()


@scenario("fd-stdin-and-stderr-closed", "uutils/coreutils#2873")
def stdin_and_stderr_closed(argv):
    with Server(argv, shell="exec <&- 2>&-; exec") as server:
        server.must_end()
        server.wait(lambda: server.eof, 5)
        check(not server.out, "no output", short(bytes(server.out)))


@scenario("fd-stdin-devzero", "tcconnally/perseus#643")
def stdin_devzero(argv):
    """A line without end from a file that never waits: signals are served all the same."""
    zero = os.open("/dev/zero", os.O_RDONLY)
    try:
        with Server(argv, stdin=zero) as server:
            check(server.wait(lambda: server.lines == 1, 10), "one error", f"{server.lines} lines")
            time.sleep(0.2)
            check(server.peak_kib() < 32 << 10, "at most 32 MiB", f"{server.peak_kib()} KiB")
            server.signal(signal.SIGTERM)
            server.must_end()
            found, faults = messages(bytes(server.out))
            codes = [m["error"]["code"] for m in found]
            check(codes == [-32600] and not faults, "one error -32600", f"{codes} {faults}")
    finally:
        os.close(zero)


@scenario("fd-stdin-empty-file", "SIPp/sipp#51")
def stdin_empty_file(argv):
    with tempfile.TemporaryFile() as source, Server(argv, stdin=source.fileno()) as server:
        server.must_exit(statuses=(0,))


@scenario("fd-stdin-big-file", "modelcontextprotocol/python-sdk#2678")
def stdin_big_file(argv):
    """A regular file of many frames and one of a mebibyte, the last without its LF."""
    with tempfile.TemporaryFile() as source:
        source.write(HANDSHAKE + b"".join(ping(i) for i in range(1000, 9000)))
        source.write(request(2, "ping", {"x": "a" * 1_000_000}) + ping(99).rstrip())
        source.flush()
        source.seek(0)
        with Server(argv, stdin=source.fileno()) as server:
            want_ids(collected(server, 30), [1, 2, 99, *range(1000, 9000)])


@scenario("fd-stdin-file-from-its-offset", "policy")
def stdin_file_offset(argv):
    with tempfile.TemporaryFile() as source:
        source.write(b"garbage\n" + HANDSHAKE + ping(99))
        source.flush()
        source.seek(8)
        with Server(argv, stdin=source.fileno()) as server:
            want_ids(collected(server), [1, 99])


@scenario("fd-stdout-regular-file", "circonus-labs/libmtev#682")
def stdout_file(argv):
    """stdin is a pipe, stdout a file that was written to before: its text is kept."""
    with tempfile.TemporaryFile() as sink:
        sink.write(b"before\n")
        sink.flush()
        with Server(argv, stdout=sink.fileno()) as server:
            server.send(HANDSHAKE)
            server.send(b"".join(request(i, "tools/list") for i in range(100, 300)))
            server.close_stdin()
            server.must_exit(statuses=(0,))
        sink.seek(0)
        first, rest = sink.readline(), sink.read()
        check(first == b"before\n", "the file's first line", short(first))
        found, faults = messages(rest)
        check(not faults, "only responses in the file", "; ".join(faults[:3]))
        want_ids(found, [1, *range(100, 300)])


@scenario("fd-stdout-full-device-idle", "moonbitlang/async#533")
def stdout_devfull_open(argv):
    """/dev/full with stdin open: an end, or an idle life, but no spin."""
    sink = os.open("/dev/full", os.O_WRONLY)
    try:
        with Server(argv, stdout=sink) as server:
            server.send(HANDSHAKE)
            if server.exit(0.5) is None:
                before = server.cpu_s()
                time.sleep(1)
                check(server.exit(0) is not None or server.cpu_s() - before < 0.05,
                      "no spin", "more than 50 ms of CPU in an idle second")
                server.close_stdin()
            server.must_end()
    finally:
        os.close(sink)


# stderr -----------------------------------------------------------------------------------------

def full_pipe():
    """The ends of a pipe that takes nothing more; whoever writes waits."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write_end, True)
    return read_end, write_end


@scenario("fd-stderr-full-pipe", "modelcontextprotocol/typescript-sdk#2776")
def stderr_full(argv):
    """Nobody reads stderr, and it is full: no log line may block."""
    read_end, write_end = full_pipe()
    try:
        with Server(argv, stderr=write_end, env={"RUST_LOG": "trace"}) as server:
            server.handshake()
            server.send(b"garbage\n" * 2000 + b"[]\n" * 2000 + ping(99))
            server.expect(99)
            server.close_stdin()
            server.must_exit(statuses=(0,))
    finally:
        os.close(read_end)
        os.close(write_end)


@scenario("fd-stderr-full-and-failing", "openai/codex#7155")
def stderr_full_and_failing(argv):
    """The line about the failure cannot be written either."""
    read_end, write_end = full_pipe()
    folder = os.open("/", os.O_RDONLY)
    try:
        with Server(argv, stdin=folder, stderr=write_end) as server:
            server.must_exit(statuses=(1,))
    finally:
        for fd in (read_end, write_end, folder):
            os.close(fd)


@scenario("fd-stderr-reader-gone", "mosuka/litsea#114")
def stderr_reader_gone(argv):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with Server(argv, stderr=write_end, env={"RUST_LOG": "trace"}) as server:
        os.close(write_end)
        server.handshake()
        server.send(b"garbage\n" * 100 + ping(99))
        server.expect(99)
        server.close_stdin()
        server.must_exit(statuses=(0,))


@scenario("fd-stderr-is-stdout", "policy")
def stderr_is_stdout(argv):
    """2>&1 into one pipe: what an orderly session says must still be messages alone."""
    read_end, write_end = os.pipe()
    with Server(argv, stdout=write_end, stderr=write_end) as server:
        os.close(write_end)
        server.read_fd = read_end
        server.drain()
        server.handshake()
        server.must_serve(99)
        want_ids(collected(server), [1, 99])


# Terminals --------------------------------------------------------------------------------------

@scenario("fd-terminal-session", "clustershell/clustershell#56")
def terminal_session(argv):
    """Typed lines are answered, and ^D ends the session."""
    for _ in range(10):
        with Terminal(argv) as terminal:
            terminal.type(HANDSHAKE)
            terminal.expect(b'"protocolVersion"')
            terminal.type(ping(2))
            terminal.expect(b'"id":2')
            terminal.type(b"\x04")
            terminal.server.must_exit(statuses=(0,))


@scenario("fd-terminal-end-right-behind", "tokio-rs/mio#1611")
def terminal_end_right_behind(argv):
    """Lines and ^D in one go: a terminal gives one line a read, and the end by itself."""
    for _ in range(10):
        with Terminal(argv) as terminal:
            terminal.type(HANDSHAKE + ping(2) + b"\x04")
            terminal.expect(b'"id":2')
            terminal.server.must_exit(statuses=(0,))


@scenario("fd-terminal-end-behind-half-a-line", "policy")
def terminal_half_line(argv):
    """The first ^D hands over what was typed, the second is the end; the half line is a frame."""
    with Terminal(argv) as terminal:
        terminal.type(HANDSHAKE)
        terminal.expect(b'"protocolVersion"')
        terminal.type(ping(2).rstrip() + b"\x04")
        time.sleep(0.3)
        terminal.type(b"\x04")
        terminal.expect(b'"id":2')
        terminal.server.must_exit(statuses=(0,))


@scenario("fd-terminal-many-lines", "crossterm-rs/crossterm#996")
def terminal_many_lines(argv):
    with Terminal(argv) as terminal:
        terminal.type(HANDSHAKE)
        terminal.expect(b'"protocolVersion"')
        terminal.type(b"".join(ping(i) for i in range(100, 160)))
        terminal.expect(b'"id":159', 3)  # a tenth of a second for each line would be too long
        terminal.type(b"\x04")
        terminal.server.must_exit(statuses=(0,))


@scenario("fd-terminal-hangs-up", "oxy-secure/oxy#49")
def terminal_hangs_up(argv):
    """The terminal is gone: read gives EIO, which is an end like any other."""
    with Terminal(argv) as terminal:
        terminal.type(HANDSHAKE)
        terminal.expect(b'"protocolVersion"')
        terminal.hang_up()
        terminal.server.must_end()


@scenario("fd-terminal-in-pipe-out", "modelcontextprotocol/python-sdk#3551")
def terminal_in_pipe_out(argv):
    master, slave = pty.openpty()
    try:
        with Server(argv, stdin=slave) as server:
            os.write(master, HANDSHAKE + ping(99))
            server.expect(99)
            os.write(master, b"\x04")
            want_ids(collected(server), [1, 99])
    finally:
        os.close(master)
        os.close(slave)


@scenario("fd-terminal-raw", "fish-shell/fish-shell#176")
def terminal_raw(argv):
    """Raw terminals: reads of any size, and with VMIN 0 an empty read that is no end."""
    for least in (1, 0):
        with Terminal(argv) as terminal:
            attributes = termios.tcgetattr(terminal.slave)
            attributes[3] &= ~termios.ICANON
            attributes[6][termios.VMIN], attributes[6][termios.VTIME] = least, 0
            termios.tcsetattr(terminal.slave, termios.TCSANOW, attributes)
            terminal.type(HANDSHAKE)
            terminal.expect(b'"protocolVersion"')
            time.sleep(0.3)
            data = b"".join(ping(i) for i in range(100, 140))
            for at in range(0, len(data), 61):
                terminal.type(data[at : at + 61])
            terminal.expect(b'"id":139')
            terminal.server.must_live()
            terminal.server.signal(signal.SIGTERM)
            terminal.server.must_end()


@scenario("fd-terminal-output-stopped", "MongLong0214/logic-pro-mcp#683")
def terminal_stopped(argv):
    """^S stops the output: replies wait for ^Q, and a signal need not wait for it."""
    for how in (b"\x11", signal.SIGTERM):
        with Terminal(argv) as terminal:
            terminal.type(HANDSHAKE)
            terminal.expect(b'"protocolVersion"')
            terminal.type(b"\x13")
            time.sleep(0.1)
            terminal.type(b"".join(ping(i) for i in range(100, 120)))
            time.sleep(0.3)
            terminal.server.must_live()
            if how == signal.SIGTERM:
                terminal.server.signal(how)
                terminal.server.must_end()
            else:
                terminal.type(how)
                terminal.expect(b'"id":119')


@scenario("fd-terminal-never-read", "MongLong0214/logic-pro-mcp#683")
def terminal_never_read(argv):
    """stdout is a terminal whose other side reads nothing: EOF and signals still end it."""
    for how in ("EOF", signal.SIGTERM, signal.SIGINT):
        master, slave = pty.openpty()
        try:
            with Server(argv, stdout=slave) as server:
                try:
                    lists = b"".join(request(i, "tools/list") for i in range(100, 3000))
                    server.send(HANDSHAKE + lists, 1)
                except Failed:
                    pass  # it has stopped reading
                server.must_live()
                if how == "EOF":
                    server.close_stdin()
                else:
                    server.signal(how)
                server.must_end(15)
        finally:
            os.close(master)
            os.close(slave)


@scenario("fd-tcp-socket", "nodejs/node#11418")
def tcp_socket(argv):
    """A TCP connection as stdin and stdout, as from inetd; closed in order, and reset."""
    for reset in (False, True):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            ours = socket.create_connection(listener.getsockname())
            theirs, _ = listener.accept()
        with ours, Server(argv, stdin=theirs.fileno(), stdout=theirs.fileno()) as server:
            theirs.close()
            server.write_fd, server.read_fd = os.dup(ours.fileno()), os.dup(ours.fileno())
            if not reset:
                server.drain()
                server.send(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(2, 99)))
                server.must_serve(99)
                ours.shutdown(socket.SHUT_WR)
                want_ids(collected(server), range(1, 100))
            else:
                server.send(HANDSHAKE + request(2, "tools/list"))
                time.sleep(0.2)
                ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                server.close_stdin()
                server.close_stdout()
                ours.close()
                server.must_end()


@scenario("fd-fifo", "flux-framework/flux-core#1803")
def fifo(argv):
    """A named pipe; opened for both ways it has no end, and a signal ends the server."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in")
        os.mkfifo(path)
        both = os.open(path, os.O_RDWR)
        with Server(argv, stdin=both) as server:
            server.write_fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            server.send(HANDSHAKE)
            server.close_stdin()
            server.expect(1)
            time.sleep(0.2)
            server.must_live()
            server.write_fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            server.must_serve(99)
            server.signal(signal.SIGTERM)
            server.must_end()
        os.close(both)


@scenario("fd-pipe-in-terminal-out", "google/libhoth#13")
def pipe_in_terminal_out(argv):
    """Replies of several KiB onto a terminal that is read slowly."""
    master, slave = pty.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    try:
        with Server(argv, stdout=slave) as server:
            server.read_fd = os.dup(master)
            server.send(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(100, 120)))
            server.trickle(21, 700, 0.002, 60)
            check(server.lines == 21, "21 lines", f"{server.lines}")
            server.close_stdin()
            server.must_exit(statuses=(0,))
        found, faults = messages(bytes(server.out))
        check(not faults, "only responses", "; ".join(faults[:3]))
        want_ids(found, [1, *range(100, 120)])
    finally:
        os.close(master)
        os.close(slave)
