"""Uses up processes, memory, the length of a file and open files. Every loop has an end."""
import os
import signal
import time

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
try:
    memory = bytearray(1 << 30)
    print("memory")
except MemoryError:
    print("bounded")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("big", "wb") as file:
    try:
        file.truncate(1 << 40)
        print("file")
    except OSError:
        print("bounded")
files = []
try:
    for _ in range(100):
        files.append(os.open("/dev/null", os.O_RDONLY))
    print("files")
except OSError:
    print("bounded")
