"""Runs a server for a client and notes down what they say to each other.

python record.py DIRECTORY SERVER ARGS...

It stands between the two. Every start gets a file of its own in the directory,
with a JSON object a line:

{"client": {...}}    a message of the client
{"server": {...}}    a message of the server
{"signal": "SIGINT"} a signal of the client, which the server gets too
{"client": null}     the client has closed the server's stdin
{"stderr": "..."}    a line that the server wrote to stderr
{"end": 0}           the exit status of the server; the last line
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

directory, *command = sys.argv[1:]
record = open(Path(directory) / f"{os.getpid()}.jsonl", "w", encoding="utf-8")
lock = threading.Lock()


def note(what, seen):
    with lock:
        record.write(json.dumps({what: seen}) + "\n")
        record.flush()


def message(line):
    """A line as JSON, or as it is, so that whoever judges the record can complain of it."""
    try:
        return json.loads(line)
    except ValueError:
        return line.decode(errors="replace")


def pass_on(who, source, sink):
    try:
        for line in source:
            note(who, message(line))
            sink.write(line)
            sink.flush()
        sink.close()
    except BrokenPipeError:
        pass  # The other one is gone.


def overhear(source):
    for line in source:
        note("stderr", line.decode(errors="replace"))


# In a session of its own, so that a signal to the client's group comes once and by this way.
pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
server = subprocess.Popen(command, start_new_session=True, **pipes)


def on_signal(number, _frame):
    server.send_signal(number)
    seen_signals.append(signal.Signals(number).name)


seen_signals = []
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, on_signal)


def upstream():
    pass_on("client", sys.stdin.buffer, server.stdin)
    note("client", None)


threading.Thread(target=upstream, daemon=True).start()
readers = [
    threading.Thread(target=pass_on, args=("server", server.stdout, sys.stdout.buffer)),
    threading.Thread(target=overhear, args=(server.stderr,)),
]
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
status = server.wait()
for name in seen_signals:
    note("signal", name)
note("end", status)
os._exit(status if status >= 0 else 1)
