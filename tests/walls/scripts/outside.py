"""Reaches for a process of the user by its number, and for the memory that it shares: names what
is let through.

outside.py PROCESS SEGMENT"""
import ctypes
import platform
import sys

process, segment = (int(word) for word in sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
no_time = (ctypes.c_ulong * 2)(0, 0)
processors = (ctypes.c_ulong * 16)(1)
priority = ctypes.byref(ctypes.c_int(0))
CPU, BATCH, OF_PROCESS, OF_USER = 0, 3, 0, 2
tried = {
    "a limit": libc.prlimit(process, CPU, no_time, None),
    "a priority": libc.setpriority(OF_PROCESS, process, 19),
    "processors": libc.sched_setaffinity(process, 128, processors),
    "a scheduler": libc.sched_setscheduler(process, BATCH, priority),
    "a queue": libc.msgget(0x7777, 0o1600),
}
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}[platform.machine()]
tried["a priority of the disk"] = libc.syscall(IOPRIO_SET, 1, process, 3 << 13)
address = libc.shmat(segment, None, 0)
print(*(name for name, result in tried.items() if result == 0 or name == "a queue" and result > 0))
if address not in (None, ctypes.c_void_p(-1).value):
    print(ctypes.string_at(address, 6))
print(libc.prlimit(0, CPU, None, no_time), libc.setpriority(OF_PROCESS, 0, 19))
