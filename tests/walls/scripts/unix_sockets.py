"""Tries to reach Unix sockets, by every kind and by both ways of making one."""
import socket
import sys

path, abstract = sys.argv[1], "\0" + sys.argv[2]
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
    for address in (path, abstract):
        for make in (lambda: socket.socket(socket.AF_UNIX, kind),
                     lambda: socket.socketpair(socket.AF_UNIX, kind)[0]):
            try:
                make().connect(address)
                print("reached", address)
            except OSError:
                pass
print("tried")
