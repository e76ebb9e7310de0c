"""Tries to look into the processes of the walls: their descriptors, their memory, their state."""
import ctypes
import os

PIDFD_OPEN, PIDFD_GETFD, PTRACE_ATTACH = 434, 438, 16
libc = ctypes.CDLL(None, use_errno=True)
taken = 0
for pid in {1, os.getppid()}:
    pidfd = libc.syscall(PIDFD_OPEN, pid, 0)
    for number in range(64):
        if pidfd >= 0 and libc.syscall(PIDFD_GETFD, pidfd, number, 0) >= 0:
            taken += 1
    if libc.ptrace(PTRACE_ATTACH, pid, 0, 0) == 0:
        taken += 1
    for name in ("environ", "mem", "maps"):
        try:
            with open("/proc/%d/%s" % (pid, name), "rb") as file:
                taken += len(file.read(9))
        except OSError:
            pass
    try:
        folder = "/proc/%d/fd" % pid
        taken += sum(len(os.readlink(os.path.join(folder, name))) for name in os.listdir(folder))
    except OSError:
        pass
print("took", taken)
