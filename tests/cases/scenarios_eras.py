"""Scenarios: revision 2026-07-28, where time matters."""

import signal
import time

from harness import (
    check, compact, key, messages, ping, request, scenario, Server, until,
)


META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def listen(id):
    return request(id, "subscriptions/listen", {"_meta": META, "notifications": {}})


def cancelled(id):
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    return compact({**message, "params": {"requestId": id}}) + b"\n"


def noted(server):
    found, faults = messages(bytes(server.out), notes=True)
    check(not faults, "only messages", "; ".join(faults[:3]))
    return found


@scenario("era-listen-stays-open", "policy")
def listen_stays_open(argv):
    """The acknowledgement comes at once and first, a result only with the end of input."""
    with Server(argv) as server:
        server.send(listen(2) + ping(3))
        server.expect(3)
        time.sleep(0.3)
        first = noted(server)[0]
        name, params = first.get("method"), first.get("params", {})
        check(name == "notifications/subscriptions/acknowledged"
              and params["_meta"][SUBSCRIPTION] == 2, "the acknowledgement first", f"{first}")
        check(key(2) not in server.seen, "no result while it is open", "one")
        server.close_stdin()
        server.must_exit(statuses=(0,))
        server.wait(lambda: server.eof, 5)
        ends = [m for m in noted(server) if m.get("id") == 2]
        check(len(ends) <= 1 and all(m["result"]["_meta"][SUBSCRIPTION] == 2 for m in ends),
              "at most one result, tagged with its id", f"{ends}")


@scenario("era-listen-cancelled-for-good", "modelcontextprotocol/python-sdk#2481")
def listen_cancelled(argv):
    """After a cancellation nothing more is sent for it, not even at the end of input."""
    with Server(argv) as server:
        server.send(listen(2) + listen("s") + ping(3))
        server.expect(3)
        server.send(cancelled(2) + cancelled("s") + ping(4))
        server.expect(4)
        server.close_stdin()
        server.must_exit(statuses=(0,))
        server.wait(lambda: server.eof, 5)
        ids = [m["id"] for m in noted(server) if "id" in m]
        check(ids == [3, 4], "replies to 3 and 4 alone", f"{ids}")


@scenario("era-listen-and-a-signal", "brekkylab/backlot#108")
def listen_and_a_signal(argv):
    """An open subscription keeps no server alive."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with Server(argv) as server:
            server.send(listen(2) + ping(3))
            server.expect(3)
            server.signal(number)
            server.must_end()


@scenario("era-listen-flat-memory", "zed-industries/zed#58867")
def listen_flat_memory(argv):
    """Subscriptions that come and go, and more than are kept, leave nothing behind."""
    with Server(argv) as server:
        server.handshake()
        early = 0
        for first in range(10_000, 30_000, 1000):
            ids = range(first, first + 1000)
            server.send(b"".join(listen(i) + cancelled(i) for i in ids), 30)
            server.send(b"".join(map(listen, ids)) + b"".join(map(cancelled, ids)), 30)
            server.must_serve(first + 500_000, 30)
            if first == 12_000:
                time.sleep(0.5)
                early = server.rss_kib()
        until(lambda: server.rss_kib() - early <= 256, 3, 0.05)
        grown = server.rss_kib() - early
        check(grown <= 256, "flat memory", f"{grown} KiB more")
