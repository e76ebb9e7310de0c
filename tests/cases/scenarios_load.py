"""Scenarios: memory, and CPU time while idle."""

import os
import signal
import socket
import tempfile
import time

from harness import (
    check, collected, Failed, gone, HANDSHAKE, initialize, NULL, ping, request, scenario, Server,
    SocketServer, stuff_stdout, Terminal, until,
)


@scenario("frame-endless-line", "tcconnally/perseus#643", alone=True)
def endless_line(argv):
    """256 MiB without a newline, then EOF."""
    with Server(argv) as server:
        server.handshake()
        base, block = server.rss_kib(), b"a" * (1 << 20)
        for _ in range(256):
            if not server.send(block, 10):
                break
        server.must_live()
        grown = server.peak_kib() - base
        check(grown < 16 << 10, "growth under 16 MiB", f"{grown} KiB")
        found = collected(server)
        codes = [m["error"]["code"] for m in found if "error" in m]
        check(codes == [-32600], "one error -32600", f"{codes}")


@scenario("mem-oversized-64MiB", "tcconnally/perseus#643", alone=True)
def oversized_line(argv):
    """One line of 64 MiB is dropped as it comes; the next one is served."""
    with Server(argv) as server:
        server.handshake()
        base, block = server.rss_kib(), b"a" * (1 << 20)
        for _ in range(64):
            server.send(block, 10)
        server.send(b"\n" + ping(99))
        server.expect(99)
        grown = server.peak_kib() - base
        check(grown < 16 << 10, "growth under 16 MiB", f"{grown} KiB")
        loose = [m for m in collected(server) if "id" not in m]
        codes = [m["error"]["code"] for m in loose]
        check(codes == [-32600], "one error -32600 without id", f"{codes}")


@scenario("life-large-error-rss", "fitzgen/bumpalo#314", alone=True)
def large_errors(argv):
    """A hundred frames of a mebibyte, all bad: the error path gives its memory back."""
    with Server(argv) as server:
        server.handshake()
        frame = b'{"jsonrpc":"2.0","id":2,"method":"' + b"a" * ((1 << 20) - 64) + b"\n"
        early = 0
        for i in range(100):
            server.send(frame)
            wanted = i + 2
            check(server.wait(lambda: server.lines >= wanted, 10), "an error per bad frame",
                  f"{server.lines - 1} for {i + 1}")
            if i == 20:
                early = server.rss_kib()
        grown = server.rss_kib() - early
        check(grown <= 2048, "growth of at most 2 MiB", f"{grown} KiB")
        server.send(ping(99))
        server.expect(99)
        server.close_stdin()
        server.must_exit(statuses=(0,))


TICK_S = 1 / os.sysconf("SC_CLK_TCK")
IDLE_S = 1.5


def stay_idle(servers):
    """Over some idle time each of these running servers uses next to no CPU. CPU time does not
    depend on what else the machine does."""

    def used_in(seconds):
        before = {name: server.cpu_s() for name, server in servers.items() if not gone(server.pid)}
        time.sleep(seconds)
        return {name: (servers[name].cpu_s() - start) / TICK_S for name, start in before.items()
                if not gone(servers[name].pid)}

    until(lambda: sum(used_in(0.3).values()) < 1, 5)  # a busy machine is late with the work itself
    for name, ticks in used_in(IDLE_S).items():
        check(ticks <= 3, f"at most 3 ticks of CPU idle {name}", f"{ticks:.0f} in {IDLE_S} s")


def finish_all(servers):
    for server in servers.values():
        server.finish()


@scenario("idle-after-traffic", "QuantGeekDev/mcp-framework#181")
def idle_after_traffic(argv):
    """Idle after each kind of input, on pipes and on sockets."""
    inputs = {
        "at the start": b"",
        "after the handshake": HANDSHAKE,
        "after garbage": HANDSHAKE + b"x\n[\n\xff\n" * 300,
        "in mid-frame": HANDSHAKE + ping(2)[:20],
        "with 300 kB of a frame": HANDSHAKE + b'{"x":"' + b"a" * 300_000,
        "while it drops a line": HANDSHAKE + b"a" * 1_500_000,
        "after a dropped line": HANDSHAKE + b"a" * 1_500_000 + b"\n",
        "after a big frame": HANDSHAKE + request(2, "ping", {"x": "a" * 900_000}),
        "after blank lines": HANDSHAKE + b"\n \r\n" * 1000,
    }
    servers = {}
    try:
        for kind in (Server, SocketServer):
            for name, data in inputs.items():
                server = servers[f"{name} ({kind.__name__})"] = kind(argv)
                server.send(data)
        stay_idle(servers)
        for name, server in servers.items():
            check(server.child.poll() is None, f"a running server {name}", server.fate())
    finally:
        finish_all(servers)


@scenario("idle-while-unread", "nim-lang/Nim#1990")
def idle_while_unread(argv):
    """stdout is full and nobody reads, with stdin open, full or ended."""
    servers = {}
    try:
        for kind in (Server, SocketServer):
            for how in ("open", "full", "ended"):
                server = servers[f"stdin {how} ({kind.__name__})"] = kind(argv, read=False)
                stuff_stdout(server)
                if how == "full":
                    try:
                        server.send(b"".join(ping(i) for i in range(1000, 99_000)), 0.3)
                    except Failed:
                        pass
                if how == "ended":
                    if kind is SocketServer:
                        server.half_close()
                    server.close_stdin()
        source = tempfile.TemporaryFile()
        source.write(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(1000, 200_000)))
        source.seek(0)
        servers["stdin a file"] = Server(argv, stdin=source.fileno(), read=False)
        source.close()
        for name in [name for name in servers if "ended" in name]:
            server = servers[name]
            start = server.cpu_s()
            time.sleep(0.4)
            if not gone(server.pid):
                check(server.cpu_s() - start <= 3 * TICK_S, f"no spin while {name}", "a spin")
        stay_idle(servers)
    finally:
        finish_all(servers)


@scenario("idle-on-odd-descriptors", "rust-lang/rust#57728")
def idle_on_odd_descriptors(argv):
    """A terminal, stdout as a file or as /dev/null, a stopped and continued server."""
    servers, extra = {}, []
    try:
        terminal = Terminal(argv)
        extra.append(terminal)
        terminal.type(HANDSHAKE)
        terminal.expect(b'"protocolVersion"')
        servers["on a terminal"] = terminal.server
        servers["with stdout as /dev/null"] = Server(argv, stdout=NULL)
        sink = tempfile.TemporaryFile()
        servers["with stdout as a file"] = Server(argv, stdout=sink.fileno())
        sink.close()
        servers["after SIGSTOP and SIGCONT"] = stopped = Server(argv)
        servers["with stderr closed"] = Server(argv, shell="exec 2>&-; exec")
        for name, server in servers.items():
            if name != "on a terminal":
                server.send(HANDSHAKE + ping(2))
        for _ in range(3):
            stopped.signal(signal.SIGSTOP)
            time.sleep(0.05)
            stopped.signal(signal.SIGCONT)
        stay_idle(servers)
        for name, server in servers.items():
            check(server.child.poll() is None, f"a running server {name}", server.fate())
    finally:
        for terminal in extra:
            terminal.__exit__()
            servers.pop("on a terminal", None)
        finish_all(servers)


@scenario("idle-half-closed-socket", "cloudflare/mcp-server-cloudflare#487")
def idle_half_closed(argv):
    """The reading side of one socket is shut: an end, or an idle life, but no spin."""
    with SocketServer(argv, one=True, read=False) as server:
        server.send(HANDSHAKE)
        check(server.read_some(10), "a reply to initialize", server.fate())
        server.ours.shutdown(socket.SHUT_RD)
        stay_idle({"with a peer that reads no more": server})
        server.close_stdin()
        server.ours.close()
        server.close_stdout()
        server.must_end()


# Memory -----------------------------------------------------------------------------------------

MEBIBYTE = 1 << 20
PEAK_KIB = 48 << 10


def hostile(head, unit, tail=b""):
    """A frame of exactly one mebibyte."""
    count = (MEBIBYTE - len(head) - len(tail)) // len(unit)
    frame = head + unit * count + tail
    return frame + b" " * (MEBIBYTE - len(frame)) + b"\n"


OPEN = b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":'
CALL = (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"larry_submit_task",'
        b'"arguments":{')
HOSTILE = {
    "open brackets": hostile(b"", b"["),
    "commas": hostile(b"[", b"1,", b"1]"),
    "open objects": hostile(b"", b'{"a":'),
    "empty arrays": hostile(OPEN + b"[", b"[],", b"[]]}}"),
    "empty objects": hostile(OPEN + b"[", b"{},", b"{}]}}"),
    "nested pairs": hostile(OPEN + b"[", b"[[]],", b"[]]}}"),
    "members": hostile(OPEN + b"{", b'"":0,', b'"":0}}}'),
    "escapes": hostile(OPEN + b'"', b"\\u00e9", b'"}}'),
    "one string": hostile(OPEN + b'"', b"a", b'"}}'),
    "short strings": hostile(OPEN + b"[", b'"",', b'""]}}'),
    "quotes": hostile(b"", b'"'),
    "backslashes": hostile(b'"', b"\\"),
    "digits": hostile(OPEN, b"9", b"}}"),
    "NULs": hostile(b"", b"\0"),
    "bad bytes": hostile(b"", b"\xff"),
    "a huge id": hostile(b'{"jsonrpc":"2.0","method":"ping","id":"', "\u2028".encode(), b'"}'),
    "a huge method": hostile(b'{"jsonrpc":"2.0","id":7,"method":"', b'\\"', b'"}'),
    "a batch": hostile(b"[", b"{},", b"{}]"),
    "unknown arguments": hostile(CALL, b'"a":1,', b'"goal":"g"}}}'),
    "one long argument": hostile(CALL + b'"', b"\\u0001", b'":1}}}'),
    "many criteria": hostile(CALL + b'"acceptance":[', b"1,", b"1]}}}"),
    "many files": hostile(CALL + b'"files":[', b'"/",', b'""]}}}'),
}


def rests(server, base_kib, name):
    """Within two seconds the memory is back within a mebibyte of what it was."""
    until(lambda: server.rss_kib() - base_kib <= 1024, 2, 0.05)
    grown = server.rss_kib() - base_kib
    check(grown <= 1024, f"at most 1 MiB more after {name}", f"{grown} KiB")
    check(server.peak_kib() <= PEAK_KIB, f"a peak of at most 48 MiB with {name}",
          f"{server.peak_kib()} KiB")


@scenario("mem-hostile-frames", "anthropics/connect-rust#301")
def hostile_frames(argv):
    """Each kind of frame by itself, twice, in a server of its own."""
    for name, frame in HOSTILE.items():
        with Server(argv) as server:
            server.handshake()
            server.must_serve(2)
            base = server.rss_kib()
            for round in (1, 2):
                server.send(frame)
                server.must_serve(100 + round, 30)
            rests(server, base, name)


@scenario("mem-hostile-burst", "ozontech/pg_doorman#227")
def hostile_burst(argv):
    """All of them one after the other, in both orders, with small requests between."""
    with Server(argv) as server:
        server.handshake()
        server.must_serve(2)
        base = server.rss_kib()
        for id, frame in enumerate([*HOSTILE.values(), *reversed(HOSTILE.values())], 100):
            server.send(frame)
            server.must_serve(id, 30)
        rests(server, base, "the burst")


@scenario("mem-hostile-batches", "policy")
def hostile_batches(argv):
    """Batches as large as a frame, in the revision that has them."""
    units = (b"1,", b"{},", b"[],", ping(7)[:-1] + b",", request(7, "tools/list")[:-1] + b",")
    with Server(argv) as server:
        server.send(initialize(1, "2025-03-26") + ping(2))
        server.expect(2)
        base = server.rss_kib()
        for round in range(2):
            for i, unit in enumerate(units):
                server.send(hostile(b"[", unit, b"1]"))
                server.send(b"[" + unit * 1000 + b"1]\n")
                server.must_serve(100 + 10 * round + i, 30)
        rests(server, base, "batches")


@scenario("mem-ping-pong-1MiB", "amazon-ion/ion-rust#340")
def ping_pong_of_mebibytes(argv):
    with Server(argv) as server:
        server.handshake()
        early = 0
        for i in range(60):
            frame = request(1000 + i, "ping", {"x": ""})[:-4]
            server.send(frame + b"a" * (MEBIBYTE - len(frame) - 3) + b'"}}\n', 30)
            server.expect(1000 + i, 30)
            if i == 10:
                early = server.rss_kib()
        grown = server.rss_kib() - early
        check(grown <= 1024, "flat memory", f"{grown} KiB more")
        check(server.peak_kib() <= PEAK_KIB, "at most 48 MiB", f"{server.peak_kib()} KiB")


@scenario("mem-flat-over-pings", "aovestdipaperino/tokensave#253")
def flat_over_pings(argv):
    """A hundred thousand requests leave nothing behind."""
    with Server(argv) as server:
        server.handshake()
        early = 0
        for first in range(100_000, 200_000, 5000):
            block = b"".join(ping(i) for i in range(first, first + 4900))
            calls = b"".join(request(i, "tools/list" if i % 2 else "nope")
                             for i in range(first + 4900, first + 5000))
            server.send(block + calls, 30)
            server.expect(first + 4999, 30)
            if first == 110_000:
                time.sleep(0.5)
                early = server.rss_kib()
        until(lambda: server.rss_kib() - early <= 256, 3, 0.05)
        grown = server.rss_kib() - early
        check(grown <= 256, "flat memory", f"{grown} KiB more")


@scenario("mem-unread-is-bounded", "zed-industries/zed#58867")
def unread_is_bounded(argv):
    """A client that never reads, and writes what it can of large replies."""
    for line in (request(5, "tools/list"), request("\u2028" * 300_000, "ping"), b"x\n"):
        with Server(argv, read=False) as server:
            server.send(HANDSHAKE)
            try:
                server.send(line * (8 * MEBIBYTE // len(line)), 1)
            except Failed:
                pass
            server.must_live()
            check(server.peak_kib() <= PEAK_KIB, "at most 48 MiB", f"{server.peak_kib()} KiB")


@scenario("mem-rest-after-unread", "anthropics/connect-rust#301")
def rest_after_unread(argv):
    """What was queued for a late reader is given back once it was read."""
    with Server(argv, read=False) as server:
        server.send(HANDSHAKE + ping(2))
        server.trickle(2, 1 << 16, 0, 10)
        base = server.rss_kib()
        server.send(b"".join(request(i, "tools/list") for i in range(1000, 4000)), 30)
        server.drain()
        server.expect(3999, 30)
        rests(server, base, "a late reader")
