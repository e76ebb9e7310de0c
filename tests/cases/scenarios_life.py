"""Scenarios: how a server ends, and that it does not."""

import ctypes
import os
import signal
import time

from harness import (
    check, child_of, closed_socket, collected, end_process, gone, HANDSHAKE, idle_signal,
    messages, Orphan, ping, request, scenario, Server, short, SocketServer, stuff_stdout,
    Terminal, until, want_ids,
)


@scenario("fd-client-closes-stdout-idle", "verygoodplugins/mcp-automem#137")
def stdout_reader_gone_idle(argv):
    """Nothing is written any more, and still the server sees that its client is gone."""
    with Server(argv, read=False) as server:
        server.send(HANDSHAKE)
        check(server.read_some(10), "a reply to initialize", server.fate())
        server.close_stdout()
        server.must_end()


@scenario("fd-sigpipe-default", "utensils/mold#342")
def sigpipe_default(argv):
    """Started with SIGPIPE at its default, it still ends by itself and not by the signal."""
    with Server(argv, read=False) as server:  # Popen gives children the default
        server.send(HANDSHAKE)
        check(server.read_some(10), "a reply to initialize", server.fate())
        server.close_stdout()
        server.send(ping(2) + ping(3))
        status = server.must_exit()
        check(status not in (-signal.SIGPIPE, 128 + signal.SIGPIPE), "no death by SIGPIPE",
              f"exit {status}")


@scenario("life-eof-during-startup", "abhigyanpatwari/GitNexus#2049")
def eof_during_startup(argv):
    """stdin is closed 0 to 50 ms after the start, in 50 runs."""
    for i in range(50):
        with Server(argv) as server:
            time.sleep(i / 1000)
            server.close_stdin()
            server.must_exit(statuses=(0,))


@scenario("life-sigint-idle", "zeenix/rust-analyzer-mcp#23")
def sigint_idle(argv):
    idle_signal(argv, signal.SIGINT)


@scenario("life-sighup", "verygoodplugins/mcp-automem#137")
def sighup_idle(argv):
    idle_signal(argv, signal.SIGHUP)


@scenario("life-sigint-idle-pty", "modelcontextprotocol/python-sdk#3551")
def sigint_on_a_terminal(argv):
    """The first SIGINT works with a terminal as stdin."""
    with Terminal(argv) as terminal:
        terminal.type(HANDSHAKE)
        terminal.expect(b'"protocolVersion"')
        terminal.server.signal(signal.SIGINT)
        terminal.server.must_end()


@scenario("life-sigterm-before-init", "classfang/ssh-mcp-server#42")
def sigterm_at_start(argv):
    """No moment in which a handler is there but nobody looks at it."""
    for i in range(40):
        with Server(argv) as server:
            time.sleep(i / 2000)
            server.signal(signal.SIGTERM)
            server.must_end()


@scenario("life-sigwinch-storm", "tokio-rs/mio#494")
def signal_storm(argv):
    """Signals that are ignored by default, in the middle of traffic."""
    with Server(argv) as server:
        server.handshake()
        for i in range(1000):
            server.signal(signal.SIGWINCH if i % 2 else signal.SIGCHLD)
            server.send(ping(1000 + i))
        server.answered([1999])
        want_ids(collected(server), [1, *range(1000, 2000)])


@scenario("life-ptrace-attach", "rust-lang/futures-rs#2")
def traced(argv):
    """A tracer attaches and leaves. Where tracing is not allowed there is nothing to see."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    with Server(argv) as server:
        server.handshake()
        for id in (98, 99):
            if libc.ptrace(16, server.pid, None, None) == 0:
                os.waitpid(server.pid, 0x40000000)
                time.sleep(0.05)
                libc.ptrace(17, server.pid, None, None)
            server.send(ping(id))
            server.expect(id)
        want_ids(collected(server), [1, 98, 99])


@scenario("life-parent-killed", "ooples/token-optimizer-mcp#177")
def parent_killed(argv):
    """The client dies by SIGKILL: an end of input like any other."""
    with Orphan(argv) as orphan:
        orphan.kill_client()
        orphan.must_be_gone()


@scenario("life-parent-killed-wrapper", "verygoodplugins/mcp-automem#137")
def parent_killed_stdin_leaked(argv):
    """As before, but a sibling holds the write end of stdin: no EOF, only a dead stdout."""
    with Orphan(argv, leak="in") as orphan:
        orphan.kill_client()
        orphan.must_be_gone()


@scenario("life-watchdog-pidns", "microsoft/vscode-languageserver-node#857")
def adopted_from_the_start(argv):
    """A parent that is not the client, such as process 1, is no reason to leave."""
    shell = 'exec 3<&0; (sleep 0.3; exec "$@") <&3 & echo $! >&2; exit 0; :'
    read_end, write_end = os.pipe()
    with Server(argv, shell=shell, stdin=read_end) as server:
        os.close(read_end)
        server.write_fd = write_end
        os.set_blocking(write_end, False)
        server.must_exit(statuses=(0,))  # the shell only
        until(lambda: b"\n" in server.err, 5)
        pid = int(server.err.split()[0])
        try:
            server.send(HANDSHAKE)
            server.expect(1)
            time.sleep(1.5)
            server.send(ping(99))
            check(server.answered([99]), "a reply to id 99", f"{server.lines} lines")
            server.close_stdin()
            check(until(lambda: gone(pid), 5), "exit in 5 s of EOF", "still running")
        finally:
            if not gone(pid):
                end_process(pid)


# The end of input -------------------------------------------------------------------------------

@scenario("life-eof-ends-quietly", "modelcontextprotocol/typescript-sdk#2002")
def eof_quietly(argv):
    for kind in (Server, SocketServer):
        for data in (b"", HANDSHAKE, HANDSHAKE + ping(2) + b"x\n", HANDSHAKE + ping(2)[:9]):
            with kind(argv) as server:
                server.send(data)
                if kind is SocketServer:
                    server.half_close()
                server.close_stdin()
                server.must_exit(statuses=(0,))
                check(not server.err, "nothing on stderr", short(bytes(server.err)))


@scenario("life-eof-while-stdout-is-unread", "MongLong0214/logic-pro-mcp#683")
def eof_while_unread(argv):
    """Nobody ever reads: the replies are given up after a while."""
    for kind in (Server, SocketServer):
        with kind(argv, read=False) as server:
            stuff_stdout(server)
            if kind is SocketServer:
                server.half_close()
            server.close_stdin()
            server.must_end(15)


@scenario("life-socket-closed-mid-frame", "nodejs/node#11418")
def socket_closed_mid_frame(argv):
    closed_socket(argv, b'{"jsonrpc":"2.0","id":3')


@scenario("life-socket-closed-with-work-queued", "nodejs/node#11418")
def socket_closed_with_work(argv):
    closed_socket(argv, b"".join(request(i, "tools/list") for i in range(100, 2000)))


# The reader is gone -----------------------------------------------------------------------------

def reader_goes(server, close):
    """The reader leaves; the server ends with 0 and without a word."""
    close()
    server.must_exit(statuses=(0,))
    time.sleep(0.05)
    check(not server.err, "nothing on stderr", short(bytes(server.err)))


@scenario("life-reader-gone-idle", "verygoodplugins/mcp-automem#137")
def reader_gone_idle(argv):
    for kind in (Server, SocketServer):
        with kind(argv, read=False) as server:
            server.send(HANDSHAKE)
            check(server.read_some(10), "a reply to initialize", server.fate())
            time.sleep(0.2)
            reader_goes(server, server.close_stdout)


@scenario("life-reader-gone-before-anything", "web-infra-dev/midscene#2157")
def reader_gone_first(argv):
    for kind in (Server, SocketServer):
        with kind(argv, read=False) as server:
            reader_goes(server, server.close_stdout)


@scenario("life-reader-gone-while-blocked", "web-infra-dev/midscene#2157")
def reader_gone_blocked(argv):
    """stdout is full and requests wait when the reader leaves."""
    for kind in (Server, SocketServer):
        with kind(argv, read=False) as server:
            stuff_stdout(server)
            reader_goes(server, server.close_stdout)


@scenario("life-reader-gone-then-requests", "utensils/mold#342")
def reader_gone_then_requests(argv):
    with Server(argv, read=False) as server:
        server.send(HANDSHAKE)
        check(server.read_some(10), "a reply to initialize", server.fate())

        def close():
            server.close_stdout()
            server.send(b"".join(ping(i) for i in range(100, 1000)))

        reader_goes(server, close)


@scenario("life-reader-gone-at-eof", "oxidecomputer/tockilator#12")
def reader_gone_at_eof(argv):
    """Both ends at the same moment, with replies to write."""
    for _ in range(20):
        with Server(argv, read=False) as server:
            server.send(HANDSHAKE + b"".join(request(i, "tools/list") for i in range(100, 200)))

            def close():
                server.close_stdin()
                server.close_stdout()

            reader_goes(server, close)


@scenario("life-sigpipe-ignored-at-start", "utensils/mold#342")
def sigpipe_ignored(argv):
    with Server(argv, shell="trap '' PIPE; exec", read=False) as server:
        server.send(HANDSHAKE)
        check(server.read_some(10), "a reply to initialize", server.fate())
        server.close_stdout()
        server.send(ping(2))
        server.must_exit(statuses=(0,))


# Signals ----------------------------------------------------------------------------------------

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@scenario("life-signals-everywhere", "brekkylab/backlot#108")
def signals_everywhere(argv):
    """Each signal ends it before the handshake, in mid-frame, and while it drops a line."""
    for number in ENDING:
        for data in (b"", HANDSHAKE + ping(2)[:20], b"a" * 1_500_000):
            with Server(argv) as server:
                server.send(data)
                time.sleep(0.05)
                server.signal(number)
                server.must_end()


@scenario("life-signals-while-blocked", "brekkylab/backlot#108")
def signals_while_blocked(argv):
    """stdout is full and nobody reads: a signal is still the end."""
    for number in ENDING:
        for kind in (Server, SocketServer):
            with kind(argv, read=False) as server:
                stuff_stdout(server)
                server.signal(number)
                server.must_end()


@scenario("life-signals-while-flushing", "brekkylab/backlot#108")
def signals_while_flushing(argv):
    """The input has ended and replies wait for a reader when the signal comes."""
    for number in ENDING:
        with Server(argv, read=False) as server:
            stuff_stdout(server)
            server.close_stdin()
            time.sleep(0.1)
            server.signal(number)
            server.must_end()


@scenario("life-two-signals", "awslabs/mcp#1296")
def two_signals(argv):
    for first in ENDING:
        for second in ENDING:
            with Server(argv) as server:
                server.handshake()
                server.signal(first)
                server.signal(second)
                server.must_end()


@scenario("life-two-signals-while-blocked", "awslabs/mcp#1296")
def two_signals_while_blocked(argv):
    with Server(argv, read=False) as server:
        stuff_stdout(server)
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            server.signal(number)
        server.must_end()


@scenario("life-signals-on-sockets-and-terminals", "rust-lang/futures-rs#2")
def signals_elsewhere(argv):
    for number in ENDING:
        with SocketServer(argv) as server:
            server.handshake()
            server.signal(number)
            server.must_end()
        with Terminal(argv) as terminal:
            terminal.type(HANDSHAKE)
            terminal.expect(b'"protocolVersion"')
            terminal.server.signal(number)
            terminal.server.must_end()


@scenario("life-signal-while-stopped", "tokio-rs/mio#494")
def signal_while_stopped(argv):
    with Server(argv) as server:
        server.handshake()
        server.signal(signal.SIGSTOP)
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGCONT)
        server.must_end()


@scenario("life-written-replies-survive-a-signal", "orlyatomics/orly#542")
def replies_survive_a_signal(argv):
    """A reply that was given before the signal is whole."""
    for number in ENDING:
        with Server(argv) as server:
            server.send(HANDSHAKE + request("b" * 50_000, "ping"))
            server.expect("b" * 50_000)
            server.signal(number)
            server.must_end()
            server.wait(lambda: server.eof, 5)
            found, faults = messages(bytes(server.out))
            check(not faults and len(found) == 2, "two whole replies", f"{len(found)} {faults}")


@scenario("life-nohup", "policy")
def nohup(argv):
    """SIGHUP is ignored from the start, as under nohup: it goes on serving."""
    with Server(argv, shell="trap '' HUP; exec") as server:
        server.handshake()
        server.signal(signal.SIGHUP)
        time.sleep(0.2)
        server.must_live()
        server.must_serve(99)
        server.signal(signal.SIGTERM)
        server.must_end()


@scenario("life-sigint-ignored-at-start", "policy")
def sigint_ignored(argv):
    """A shell ignores SIGINT for what it runs in the background; SIGTERM must still work."""
    with Server(argv, shell="trap '' INT QUIT; exec") as server:
        server.handshake()
        server.signal(signal.SIGTERM)
        server.must_end()


@scenario("life-signals-blocked-at-start", "classfang/ssh-mcp-server#42")
def signals_blocked(argv):
    """A parent that blocks SIGTERM hands its mask down. The end of input must still work."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        with Server(argv) as server:
            server.handshake()
            server.close_stdin()
            server.must_exit(statuses=(0,))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


@scenario("life-harmless-signals", "vorner/signal-hook#98")
def harmless_signals(argv):
    with Server(argv) as server:
        server.handshake()
        for number in (signal.SIGWINCH, signal.SIGCHLD, signal.SIGURG, signal.SIGCONT):
            server.signal(number)
        server.must_serve(99)
        want_ids(collected(server), [1, 99])


# Who holds the pipes ----------------------------------------------------------------------------

@scenario("life-parent-killed-all-leaked", "vshulcz/deja-vu#2397")
def all_leaked(argv):
    """A sibling holds both ends: neither EOF nor EPIPE, only a parent that is gone."""
    with Orphan(argv, leak="both") as orphan:
        orphan.kill_client()
        orphan.must_be_gone()


@scenario("life-wrapped-client-killed", "verygoodplugins/mcp-automem#137")
def wrapped_client_killed(argv):
    """Client, shell, server: the client dies, the shell lives and waits."""
    for leak in ("none", "in"):
        with Orphan(argv, leak=leak, wrapped=True) as orphan:
            orphan.kill_client()
            orphan.must_be_gone()


@scenario("life-wrapper-killed", "oxc-project/oxc#23618")
def wrapper_killed(argv):
    """The shell between them dies. The client sees its child gone, so must the server be."""
    with Orphan(argv, wrapped=True) as orphan:
        end_process(orphan.wrapper)
        orphan.must_be_gone()


@scenario("life-launcher-leaves-early", "microsoft/vscode-languageserver-node#857")
def launcher_leaves_early(argv):
    """A launcher starts the server and is gone before the client has said a word."""
    for wait in ("", "sleep 0.01;", "sleep 0.2;"):
        shell = f'exec 3<&0; "$@" <&3 & {wait} exit 0; :'
        read_end, write_end = os.pipe()
        with Server(argv, shell=shell, stdin=read_end) as server:
            os.close(read_end)
            server.write_fd = write_end
            os.set_blocking(write_end, False)
            server.must_exit(statuses=(0,))  # the shell only
            time.sleep(0.1)
            server.send(HANDSHAKE)
            server.expect(1)
            server.must_serve(99)
            server.close_stdin()
            check(server.wait(lambda: server.eof, 5), "its end at EOF", "still running")


@scenario("life-few-descriptors", "policy")
def few_descriptors(argv):
    """Too few descriptors may be had: it serves, or it ends with 1 and one line."""
    for limit in range(3, 14):
        with Server(argv, shell=f"ulimit -n {limit}; exec") as server:
            server.send(HANDSHAKE + ping(99))
            server.close_stdin()
            status = server.must_exit()
            time.sleep(0.05)
            served = status == 0 and server.lines == 2
            said = status in (1, 127) and len(bytes(server.err).splitlines()) == 1
            check(served or said, f"service, or one line and exit 1, with {limit} descriptors",
                  f"{server.lines} lines, {server.fate()}")


@scenario("life-no-children-no-listeners", "modelcontextprotocol/typescript-sdk#2002")
def nothing_left_behind(argv):
    """It starts no process, keeps one thread or few, and opens a handful of descriptors."""
    with Server(argv) as server:
        server.handshake()
        server.send(b"".join(request(i, "tools/list") for i in range(100, 200)))
        server.expect(199)
        check(not child_of(server.pid), "no child process", "one")
        check(server.fds() <= 12, "at most 12 descriptors", f"{server.fds()}")
        threads = len(os.listdir(f"/proc/{server.pid}/task"))
        check(threads <= 2, "at most 2 threads", f"{threads}")
