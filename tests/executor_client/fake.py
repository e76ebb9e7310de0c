"""A scripted executor: it keeps to rocco-exec/1 but where it is told not to.

    fake.py [--socket PATH] [--journal FILE] [MODE...]

It serves one front on its stdin and stdout, or many on a socket. What it takes and does is written
to the journal, one JSON object a line, and read again at its start, so that it can be killed at any
moment. A MODE is how it misbehaves on each connection (see `Front`); the words of a goal script
its task (see `Task.script`).
"""
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

FINAL = "succeeded failed cancelled timed_out interrupted needs_input expired".split()
STEPS = "queued running verifying".split()
ANSI = "\x1b[1;31mred\x1b[0m\x07\x00 \x9b2Jwiped\r"
LOCK = threading.RLock()
# No path holds a null.
PATH_ANSI = ANSI.replace("\0", "")
NOW = "2026-12-01T09:00:00Z"


class Journal:
    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) if path else None

    def note(self, **event):
        if self.file is not None:
            os.write(self.file, (json.dumps({"pid": os.getpid(), **event}) + "\n").encode())

    def events(self):
        if self.file is None:
            return []
        size = os.fstat(self.file).st_size
        return [json.loads(line) for line in os.pread(self.file, size, 0).splitlines()]


class Task:
    def __init__(self, params):
        self.id, self.goal, self.key = params["task_id"], params["goal"], params.get("key")
        self.words = self.goal.split()
        self.state, self.seq, self.fronts = "queued", 0, []

    def says(self, word):
        return word in self.goal

    def argument(self, word, usual=None):
        if word not in self.words:
            return usual
        return self.words[self.words.index(word) + 1]

    def faults(self):
        if not self.says("faults"):
            return {}
        good = [{"pointer": f"/files/{at}", "reason": "is " + ANSI + "x" * 300} for at in range(70)]
        bad = [7, {}, {"pointer": "files", "reason": "r"}, {"pointer": "/files", "reason": None}]
        return {"faults": bad + good, "unlisted": 30}

    def told(self, *also):
        text = ANSI if self.says("ansi") else ""
        told = {"task_id": self.id, "seq": self.seq, "state": self.state, "created_at": NOW,
                "updated_at": NOW, "phase": "edit" + text, "message": "at work" + text,
                "position": 1 if self.state == "queued" else None, "unheard_of": [1, {}]}
        if "record" in also and self.state in FINAL:
            told["record"] = self.record()
        return told

    def record(self):
        text = ANSI if self.says("ansi") else ""
        path = PATH_ANSI if self.says("ansi") else ""
        gate = {"name": "test", "argv": ["cargo", "test" + text], "exit_code": 0,
                "duration_ms": 5, "passed": True, "tests": {"passed": 1, "failed": 0},
                "tail": "ok" + text}
        return {"outcome": self.state, "verification": "passed",
                "summary": "did " + self.goal + text,
                "question": "which?" + text if self.state == "needs_input" else None,
                "files": [{"path": "a" + path, "status": "M", "added": 1, "removed": 2}],
                "gates": [gate], "artifacts": {"dir": "/tmp" + path}, "warnings": ["w" + text],
                "ref": "--upload-pack=touch /tmp/x" if self.says("forged") else None,
                "padding": "x" * int(self.argument("record", 0))}

    def enter(self, state):
        """Changes the state and tells the fronts that have asked for it."""
        with LOCK:
            if self.state in FINAL or self.state == state:
                return
            self.state, self.seq = state, self.seq + 1
            JOURNAL.note(at=state, task=self.id, goal=self.goal, seq=self.seq)
            self.tell(self.seq)

    def tell(self, seq):
        told = {**self.told(), "seq": seq}
        for front in self.fronts:
            front.say({"method": "task/update", "params": told})

    def script(self):
        """What becomes of it after it was accepted."""
        if self.state != "queued":
            return
        for step in STEPS[1:]:
            if self.argument("stay") == "queued":
                return
            self.enter(step)
            if self.says("die mid"):
                os._exit(3)
            if self.argument("stay") in (step, "cancelling") or self.says("flood"):
                break
        if self.says("stale"):
            for seq in (self.seq, self.seq - 1, 0, -1, None, "9"):
                self.state, state = "queued", self.state
                self.tell(seq)
                self.state = state
        if self.says("flood"):
            threading.Thread(target=self.flood, daemon=True).start()
        elif "stay" not in self.words:
            self.enter(self.argument("end", "succeeded"))

    def flood(self):
        for _ in range(int(self.argument("flood"))):
            with LOCK:
                self.seq += 1
                self.tell(self.seq)
        self.enter("succeeded")

    def cancel(self):
        if self.state == "queued":
            self.enter("cancelled")
        elif self.state not in FINAL:
            self.enter("cancelling")
            if self.argument("stay") != "cancelling":
                self.enter("cancelled")


class Front:
    """One connection, and the ways to misbehave on it."""

    def __init__(self, source, sink, modes):
        self.source, self.sink, self.modes = source, sink, modes

    def say(self, message):
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def raw(self, line):
        with LOCK:
            try:
                self.sink.write(line)
                self.sink.flush()
            except (OSError, ValueError):
                pass

    def refuse(self, request, code, message="it says no.", **data):
        data = {"code": code, "retryable": False, **data}
        error = {"code": -32000, "message": message, "data": data}
        self.say({"id": request["id"], "error": error})

    def serve(self):
        if "exit" in self.modes:
            return
        for line in self.source:
            request = json.loads(line)
            method, params = request["method"], request["params"]
            JOURNAL.note(at=method, goal=params.get("goal"), task=params.get("task_id"))
            with LOCK:
                getattr(self, method.replace("/", "_"))(request, params)
            if method == "hello" and not self.after_hello():
                break

    def hello(self, request, params):
        if "no-hello" in self.modes:
            return
        if "refuses-hello" in self.modes:
            return self.refuse(request, "shutting_down", "not today " + ANSI)
        if "late-hello" in self.modes:
            time.sleep(6)
        features = [] if "plain" in self.modes else ["progress", "page", "list", "teleport"]
        if "no-progress" in self.modes:
            features.remove("progress")
        version = "rocco-exec/2" if "wrong-protocol" in self.modes else "rocco-exec/1"
        name = None if "nameless" in self.modes else "fake"
        self.say({"id": request["id"], "result": {
            "protocol": version, "executor": {"name": name, "version": "1"}, "durable": "crash",
            "limits": {"max_running": 2, "max_queued": 32, "max_task_s": 3600},
            "features": features}})

    def after_hello(self):
        """Tells whether it goes on."""
        if "deaf" in self.modes:
            time.sleep(1000)
        if "closes-output" in self.modes:
            os.close(1)
            time.sleep(1000)
        if "grandchild" in self.modes:
            # It holds the pipe when this process has gone.
            subprocess.Popen(["sleep", "987"], stderr=subprocess.DEVNULL,
                             start_new_session="session" in self.modes)
            return False
        return "hello-exit" not in self.modes

    def before_answer(self, request):
        if "garbage" in self.modes:
            self.raw(b"\xff{garbage\n")
        if "over-long" in self.modes:
            self.raw(b"x" * 300_000 + b"\n")
        if "unasked" in self.modes:
            self.say({"id": request["id"] + 1000, "result": {"task_id": "?", "state": "running"}})
        if "requests" in self.modes:
            self.say({"id": "mine", "method": "roots/list", "params": {}})
        if "one-fault" in self.modes:
            self.modes.remove("one-fault")
            self.raw(b"[]\n")

    def answer(self, request, result, task=None):
        self.before_answer(request)
        shapes = {"empty": {}, "list": [], "null": None, "other": {
            **result, "task_id": "tsk_" + "0" * 26}, "stateless": {**result, "state": "at rest"},
            "timeless": {**result, "created_at": 7}, "textless": {**result, "text": None},
            "tasks": {"tasks": 5}}
        shape = task and task.argument("shape:" + request["method"])
        self.say({"id": request["id"], "result": shapes[shape] if shape else result})

    def task_submit(self, request, params):
        task = TASKS.get(params["task_id"])
        goal = params["goal"]
        if task is None:
            task = Task(params)
            code = task.argument("refuse")
            if code:
                return self.refuse(request, code, retry_after_ms=1234, **task.faults())
            same = [t for t in TASKS.values() if t.key == task.key is not None]
            if same and same[0].goal != goal:
                return self.refuse(request, "key_conflict", "the key is taken")
            if same:
                return self.answer(request, {**same[0].told(), "duplicate": True})
            TASKS[task.id] = task
            JOURNAL.note(at="taken", task=task.id, goal=goal, params=params)
            if task.says("die before ack"):
                os._exit(3)
        if self not in task.fronts:
            task.fronts.append(self)
        if task.says("silent"):
            return
        if task.says("slow"):
            timer = threading.Timer(2.6, self.answer, [request, task.told()])
            timer.daemon = True
            return timer.start()
        self.answer(request, task.told(), task)
        if goal == "release":
            for other in list(TASKS.values()):
                other.enter("succeeded")
        task.script()

    def known(self, request, params):
        task = TASKS.get(params["task_id"])
        if task is None:
            self.before_answer(request)
            self.refuse(request, "not_found", "there is no such task")
        return task

    def task_get(self, request, params):
        task = self.known(request, params)
        if task is None:
            return
        code = task.argument("get-refuses")
        if code:
            return self.refuse(request, code)
        if params["part"] != "summary":
            return self.page(request, params, task)
        if self not in task.fronts:
            task.fronts.append(self)
        self.answer(request, task.told("record"), task)

    def page(self, request, params, task):
        if task.state not in FINAL and params["part"] != "log":
            return self.refuse(request, "not_finished", "the task works")
        whole = (f"{params['part']} of {task.id}\n" + ANSI * task.says("ansi")).encode() * 2000
        bytes_max = int(task.argument("page", params["limit"]))
        start, end = params["offset"], min(params["offset"] + bytes_max, len(whole))
        self.answer(request, {
            "task_id": task.id, "state": task.state, "text": whole[start:end].decode(),
            "next_offset": end if end < len(whole) else None, "total": len(whole),
            "path": "/tmp/x" + PATH_ANSI * task.says("ansi")}, task)

    def task_list(self, request, params):
        tasks = [{**task.told(), "goal": task.goal[:200], "repo": "/r"} for task in TASKS.values()]
        self.answer(request, {"tasks": [5, {}] + tasks[::-1][:params["limit"]]})

    def task_cancel(self, request, params):
        task = self.known(request, params)
        if task is None:
            return
        state = task.state
        if state not in FINAL:
            state = "cancelled" if state == "queued" else "cancelling"
        self.answer(request, {"task_id": task.id, "state": state}, task)
        task.cancel()


def remember():
    """Tasks of the processes before this one. What ran when they died is interrupted."""
    tasks = {}
    for event in JOURNAL.events():
        if event["at"] == "taken":
            tasks[event["task"]] = Task(event["params"])
        elif "seq" in event:
            task = tasks[event["task"]]
            task.state, task.seq = event["at"], event["seq"]
    for task in tasks.values():
        if task.state in ("running", "verifying", "cancelling"):
            task.enter("interrupted")
    return tasks


def listen(path, modes):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path + ".new")
    server.listen(64)
    os.rename(path + ".new", path)
    while "never-accepts" in modes:
        time.sleep(1000)
    while True:
        peer, _ = server.accept()
        stream = peer.makefile("rwb")

        def serve(stream=stream, peer=peer):
            try:
                Front(stream, stream, list(modes)).serve()
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # The front was killed.

        threading.Thread(target=serve, daemon=True).start()


def hold():
    """Has another process trace this one and never wait for it, so that this one's parent cannot
    wait for it either when it has died: it is as one that the system does not let die."""
    seize, set_tracer, anybody = 0x4206, 0x59616D61, ctypes.c_ulong(-1)
    libc, target = ctypes.CDLL(None), os.getpid()
    libc.prctl(set_tracer, anybody, 0, 0, 0)
    outcome, said = os.pipe()
    tracer = os.fork()
    if tracer == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.write(said, b"y" if libc.ptrace(seize, target, 0, 0) == 0 else b"n")
        time.sleep(1000)
        os._exit(0)
    assert os.read(outcome, 1) == b"y", "it cannot be traced"
    JOURNAL.note(at="held", tracer=tracer)


def main(arguments):
    global JOURNAL, TASKS
    options = {"--socket": None, "--journal": None}
    while arguments and arguments[0] in options:
        name, value = arguments.pop(0), arguments.pop(0)
        options[name] = value
    JOURNAL, TASKS = Journal(options["--journal"]), {}
    TASKS = remember()
    JOURNAL.note(at="start", depth=os.environ.get("ROCCO_DEPTH"))
    if "held" in arguments and not any(event["at"] == "held" for event in JOURNAL.events()):
        hold()
    if "ignores-term" in arguments:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options["--socket"]:
        listen(options["--socket"], arguments)
    Front(sys.stdin.buffer, sys.stdout.buffer, arguments).serve()
    JOURNAL.note(at="left")
    while "ignores-term" in arguments:
        time.sleep(1000)


main(sys.argv[1:])
