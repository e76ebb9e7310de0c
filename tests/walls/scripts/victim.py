"""A process of the user that shares memory: says which, and keeps it until its input ends."""
import ctypes
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
REMOVE = 0
segment = libc.shmget(0, 4096, 0o1600)
# It goes with the last process that has it, however that ends.
address = libc.shmat(segment, None, 0)
ctypes.memmove(ctypes.c_void_p(address), b"secret", 6)
print(segment, flush=True)
sys.stdin.read()
libc.shmctl(segment, REMOVE, None)
