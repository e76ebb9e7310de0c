"""A client that can be killed: it starts a server with pipes of its own and passes all bytes on.

    client.py COMMAND [ARGUMENT...]
"""
import os
import subprocess
import sys
import threading

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def pass_on(source, sink):
    while chunk := os.read(source, 65536):
        os.write(sink, chunk)


threading.Thread(target=pass_on, args=[server.stdout.fileno(), 1], daemon=True).start()
pass_on(0, server.stdin.fileno())
server.stdin.close()
server.wait()
