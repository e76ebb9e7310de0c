"""Scenarios: splitting, backpressure, slow readers and promptness."""

import fcntl
import os
import signal
import threading
import time

from harness import (
    check, collected, Failed, HANDSHAKE, messages, ping, request, scenario, Server, short,
    SocketServer, stuff_stdout, want_ids,
)


@scenario("fd-edge-budget-fairness", "crossterm-rs/crossterm#435")
def flood_and_sigterm(argv):
    """Under a flood of pings replies flow and SIGTERM works."""
    with Server(argv) as server:
        server.handshake()
        block = b"".join(ping(i) for i in range(1000, 3000))
        stop = threading.Event()

        def flood():
            try:
                while not stop.is_set() and server.send(block, 5):
                    pass
            except (Failed, OSError, TypeError, ValueError):
                pass

        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        try:
            check(server.answered([1000], 5), "a reply in 5 s of the flood",
                  f"{server.lines} lines")
            time.sleep(1)
            server.signal(signal.SIGTERM)
            server.must_exit()
        finally:
            stop.set()
            thread.join(6)


@scenario("fd-writable-once", "tokio-rs/mio#1337")
def tiny_reads(argv):
    """A long reply read in very small pieces: writability has to be waited for many times."""
    with Server(argv, read=False) as server:
        id = "i" * 300_000
        server.send(HANDSHAKE + request(id, "ping") + ping(99))
        server.trickle(3, 512, 0.0001, 60)
        check(server.lines == 3, "3 lines", f"{server.lines}, {len(server.out)} bytes")
        server.drain()
        want_ids(collected(server), [1, id, 99])


@scenario("fd-never-read-then-eof", "MongLong0214/logic-pro-mcp#683")
def never_read_then_eof(argv):
    with Server(argv, read=False) as server:
        stuff_stdout(server)
        server.close_stdin()
        server.must_end()


@scenario("fd-never-read-then-sigterm", "brekkylab/backlot#108")
def never_read_then_sigterm(argv):
    with Server(argv, read=False) as server:
        stuff_stdout(server)
        server.signal(signal.SIGTERM)
        server.must_end()


@scenario("fd-big-response", "ruvnet/ruflo#2426")
def big_response(argv):
    """A reply of several pipes' size, read late."""
    with Server(argv, read=False) as server:
        id = "b" * 300_000
        server.send(HANDSHAKE + request(id, "ping") + ping(99))
        time.sleep(0.3)
        server.drain()
        server.expect(99)
        want_ids(collected(server), [1, id, 99])


@scenario("fd-big-response-then-eof", "orlyatomics/orly#542")
def big_response_then_eof(argv):
    """A reply near the frame limit, EOF at once, and a reader of a few MB a second."""
    with Server(argv, read=False) as server:
        id = "b" * 900_000
        server.send(HANDSHAKE + request(id, "ping"))
        server.close_stdin()
        server.trickle(2, 1 << 15, 0.01, 30)
        server.drain()
        want_ids(collected(server), [1, id])


F_SETPIPE_SZ = getattr(fcntl, "F_SETPIPE_SZ", 1031)  # Python names it since 3.10

def lines_at_once(server, data, lines, seconds=30):
    """All of it written at once, and so many lines read."""
    server.send(data)
    check(server.wait(lambda: server.lines >= lines, seconds), f"{lines} lines",
          f"{server.lines}, {server.fate()}")


LISTS = b"".join(request(i, "tools/list") for i in range(1000, 8000))  # 300 kB


def read_all(server, lines, size=1 << 16, pause_s=0.0, seconds=60):
    server.trickle(lines, size, pause_s, seconds)
    check(server.lines >= lines, f"{lines} lines", f"{server.lines}, {server.fate()}")


# Splitting --------------------------------------------------------------------------------------

SHORT_SESSION = HANDSHAKE + request("é\u2028", "ping") + b"x\r\n" + request(2, "tools/list")[:-1]


def session_in(argv, pieces, pause_s):
    with Server(argv) as server:
        for piece in pieces:
            server.send(piece)
            time.sleep(pause_s)
        server.close_stdin()
        server.must_exit(statuses=(0,))
        server.wait(lambda: server.eof, 5)
        return bytes(server.out)


@scenario("flow-split-at-every-byte", "modelcontextprotocol/typescript-sdk#2038")
def split_at_every_byte(argv):
    """Wherever the input is cut in two, the output is the same, byte for byte."""
    whole = session_in(argv, [SHORT_SESSION], 0)
    for at in range(1, len(SHORT_SESSION)):
        parts = [SHORT_SESSION[:at], SHORT_SESSION[at:]]
        came = session_in(argv, parts, 0.002)
        check(came == whole, f"the same output when cut at {at}", short(came))


@scenario("flow-cut-at-every-byte", "ethereum-mining/ethminer#1010")
def cut_at_every_byte(argv):
    """Wherever the input ends, every whole frame is answered, and a torn one by one error."""
    for at in range(0, len(SHORT_SESSION), 3):
        head = SHORT_SESSION[:at]
        found, faults = messages(session_in(argv, [head], 0))
        check(not faults, "only responses", "; ".join(faults[:3]))
        whole = head.count(b"\n")
        torn = at not in (0, len(SHORT_SESSION)) and not head.endswith(b"\n")
        silent = 1 if whole >= 2 else 0  # notifications/initialized
        blank = torn and not head.rpartition(b"\n")[2].strip()
        most = whole - silent + (torn and not blank)
        check(most - torn <= len(found) <= most + 1, f"about {most} replies when cut at {at}",
              f"{len(found)}")


@scenario("flow-split-one-server", "FellouAI/eko#276")
def split_in_one_server(argv):
    """The same for every cut of a request in one running server, on a pipe and on a socket."""
    for kind in (Server, SocketServer):
        with kind(argv) as server:
            server.handshake()
            ids = []
            for at in range(1, len(ping(1000)) + 1):
                id = 1000 + at
                server.send(ping(id)[:at])
                time.sleep(0.003)
                server.send(ping(id)[at:])
                ids.append(id)
            check(server.answered(ids), f"{len(ids)} replies", f"{server.lines - 1}")


@scenario("flow-many-small-writes-on-a-socket", "tokio-rs/mio#1945")
def small_writes_on_a_socket(argv):
    with SocketServer(argv) as server:
        server.handshake()
        data = b"".join(ping(i) for i in range(1000, 1500))
        for at in range(0, len(data), 5):
            server.send(data[at : at + 5])
        check(server.answered([1499], 30), "500 replies", f"{server.lines - 1}")
        server.half_close()
        want_ids(collected(server), [1, *range(1000, 1500)])


@scenario("flow-small-socket-buffers", "ClickHouse/ClickHouse#108078")
def small_socket_buffers(argv):
    """Replies larger than the socket's buffer, read in small pieces."""
    with SocketServer(argv, read=False, buffer_bytes=4608) as server:
        server.send(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(100, 160)))
        read_all(server, 61, 777)
        server.half_close()
        server.drain()
        want_ids(collected(server), [1, *range(100, 160)])


# Slow and late readers --------------------------------------------------------------------------

@scenario("flow-one-byte-reads", "MemPalace/mempalace#1805")
def one_byte_reads(argv):
    for kind in (Server, SocketServer):
        with kind(argv, read=False) as server:
            server.send(HANDSHAKE + request(100, "tools/list") + ping(101))
            read_all(server, 3, 1)
            server.drain()
            if kind is SocketServer:
                server.half_close()
            want_ids(collected(server), [1, 100, 101])


@scenario("flow-four-kib-pipes", "accensa/x402-facilitator-stellar#197")
def small_pipes(argv):
    """Pipes of one page, and reads of a size that never fits."""
    with Server(argv, read=False) as server:
        for fd in (server.read_fd, server.write_fd):
            fcntl.fcntl(fd, F_SETPIPE_SZ, 4096)
        server.send(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(100, 200)))
        read_all(server, 101, 1000)
        server.drain()
        want_ids(collected(server), [1, *range(100, 200)])


@scenario("flow-blocking-client", "bitwisecook/tcl-lsp#1334")
def blocking_client(argv):
    """300 kB of requests are written before anything is read: neither side may wait for ever."""
    with Server(argv, read=False) as server:
        server.send(HANDSHAKE + LISTS, 30)
        server.must_live()
        read_all(server, 7001)
        server.drain()
        want_ids(collected(server), [1, *range(1000, 8000)])


@scenario("flow-blocking-client-on-sockets", "quick-lint/quick-lint-js#237")
def blocking_client_on_sockets(argv):
    for one in (False, True):
        with SocketServer(argv, one=one, read=False) as server:
            server.send(HANDSHAKE + LISTS, 30)
            server.must_live()
            server.drain()
            check(server.answered([7999], 60), "7001 replies", f"{server.lines}")
            server.half_close()
            want_ids(collected(server), [1, *range(1000, 8000)])


@scenario("flow-blocking-client-small-pipes", "modelcontextprotocol/python-sdk#2070")
def blocking_client_small_pipes(argv):
    with Server(argv, read=False) as server:
        for fd in (server.read_fd, server.write_fd):
            fcntl.fcntl(fd, F_SETPIPE_SZ, 4096)
        server.send(HANDSHAKE + LISTS, 30)
        read_all(server, 7001)
        server.drain()
        want_ids(collected(server), [1, *range(1000, 8000)])


def fill(server, first=1000):
    """Requests until none can be written any more: both pipes and the server are full. The number
    of the first id that was not written, and what is left of it."""
    os.set_blocking(server.write_fd, False)
    id, rest, since = first, ping(first), time.monotonic()
    while time.monotonic() - since < 0.5:
        try:
            rest = rest[os.write(server.write_fd, rest) :]
            since = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
        if not rest:
            id, rest = id + 1, ping(id + 1)
    return id, rest


@scenario("flow-all-full-then-read", "poe-platform/poe-code#602")
def all_full_then_read(argv):
    """Backpressure is bounded, and when the client reads, everything goes on."""
    with Server(argv, read=False) as server:
        server.send(HANDSHAKE)
        last, rest = fill(server)
        server.must_live()
        check(server.peak_kib() < 48 << 10, "at most 48 MiB", f"{server.peak_kib()} KiB")
        server.drain()
        server.send(rest)
        check(server.answered([last], 60), "all replies", f"{server.lines}")
        want_ids(collected(server, 30), [1, *range(1000, last + 1)])


@scenario("flow-all-full-then-eof", "orlyatomics/orly#542")
def all_full_then_eof(argv):
    """The end of input comes while everything is full; whoever then reads gets every reply."""
    with Server(argv, read=False) as server:
        server.send(HANDSHAKE)
        last, rest = fill(server)
        server.close_stdin()
        server.drain()
        server.must_exit(30, (0,))
        server.wait(lambda: server.eof, 10)
        found, faults = messages(bytes(server.out))
        check(not faults, "only responses", "; ".join(faults[:3]))
        whole = rest == ping(last)
        torn = [m for m in found if "id" not in m]
        check(len(torn) == (not whole), "one error for a torn frame", f"{len(torn)}")
        want_ids([m for m in found if "id" in m], [1, *range(1000, last)])


@scenario("flow-eof-then-a-slow-reader", "orlyatomics/orly#542")
def eof_then_slow_reader(argv):
    """The reader takes several seconds for what was queued at the end: it gets it all."""
    with Server(argv, read=False) as server:
        server.send(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(100, 220)))
        server.close_stdin()
        time.sleep(0.5)
        read_all(server, 121, 16384, 0.08)
        server.drain()
        want_ids(collected(server), [1, *range(100, 220)])


@scenario("flow-eof-then-a-slow-reader-on-a-socket", "orlyatomics/orly#542")
def eof_then_slow_reader_on_a_socket(argv):
    """The same on a socket, which reports room only when three quarters of its buffer are free:
    a reader that takes something all the time is not one that has stopped."""
    with SocketServer(argv, read=False) as server:
        server.send(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(100, 220)))
        server.half_close()
        read_all(server, 121, 16384, 0.2)
        server.drain()
        want_ids(collected(server), [1, *range(100, 220)])


@scenario("flow-late-reader", "modelcontextprotocol/python-sdk#1143")
def late_reader(argv):
    """One big reply and a reader that comes after a second."""
    for size in (60_000, 70_000, 131_072, 900_000):
        with Server(argv, read=False) as server:
            id = "b" * size
            server.send(HANDSHAKE + request(id, "ping") + ping(99))
            time.sleep(0.3)
            server.drain()
            server.expect(99)
            want_ids(collected(server), [1, id, 99])


@scenario("flow-reader-stops-and-goes", "K0M15/webserv#53")
def reader_stops_and_goes(argv):
    with Server(argv, read=False) as server:
        server.send(HANDSHAKE)
        for round in range(5):
            first = 1000 * (round + 1)
            server.send(b"".join(request(i, "tools/list") for i in range(first, first + 100)), 30)
            time.sleep(0.15)
            read_all(server, 1 + 100 * (round + 1))
        server.drain()
        wanted = [1000 * r + i for r in range(1, 6) for i in range(100)]
        want_ids(collected(server), [1, *wanted])


# Answers that must not wait ---------------------------------------------------------------------

@scenario("flow-oversized-answered-early", "tcconnally/perseus#643")
def oversized_answered_early(argv):
    """The error comes when the bound is passed, not when the line ends."""
    with Server(argv) as server:
        server.handshake()
        server.send(b"a" * (1 << 20))
        time.sleep(0.3)
        check(server.lines == 1, "no error at the bound", f"{server.lines - 1} more lines")
        server.send(b"a")
        check(server.wait(lambda: server.lines == 2, 10), "an error beyond the bound", "none")
        server.send(b"a" * 100_000)
        time.sleep(0.1)
        server.send(b"\n" + ping(99))
        server.expect(99)
        codes = [m["error"]["code"] for m in collected(server) if "error" in m]
        check(codes == [-32600], "one error -32600", f"{codes}")


@scenario("flow-three-lines-then-silence", "DeusData/codebase-memory-mcp#98")
def lines_then_silence(argv):
    """What is read already must not wait for the next read."""
    for kind in (Server, SocketServer):
        with kind(argv) as server:
            for size in (1, 3, 50, 1700):  # 1700 pings are more than one read
                ids = [size * 10_000 + i for i in range(size)]
                before = server.lines
                lines_at_once(server, b"".join(map(ping, ids)), before + size, 10)


@scenario("flow-answers-between-noise", "chrisdoc/hevy-mcp#796")
def answers_between_noise(argv):
    """A client that waits for each reply, with blank lines and garbage around each request."""
    with Server(argv) as server:
        server.handshake()
        for id in range(100, 400):
            server.send(b"\n\r\n" + b"x\n" * (id % 3) + ping(id) + b" \n")
            server.expect(id)


@scenario("flow-ping-pong", "policy")
def ping_pong(argv):
    for kind in (Server, SocketServer):
        with kind(argv) as server:
            server.handshake()
            for id in range(1000, 3000):
                server.must_serve(id)


@scenario("flow-twenty-at-once", "modelcontextprotocol/typescript-sdk#2002")
def twenty_at_once(argv):
    """Clients start several servers at a time, if only to probe: no lock, no port, no wait."""
    servers = []
    try:
        for _ in range(20):
            servers.append(Server(argv))
        for server in servers:
            server.send(HANDSHAKE + request(2, "tools/list"))
        for server in servers:
            server.expect(2, 30)
        for server in servers:
            server.must_serve(99, 30)
        for server in servers:
            want_ids(collected(server), [1, 2, 99])
    finally:
        for server in servers:
            server.finish()


@scenario("flow-stop-and-continue", "tokio-rs/mio#494")
def stop_and_continue(argv):
    """SIGSTOP and SIGCONT in the middle of traffic: waiting calls return early."""
    with Server(argv) as server:
        server.handshake()
        first = 1000
        for _ in range(15):
            server.signal(signal.SIGSTOP)
            server.send(b"".join(ping(i) for i in range(first, first + 100)))
            time.sleep(0.02)
            server.signal(signal.SIGCONT)
            server.send(b"".join(ping(i) for i in range(first + 100, first + 200)))
            first += 200
            server.expect(first - 1)  # or the pipe may be full while the server is stopped
        want_ids(collected(server), [1, *range(1000, first)])


@scenario("flow-stopped-while-the-input-ends", "abhigyanpatwari/GitNexus#2049")
def stopped_at_eof(argv):
    with Server(argv) as server:
        server.handshake()
        server.signal(signal.SIGSTOP)
        server.send(b"".join(ping(i) for i in range(100, 1000)) + ping(2).rstrip())
        server.close_stdin()
        server.signal(signal.SIGCONT)
        want_ids(collected(server), [1, 2, *range(100, 1000)])
