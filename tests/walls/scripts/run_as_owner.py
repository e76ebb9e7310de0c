"""Tries to make files that run as their owner or as their group, by each call that sets a mode."""
import ctypes
import os
import platform
import stat

AT_FDCWD = -100
FCHMODAT2, OPENAT2 = 452, 437
X86_64 = {"open": 2, "creat": 85, "chmod": 90, "mknod": 133}
libc = ctypes.CDLL(None, use_errno=True)
os.umask(0)
open("own", "w").close()
own = os.open("own", os.O_RDWR)
tried = 0


def new():
    global tried
    tried += 1
    return b"new%d" % tried


def by_number(name, *words):
    if platform.machine() == "x86_64":
        libc.syscall(X86_64[name], *words)


for bit in (stat.S_ISUID, stat.S_ISGID, stat.S_ISUID | stat.S_ISGID):
    mode = bit | 0o755
    # How a file is to be opened: its flags, its mode and how its path is followed.
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, mode, 0)
    for way in (
        lambda: os.chmod("own", mode),
        lambda: os.fchmod(own, mode),
        lambda: libc.fchmodat(AT_FDCWD, b"own", mode, 0),
        lambda: libc.syscall(FCHMODAT2, AT_FDCWD, b"own", mode, 0),
        lambda: os.open(new(), os.O_CREAT | os.O_WRONLY, mode),
        lambda: os.link(
            "/proc/self/fd/%d" % os.open(".", os.O_TMPFILE | os.O_WRONLY, mode), new()
        ),
        lambda: os.mknod(new(), mode | stat.S_IFREG),
        lambda: os.mknod(new(), mode | stat.S_IFIFO),
        lambda: libc.syscall(OPENAT2, AT_FDCWD, new(), ctypes.byref(how), ctypes.sizeof(how)),
        lambda: by_number("open", new(), os.O_CREAT | os.O_WRONLY, mode),
        lambda: by_number("creat", new(), mode),
        lambda: by_number("chmod", b"own", mode),
        lambda: by_number("mknod", new(), mode | stat.S_IFREG, 0),
    ):
        try:
            way()
        except OSError:
            pass
os.chmod("own", 0o755)
os.open("plain", os.O_CREAT | os.O_WRONLY, 0o755)
print("tried")
