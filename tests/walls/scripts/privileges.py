"""Tries to use privileges that root has, and names those that are there."""
import os
import resource
import socket

OPENED = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
    "/proc/1/oom_score_adj", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/release_agent", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda",
)


def raise_limits():
    limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if limit == resource.RLIM_INFINITY:
        raise OSError
    resource.setrlimit(resource.RLIMIT_CORE, (limit + 1, limit + 1))


WAYS = {
    "another user": lambda: os.setuid(12345),
    "another group": lambda: os.setgid(12345),
    "groups": lambda: os.setgroups([12345]),
    "a file of another user": lambda: os.chown("work", 12345, -1),
    "a device": lambda: os.mknod("device", 0o020600, os.makedev(1, 1)),
    "the scheduler": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "a group of processes": lambda: os.mkdir("/sys/fs/cgroup/rocco-test"),
    "limits": raise_limits,
}
open("work", "w").close()
for name, way in WAYS.items():
    try:
        way()
        print("has", name)
    except (OSError, ValueError):
        pass
for path in OPENED:
    try:
        os.close(os.open(path, os.O_WRONLY))
        print("opened", path)
    except OSError:
        pass
print("tried")
