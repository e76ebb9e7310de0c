"""What an ordinary program does: processes, threads, temporary files, pairs of sockets."""
import json
import os
import socket
import ssl
import subprocess
import tempfile
import threading

left, right = socket.socketpair()
left.send(b"x")
assert right.recv(1) == b"x"
thread = threading.Thread(target=lambda: json.dumps({"ssl": ssl.OPENSSL_VERSION}))
thread.start()
thread.join()
assert subprocess.run(["true"]).returncode == 0
with tempfile.TemporaryFile() as file:
    file.write(b"x")
assert os.cpu_count() > 0
print("well")
