"""Tries to look into the processes of the walls: their descriptors, their memory, their state."""
import ctypes
import os

PIDFD_OPEN, PIDFD_GETFD = 434, 438
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
PROCESS_VM_READV, PROCESS_VM_WRITEV = 310, 311
libc = ctypes.CDLL(None, use_errno=True)
taken = 0
for pid in {1, os.getppid()}:
    pidfd = libc.syscall(PIDFD_OPEN, pid, 0)
    for number in range(64):
        if pidfd >= 0 and libc.syscall(PIDFD_GETFD, pidfd, number, 0) >= 0:
            taken += 1
    for way in (PTRACE_ATTACH, PTRACE_SEIZE):
        if libc.ptrace(way, pid, 0, 0) == 0:
            taken += 1
    for call in (PROCESS_VM_READV, PROCESS_VM_WRITEV):
        # Nothing is copied, which is allowed to whoever may look.
        if libc.syscall(call, pid, 0, 0, 0, 0, 0) == 0:
            taken += 1
    for name in ("mem", "oom_score_adj", "coredump_filter", "clear_refs", "uid_map"):
        try:
            os.close(os.open("/proc/%d/%s" % (pid, name), os.O_WRONLY))
            taken += 1
        except OSError:
            pass
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
