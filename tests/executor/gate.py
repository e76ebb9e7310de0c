#!/usr/bin/env python3
"""A gate: passes if its file holds its word. It says how many tests it has run."""
import os
import socket
import sys

kind, *words = sys.argv[1:]
if kind == "holds":
    with open(words[0]) as file:
        passed = words[1] in file.read()
    print(f"Ran 1 test in 0.0s\n\n{'OK' if passed else 'FAILED (failures=1)'}")
    sys.exit(not passed)
if kind == "reports":
    # The code under test says what it likes, and then the run writes its report.
    os.makedirs("out", exist_ok=True)
    code = {"__name__": "under_test"}
    exec(open(words[0]).read(), code)
    failed = not code.get("right")
    with open("out/report.xml", "x") as file:
        file.write(f"<testsuite><testcase>{'<failure/>' if failed else ''}</testcase></testsuite>")
if kind == "none":
    print("Ran 0 tests in 0.0s\n\nOK")
if kind == "hangs":
    print("waiting", flush=True)
    with open(words[0], "a") as file:
        file.write(f"{os.getpid()}\n")
    import time
    time.sleep(3600)
if kind == "environment":
    print(*[f"env {name}={value}" for name, value in sorted(os.environ.items())], sep="\n")
if kind == "words":
    print("words", words)
if kind == "network":
    names = [name for _, name in socket.if_nameindex()]
    print("interfaces", names)
