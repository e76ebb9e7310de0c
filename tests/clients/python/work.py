"""Has `rocco executor` do tasks for the newest library, and sees what becomes of them.

python work.py -- ROCCO

The executor runs as a daemon, with an agent that does what its goal says
(tests/executor/agent.py) and one gate. The client submits, waits, reads pages and
cancels through the library alone; then the executor is killed while a task runs.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

from journey import expect, parse_arguments

AGENT = Path(__file__).resolve().parents[2] / "executor" / "agent.py"
SUBMIT, STATUS, RESULT, CANCEL = (
    "larry_submit_task", "larry_task_status", "larry_task_result", "larry_cancel_task")
PATIENCE_SECONDS = 300

_, [rocco, *_] = parse_arguments(["work"])


class Executor:
    """A daemon on a socket, for one repository."""

    def __init__(self, folder):
        self.folder, self.repo = folder, folder / "repo"
        self.socket = folder / "run" / "socket"
        self.repo.mkdir()
        (self.repo / "greeting.txt").write_text("helo\n")
        for words in (["init", "-q"], ["add", "."],
                      ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "start"]):
            subprocess.run(["git", "-C", self.repo, *words], check=True)
        gate = {"spelling": {"argv": ["grep", "-x", "hello", "greeting.txt"], "counts": "nothing"}}
        (folder / "gates.json").write_text(json.dumps(gate))
        self.start()

    def start(self):
        self.socket.unlink(missing_ok=True)
        self.child = subprocess.Popen(
            [rocco, "executor", "--socket", self.socket, "--state", self.folder / "state",
             "--allow-repo", self.repo, "--gates", self.folder / "gates.json",
             # The agent is written in Python, whose modules may lie in a home directory.
             "--readable", sys.prefix, "--readable", sys.base_prefix, "--",
             sys.executable, AGENT])
        while not self.socket.exists():
            expect("whether the executor runs", self.child.poll(), None)
            time.sleep(0.02)

    def kill(self):
        self.child.kill()
        self.child.wait()


async def called(client, name, arguments):
    """A tool's structured content, or the code of its error."""
    result = await client.call_tool(name, arguments)
    if result.is_error:
        return result.content[0].text.split(":")[0]
    return result.structured_content


async def submitted(client, executor, goal, **more):
    task = {"goal": goal, "repo": str(executor.repo), "acceptance": ["gate:spelling"], **more}
    answer = await called(client, SUBMIT, task)
    expect("whether it is new", answer["duplicate"], False)
    return answer["task_id"]


async def ended(client, task):
    while True:
        status = await called(client, STATUS, {"task_id": task, "wait_s": 45})
        if "record" in status:
            return status["record"]


async def running(client, task):
    while (await called(client, STATUS, {"task_id": task}))["state"] != "running":
        await anyio.sleep(0.05)


async def journey(executor):
    front = StdioServerParameters(
        command=rocco, args=["mcp", "--executor-socket", str(executor.socket)])
    async with Client(front) as client, Client(front) as other:
        task = await submitted(client, executor, "write greeting.txt hello",
                               files=["greeting.txt"])
        record = await ended(other, task)
        expect("the outcome", (record["outcome"], record["verification"]), ("succeeded", "passed"))
        expect("the gate", record["gates"][0]["passed"], True)
        expect("what is out of scope", record.get("out_of_scope", []), [])
        diff = await called(client, RESULT, {"task_id": task, "part": "diff"})
        expect("whether the diff shows it", "+hello" in diff["text"], True)
        shown = subprocess.run(["git", "-C", executor.repo, "show", f"{record['ref']}:greeting.txt"],
                               check=True, capture_output=True, text=True).stdout
        expect("the file under the ref", shown, "hello\n")
        expect("the user's file", (executor.repo / "greeting.txt").read_text(), "helo\n")

        task = await submitted(client, executor, "write greeting.txt wrong\nsay all is done")
        expect("a gate that fails", (await ended(client, task))["outcome"], "failed")
        task = await submitted(client, executor, "say all is done", acceptance=["it is done"])
        expect("an agent that lies", (await ended(client, task))["outcome"], "failed")
        elsewhere = {"goal": "g", "repo": "/", "acceptance": ["a"]}
        expect("another repository", await called(client, SUBMIT, elsewhere), "repo_not_allowed")

        task = await submitted(client, executor, "sleep 600")
        await running(client, task)
        await called(client, CANCEL, {"task_id": task})
        expect("a cancelled task", (await ended(client, task))["outcome"], "cancelled")

        task = await submitted(client, executor, "sleep 601")
        await running(client, task)
        executor.kill()
        executor.start()
        while True:  # The front finds the new one when the first attempt is a while ago.
            status = await called(client, STATUS, {"task_id": task, "wait_s": 1})
            if status != "executor_not_connected":
                break
            await anyio.sleep(0.1)
        expect("a task whose executor died", (await ended(client, task))["outcome"], "interrupted")
        tasks = (await called(other, STATUS, {}))["tasks"]
        expect("how many tasks there are", len(tasks), 5)


async def in_time(executor):
    with anyio.fail_after(PATIENCE_SECONDS):
        await journey(executor)


directory = Path(tempfile.mkdtemp(prefix="rocco-work-"))
worker = None
try:
    worker = Executor(directory)
    anyio.run(in_time, worker)
finally:
    if worker:
        worker.child.send_signal(signal.SIGTERM)
        worker.child.wait()
    shutil.rmtree(directory, ignore_errors=True)
expect("how the executor ended", worker.child.returncode, 0)
print("tasks done, failed, refused, cancelled and interrupted")
