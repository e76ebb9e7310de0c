"""Uses up processes, threads, memory, the length of a file, open files, timers and queues, each in
more than one way. Every loop has an end."""
import ctypes
import mmap
import os
import signal
import threading
import time


def tells(what, way):
    try:
        way()
        print(what)
    except (OSError, MemoryError, ValueError):
        print("bounded")


pids = []
for _ in range(100):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        time.sleep(20)
        os._exit(0)
    pids.append(pid)
print(len(pids))
for pid in pids:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
end, threads = threading.Event(), []
for _ in range(100):
    thread = threading.Thread(target=end.wait)
    try:
        thread.start()
    except RuntimeError:
        break
    threads.append(thread)
print(len(threads))
end.set()
for thread in threads:
    thread.join()

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
libc = ctypes.CDLL(None)


def timers():
    for _ in range(6000):
        if libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) != 0:
            raise OSError("no more")


def queues():
    for at in range(6):
        name = b"/rocco-%d-%d" % (os.getpid(), at)
        queue = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)
        libc.mq_unlink(name)
        if queue < 0:
            raise OSError("no more")


big = os.open("big", os.O_RDWR | os.O_CREAT)
in_memory = os.memfd_create("big")
files = []
for what, way in {
    "memory": lambda: bytearray(1 << 30),
    "a long file": lambda: os.ftruncate(big, 1 << 40),
    "a far write": lambda: os.pwrite(big, b"x", 1 << 30),
    "room": lambda: os.posix_fallocate(big, 0, 2 << 20),
    "a long file in memory": lambda: os.ftruncate(in_memory, 1 << 40),
    "files": lambda: files.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(100)),
    "timers": timers,
    "queues": queues,
    "pipes": lambda: files.extend(os.pipe()[0] for _ in range(100)),
}.items():
    tells(what, way)
