"""Tries to reach a service on the loopback of the machine."""
import socket
import sys

port = int(sys.argv[1])
for host in ("127.0.0.1", "::1", "0.0.0.0"):
    try:
        socket.create_connection((host, port), 3)
        print("reached", host)
    except OSError:
        pass
print("tried")
