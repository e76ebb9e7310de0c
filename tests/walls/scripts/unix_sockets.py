"""Tries to reach Unix sockets: by every kind, by both ways of making one, by every way to name the
other end, and by the calls of 32 bits."""
import ctypes
import mmap
import os
import platform
import socket
import sys

path, abstract = sys.argv[1], "\0" + sys.argv[2]
os.symlink(path, "link")
os.symlink(os.path.dirname(path), "folder")
NAMES = (path, abstract, "link", "folder/" + os.path.basename(path), "/proc/self/root" + path)
WAYS = (
    lambda end, name: end.connect(name),
    lambda end, name: end.sendto(b"x", name),
    lambda end, name: end.sendmsg([b"x"], [], 0, name),
)
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
    for make in (lambda: socket.socket(socket.AF_UNIX, kind),
                 lambda: socket.socketpair(socket.AF_UNIX, kind)[0]):
        for name in NAMES:
            for way in WAYS:
                try:
                    way(make(), name)
                    print("reached", name)
                except OSError:
                    pass

# socket(AF_UNIX, SOCK_STREAM, 0) as a program of 32 bits calls it.
SOCKET_OF_32_BITS = bytes.fromhex("53b867010000bb01000000b90100000031d2cd805bc3")
if platform.machine() == "x86_64":
    child = os.fork()
    if child == 0:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(SOCKET_OF_32_BITS)
        at = ctypes.addressof(ctypes.c_char.from_buffer(code))
        os._exit(100 if ctypes.CFUNCTYPE(ctypes.c_int)(at)() >= 0 else 0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 100:
        print("reached by a call of 32 bits")
print("tried")
