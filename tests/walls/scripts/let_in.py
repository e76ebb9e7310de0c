"""Tries to let other users into a file, by its mode and by its attributes."""
import ctypes
import os
import sys

FCHMODAT2, SETXATTRAT = 452, 463
AT_FDCWD = -100
libc = ctypes.CDLL(None, use_errno=True)
path = sys.argv[1]
for mode in (0o4755, 0o2755, 0o666, 0o777):
    for way in (
        lambda: os.chmod(path, mode),
        lambda: os.chmod(os.path.basename(path), mode, dir_fd=os.open(os.path.dirname(path), os.O_PATH)),
        lambda: libc.syscall(FCHMODAT2, AT_FDCWD, path.encode(), mode, 0),
    ):
        try:
            way()
        except OSError:
            pass
open("own", "w").close()
for name in (path, "own"):
    for attribute in ("user.x", "system.posix_acl_access"):
        for way in (
            lambda: os.setxattr(name, attribute, b"x"),
            lambda: os.removexattr(name, attribute),
        ):
            try:
                way()
                # What is the program's own is its to change, behind the outer wall.
                if name == path:
                    print("changed", attribute)
            except OSError:
                pass
os.chmod("own", 0o755)
print("tried")
