"""What Claude Code is made to do with a server, and what is demanded of both.

python check.py [SCENARIO...] -- SERVER ARGS...

run.sh installs the client and calls this.
"""

import json
import re
import shlex
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

import client
from client import ENTER, ESCAPE, Client
from model import Model, text

HERE = Path(__file__).resolve().parent

# A hang must end, and a busy machine must not be taken for one.
PATIENCE_SECONDS = 300

EXTENSION = "io.modelcontextprotocol/tasks"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
REVISION = "io.modelcontextprotocol/protocolVersion"
SUBMIT = "mcp__rocco__larry_submit_task"
CANCEL = "mcp__rocco__larry_cancel_task"


class Failure(Exception):
    """The client or the server did something else than it should."""


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failure(f"{what}: {seen!r} instead of {wanted!r}")


class Session:
    """A client, its model, and the record of what it says to the server."""

    def __init__(self, directory, server, goal):
        self.directory = directory
        self.record = directory / "record"
        self.record.mkdir()
        self.methods = directory / "executor"
        executor = shlex.join([sys.executable, str(HERE / "executor.py"), str(self.methods)])
        recorder = [sys.executable, str(HERE / "record.py"), str(self.record)]
        self.model = Model(SUBMIT, plan(goal))
        command = [*recorder, *server, "--executor", executor]
        self.client = Client(directory, self.model.url, command)

    def wait(self, what, holds):
        """Waits until something holds, and gives it."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            ended = self.client.process.poll() is not None
            if it := holds():
                return it
            if ended:
                raise Failure(f"the client ended, and never came {what}")
            time.sleep(0.05)
        raise Failure(f"in {PATIENCE_SECONDS} s never came {what}")

    def noted(self, what):
        """What the record has of one kind, in order."""
        lines = [line for path in self.record.iterdir() for line in path.read_text().splitlines()]
        return [note[what] for note in map(json.loads, lines) if what in note]

    def requests(self, method):
        return [said for said in self.noted("client") if said and said.get("method") == method]

    def answers(self, method):
        """The results of the requests of a method, as far as they have come."""
        ids = [request["id"] for request in self.requests(method)]
        return [said["result"] for said in self.noted("server") if said.get("id") in ids]

    def executor_heard(self, method):
        return self.methods.exists() and method in self.methods.read_text().split()

    def type(self, line):
        """Types a line, and ends it when the client has shown it: else it were a paste."""
        since = len(self.client.output)
        self.client.press(line)
        self.wait(f"the line {line!r} on the screen", lambda: self.client.shows(line, since))
        self.client.press(ENTER)

    def see(self, line):
        self.wait(f"{line!r} on the screen", lambda: self.client.shows(line))

    def told(self, pattern):
        """Waits for a block that the model is shown, and gives what the pattern finds in it."""

        def holds():
            with self.model.lock:
                newest = self.model.shown[-1] if self.model.shown else []
            for block in newest:
                if block["role"] != "assistant" and (it := re.search(pattern, text(block), re.S)):
                    return it
            return None

        return self.wait(f"{pattern!r} into the conversation", holds)

    def greet(self):
        """Says hello until the model is offered the tools, which the client may still take in."""
        while not self.model.shown:
            asked = self.model.asked
            self.type(f"hello {asked}")
            self.wait("a request to the model", lambda: self.model.asked > asked)

    def submit(self):
        """Has the model submit the task, and gives the id that the server gave to it."""
        self.wait("a list of tools", lambda: self.answers("tools/list"))
        self.see("❯")
        self.greet()
        self.type("submit")
        task_id = self.told(r"started server-side task (tsk_\w+)")[1]
        (answer,) = self.answers("tools/call")
        expect("the type of the answer to a submit", answer["resultType"], "task")
        expect("the task that the model was told of", task_id, answer["taskId"])
        self.wait("a poll", lambda: self.requests("tasks/get"))
        return task_id

    def close_dialog(self):
        """Presses the escape key; a key that came right after it would be taken for its end."""
        since = len(self.client.output)
        self.client.press(ESCAPE)
        self.wait("the prompt", lambda: self.client.shows("❯", since))

    def leave(self):
        self.type("/exit")

    def end(self):
        """Waits for the end of both, and judges what holds for every session."""
        self.wait("the end of the client", lambda: self.client.process.poll() is not None)
        expect("the exit code of the client", self.client.process.returncode, 0)
        self.wait("the end of the server", lambda: self.noted("end"))
        expect("the exit codes of the servers that were started", self.noted("end"), [0])
        expect("the stderr of the server", self.noted("stderr"), [])
        for method in ("server/discover", "tools/list", "tools/call", "tasks/get", "tasks/cancel"):
            for request in self.requests(method):
                envelope = request["params"]["_meta"]
                expect(f"the revision of {method}", envelope[REVISION], "2026-07-28")
                declared = envelope[CAPABILITIES].get("extensions", {})
                expect(f"{method} declares tasks", EXTENSION in declared, True)
        refused = [said for said in self.noted("server") if "error" in said]
        expect("the errors of the server", refused, [])


def plan(goal):
    """The tools that the model calls when it is told these words."""
    task = {"goal": goal, "repo": "/srv/uploader", "acceptance": ["gate:test"]}

    def the_task_of_the(whose):
        return lambda conversation: {"task_id": found(whose, conversation)}

    return {
        "submit": (SUBMIT, lambda _: task),
        "stop": ("TaskStop", the_task_of_the(r"background as task (\w+)")),
        "cancel": (CANCEL, the_task_of_the(r"server-side task (tsk_\w+)")),
    }


def found(pattern, conversation):
    """What the newest block that matches says in the group of the pattern."""
    hits = [it[1] for block in conversation for it in [re.search(pattern, text(block))] if it]
    if not hits:
        raise Failure(f"the model was never shown {pattern!r}")
    return hits[-1]


NOTIFICATION = (
    r"<task-notification>.*<status>(?P<status>\w+)</status>"
    r"(?:.*<result>\s*(?P<result>.*?)\s*</result>)?"
)


def result_of(session, state):
    """The result that the polls ended with. Before it, the task was at work."""
    *earlier, last = session.answers("tasks/get")
    expect("the task was polled while it ran", len(earlier) > 0, True)
    for answer in earlier:
        expect("the status while it ran", answer["status"], "working")
    expect("the status at the end", last["status"], state)
    return last


def succeed(session):
    """The model is shown the structured result, without asking."""
    session.submit()
    notification = session.told(NOTIFICATION)
    result = result_of(session, "completed")["result"]
    expect("the status that the model is told", notification["status"], "completed")
    structured = result["structuredContent"]
    expect("what the model is shown", json.loads(notification["result"]), structured)
    expect("how it ended", structured["record"]["outcome"], "succeeded")
    expect("the calls of tools", len(session.requests("tools/call")), 1)
    session.leave()


def fail(session):
    """The model is shown the text of the error, which has the code and the record."""
    session.submit()
    notification = session.told(NOTIFICATION)
    result = result_of(session, "completed")["result"]
    expect("it is an error", result["isError"], True)
    expect("the status that the model is told", notification["status"], "failed")
    shown = " ".join(notification["result"].split())
    whole = " ".join(result["content"][0]["text"].split())
    expect("what the model is shown", shown, f"Task failed: {whole}")
    expect("the start of the text", whole[: len("failed: ")], "failed: ")
    expect("the code of the record is shown", '"code":"gate_failed"' in shown, True)
    expect("the calls of tools", len(session.requests("tools/call")), 1)
    session.leave()


def stop(session):
    """The model stops the task by a tool of the client's, and the executor hears of it."""
    session.submit()
    session.type("stop")
    session.told(r"is stopped")
    cancelled(session)
    session.leave()


def stop_by_hand(session):
    """So does a person in the client's list of tasks; the model is told with the next prompt."""
    session.submit()
    session.type("/tasks")
    session.see("x to stop")
    session.client.press("x")
    cancelled(session)
    session.see("No tasks currently running")
    session.close_dialog()
    session.type("hello")
    notification = session.told(NOTIFICATION)
    expect("the status that the model is told", notification["status"], "killed")
    session.leave()


def cancelled(session):
    session.wait("tasks/cancel", lambda: session.answers("tasks/cancel"))
    session.wait("task/cancel to the executor", lambda: session.executor_heard("task/cancel"))


def cancel(session):
    """The model cancels it by the server's tool; the polls find that out and tell the model."""
    session.submit()
    session.type("cancel")
    notification = session.told(NOTIFICATION)
    last = result_of(session, "cancelled")
    wanted = f"Task cancelled: {last['statusMessage']}"
    expect("what the model is shown", notification["result"], wanted)
    expect("tasks/cancel is not needed", session.requests("tasks/cancel"), [])
    session.leave()


def leave(session):
    """The client ends while the task runs: it asks the person, and tells the server nothing."""
    session.submit()
    session.leave()
    session.see("Exit and stop tasks")
    session.client.press(ENTER)
    session.wait("the end of the client", lambda: session.client.process.poll() is not None)
    expect("tasks/cancel at the end", session.requests("tasks/cancel"), [])


# Each with the goal that makes the executor play its part.
SCENARIOS = [
    (succeed, "succeed"),
    (fail, "fail"),
    (stop, "wait"),
    (stop_by_hand, "wait"),
    (cancel, "wait"),
    (leave, "wait"),
]


def summary(session):
    polls, cancels = (len(session.requests(method)) for method in ("tasks/get", "tasks/cancel"))
    signals = ", ".join(session.noted("signal")) or "no signal"
    return f"{polls} polls, {cancels} tasks/cancel, ended by {signals}"


def run(scenario, goal, server):
    """Plays one scenario; what it left behind is removed if it passed."""
    directory = Path(tempfile.mkdtemp(prefix="rocco-tasks-"))
    session = None
    try:
        session = Session(directory, server, goal)
        scenario(session)
        session.end()
    except Exception:
        print(f"FAILED  {scenario.__name__}", flush=True)
        traceback.print_exc()
        print(f"        its screen and its record are in {directory}", file=sys.stderr)
        return False
    finally:
        if session is not None:
            session.client.close()
            (directory / "shown.json").write_text(json.dumps(session.model.shown, indent=1))
    print(f"passed  {scenario.__name__:13} {summary(session)}", flush=True)
    shutil.rmtree(directory)
    return True


def parse_arguments():
    """Splits `SCENARIO... -- SERVER ARGS...`; without a scenario, all are played."""
    given = sys.argv[1:]
    split = given.index("--") if "--" in given else len(given)
    names, server = given[:split], given[split + 1 :]
    known = [scenario.__name__ for scenario, _ in SCENARIOS]
    if not server or not set(names) <= set(known):
        sys.exit(f"usage: [{'|'.join(known)}]... -- SERVER ARGS...")
    # The client works in another directory.
    program = shutil.which(server[0])
    if program is None:
        sys.exit(f"there is no program {server[0]}")
    return names or known, [str(Path(program).absolute()), *server[1:]]


def main():
    names, server = parse_arguments()
    print(f"Claude Code {client.version()}", flush=True)
    chosen = [it for it in SCENARIOS if it[0].__name__ in names]
    outcomes = [run(scenario, goal, server) for scenario, goal in chosen]
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed")
    sys.exit(0 if all(outcomes) else 1)


if __name__ == "__main__":
    main()
