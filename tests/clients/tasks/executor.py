"""An executor whose tasks end as their goal says.

python executor.py LOG

succeed  succeeds after a moment, which is long enough to be asked for twice
fail     fails after the same
wait     works until it is cancelled

LOG gets the name of each method that it was called by, a line each.
"""

import json
import sys
import threading
import time

MOMENT_SECONDS = 3

tasks, lock = {}, threading.Lock()


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def told(task):
    names = ("task_id", "seq", "state", "message", "created_at", "record")
    return {name: task[name] for name in names}


def enter(task, state, message=None, record=None):
    with lock:
        task.update(state=state, message=message, record=record, seq=task["seq"] + 1)
        say({"method": "task/update", "params": told(task)})


def work(task):
    goal = task["goal"]
    enter(task, "running", "src/upload.rs")
    if task["cancelled"].wait(None if goal == "wait" else MOMENT_SECONDS):
        record = {"outcome": "cancelled", "verification": "none"}
        enter(task, "cancelled", "nothing was kept", record)
    elif goal == "succeed":
        summary = "The upload is tried five times."
        gate = {"name": "test", "exit_code": 0, "passed": True}
        record = {"verification": "passed", "summary": summary, "gates": [gate]}
        enter(task, "succeeded", record={"outcome": "succeeded", **record})
    else:
        error = {"code": "gate_failed", "message": "the gate test failed"}
        record = {"outcome": "failed", "verification": "failed", "error": error}
        enter(task, "failed", record=record)


def submit(params):
    task = tasks.get(params["task_id"])
    if task is None:  # A task that is submitted again is the same task.
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        start = {"state": "queued", "seq": 0, "message": None, "record": None}
        task = {**params, **start, "created_at": now, "cancelled": threading.Event()}
        tasks[params["task_id"]] = task
        threading.Thread(target=work, args=[task], daemon=True).start()
    return task


def cancel(task):
    if not task["record"] and not task["cancelled"].is_set():
        enter(task, "cancelling")
        task["cancelled"].set()


HELLO = {
    "protocol": "rocco-exec/1",
    "executor": {"name": "as-the-goal-says", "version": "1"},
    "durable": "none",
    "features": ["progress"],
}

with open(sys.argv[1], "w", encoding="utf-8") as log:
    for line in sys.stdin:
        request = json.loads(line)
        method, params = request["method"], request["params"]
        print(method, file=log, flush=True)
        if method == "hello":
            with lock:
                say({"id": request["id"], "result": HELLO})
            continue
        task = submit(params) if method == "task/submit" else tasks[params["task_id"]]
        if method == "task/cancel":
            cancel(task)
        with lock:
            say({"id": request["id"], "result": told(task)})
