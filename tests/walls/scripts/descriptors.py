"""Tells which descriptors are open, but for the one by which it looks."""
import os

found = [int(name) for name in os.listdir("/proc/self/fd")]
print(*sorted(number for number in found if os.path.exists("/proc/self/fd/%d" % number)))
