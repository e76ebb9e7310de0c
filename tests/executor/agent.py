#!/usr/bin/env python3
"""An agent that does, line by line, what its goal says."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

PLANTED = "#!/bin/sh\necho planted >> {}\n"


def write(path, *words):
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, "w") as file:
        file.write(" ".join(words) + "\n")


def outcome(kind, *words):
    with open(os.environ["ROCCO_OUTCOME"], "w") as file:
        json.dump({"outcome": kind, "summary": " ".join(words), "question": " ".join(words)}, file)


def daemon(pids):
    """Leaves a process behind that is in another session and not a child of anybody here."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for stop in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(stop, signal.SIG_IGN)
        note(pids)
        time.sleep(3600)
    os.waitpid(child, 0)
    while not os.path.exists(pids):
        time.sleep(0.01)


def note(pids):
    with open(pids, "a") as file:
        file.write(f"{os.getpid()}\n")


def sleep(seconds, pids=None):
    if pids:
        note(pids)
    time.sleep(float(seconds))


def wait(path):
    while not os.path.exists(path):
        time.sleep(0.02)


def stubborn(pids):
    """Does not leave when it is asked to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(pids)
    while True:
        time.sleep(3600)


def hold_guard(pids):
    """Stops its guard again and again."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    guard = os.getppid()
    note(pids)
    while os.getppid() == guard:
        os.kill(guard, signal.SIGSTOP)
        time.sleep(0.001)


def chatter(pids):
    note(pids)
    while True:
        print("still here", flush=True)
        time.sleep(0.05)


def plant(marker):
    """Puts everything into the clone that some git might run."""
    script = os.path.abspath(".git/planted")
    write(script, PLANTED.format(marker).strip())
    os.chmod(script, 0o755)
    for hook in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change"):
        os.makedirs(".git/hooks", exist_ok=True)
        os.symlink(script, f".git/hooks/{hook}")
    for name in ("core.fsmonitor", "diff.x.textconv", "diff.x.command", "filter.x.clean",
                 "filter.x.smudge", "diff.external", "core.pager", "core.editor"):
        subprocess.run(["git", "config", name, script], check=True)
    write(".gitattributes", "* diff=x filter=x")
    # A repository in the repository has a configuration of its own.
    subprocess.run(["git", "init", "-q", "inner"], check=True)
    subprocess.run(["git", "-C", "inner", "config", "core.fsmonitor", script], check=True)
    write("inner/file", "text")
    os.unlink(marker) if os.path.exists(marker) else None


def submit(path):
    """Tries to hand a task to the executor that it runs under, and to see and end those it has."""
    with socket.socket(socket.AF_UNIX) as front:
        front.connect(path)
        hello = {"protocol": "rocco-exec/1", "depth": 0}
        task = {"task_id": "tsk_0000000000000000000000000Z", "goal": "again", "repo": os.getcwd(),
                "acceptance": ["done"]}
        file = front.makefile("rw")
        own = {"task_id": os.environ["ROCCO_TASK_ID"], "part": "log"}
        asked = [("hello", hello), ("task/submit", task), ("task/list", {}), ("task/get", own),
                 ("task/cancel", own)]
        for number, (method, params) in enumerate(asked):
            print(json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                              "params": params}), file=file, flush=True)
            print(file.readline().strip(), flush=True)


def ask_for_tasks(front):
    """Asks for the tasks of others on a connection, and tells what it is told."""
    file = front.makefile("rw")
    for number, method in enumerate(("hello", "task/list")):
        print(json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                          "params": {"protocol": "rocco-exec/1"}}), file=file, flush=True)
        answer = json.loads(file.readline())
    print("got through" if "result" in answer else "turned away", flush=True)


def outlive(path):
    """Uses connections of processes that have ended, of which some are not waited for yet."""
    for number in range(200):
        with socket.socket(socket.AF_UNIX) as front:
            child = os.fork()
            if child == 0:
                front.connect(path)
                os._exit(0)
            if number % 2:
                os.waitpid(child, 0)
            else:
                os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            ask_for_tasks(front)


def orphan(path):
    """Connects from a process that nobody started who lives, in a session and with an environment
    of its own."""
    answer, child = os.path.join(os.environ["TMPDIR"], "answer"), os.fork()
    if child == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.dup2(os.open(answer + ".new", os.O_WRONLY | os.O_CREAT), 1)
        subprocess.run([sys.executable, os.path.abspath(__file__), "ask", path], env={})
        os.rename(answer + ".new", answer)
        os._exit(0)
    os.waitpid(child, 0)
    wait(answer)
    print(open(answer).read(), flush=True)


def hand_over(path):
    """Uses connections that other processes have made and handed over, of which one lives on."""
    for lives_on in (True, False):
        left, right = socket.socketpair(socket.AF_UNIX)
        child = os.fork()
        if child == 0:
            front = socket.socket(socket.AF_UNIX)
            front.connect(path)
            socket.send_fds(left, [b"x"], [front.fileno()])
            time.sleep(3600 if lives_on else 0)
            os._exit(0)
        descriptor = socket.recv_fds(right, 1, 1)[1][0]
        if not lives_on:
            os.waitpid(child, 0)
        with socket.socket(fileno=descriptor) as front:
            ask_for_tasks(front)


LINE = """if [ $1 -gt 0 ]; then sh "$0" $(($1 - 1)) "$2" "$3"; exit $?; fi
exec python3 "$2" ask "$3"
"""


def ask(path):
    with socket.socket(socket.AF_UNIX) as front:
        front.connect(path)
        ask_for_tasks(front)


def descend(path, generations):
    """Connects from the last of a line of processes that all live."""
    script = os.path.join(os.environ["TMPDIR"], "line.sh")
    write(script, LINE)
    count = min(int(generations), 1200)
    subprocess.run(["sh", script, str(count), os.path.abspath(__file__), path], check=True)


def environment():
    for name in sorted(os.environ):
        print(f"env {name}={os.environ[name]}")


def ancestors():
    """Shows how everything above it was called."""
    pid = os.getpid()
    while pid > 1:
        with open(f"/proc/{pid}/cmdline") as file:
            print("called", file.read().replace("\0", " "))
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rsplit(")", 1)[1].split()[1])


def attempt(path):
    try:
        write(path, "escaped")
        print("wrote", path)
    except OSError as error:
        print("refused", error)


def look(path):
    print("sees", sorted(os.listdir(path)))


def replace(path):
    os.rename(os.getcwd(), os.getcwd() + ".away")
    os.symlink(path, os.getcwd())


VERBS = {
    "write": write, "say": lambda *words: print(*words, flush=True), "outcome": outcome,
    "daemon": daemon, "sleep": sleep, "stubborn": stubborn, "chatter": chatter, "plant": plant,
    "submit": submit, "outlive": outlive, "descend": descend, "orphan": orphan,
    "hand-over": hand_over, "environment": environment, "ancestors": ancestors, "attempt": attempt,
    "look": look, "exit": lambda code: sys.exit(int(code)), "link": os.symlink,
    "remove": os.unlink, "replace": replace, "fifo": os.mkfifo,
    "commit": lambda: subprocess.run(["git", "commit", "-qam", "mine"], check=True),
    "lock": lambda path: os.chmod(path, 0),
    "wait": wait, "sh": lambda *words: subprocess.run(["sh", "-c", " ".join(words)], check=True),
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop-guard": lambda: os.kill(os.getppid(), signal.SIGSTOP),
    "hold-guard": hold_guard,
    "kill-guard": lambda: os.kill(os.getppid(), signal.SIGKILL),
}

if sys.argv[1:2] == ["ask"]:
    sys.exit(ask(sys.argv[2]))
goal = sys.stdin.read().split("\n\n")[0]
for line in goal.splitlines():
    verb, *words = line.split()
    VERBS[verb](*words)
