"""What an executor makes of Claude Code and of Codex as its agent, and what is demanded of it.

python agent.py -- ROCCO

run.sh agent installs the agents and calls this. They are the real programs, within both
walls, with the options of the executor's manual; the model that they ask is a mock on
loopback, which edits a file, does nothing, or never answers. What is more than the manual
has leads an agent to the mock, and keeps it from the network.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

from client import codex, program, version
from model import Model, blocks, text

# A hang must end, and a busy machine must not be taken for one.
PATIENCE_SECONDS = 300

# Nobody listens there.
NO_NETWORK = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}


class Claude:
    """Claude Code, with the login of a subscription."""

    name = f"Claude Code {version()}"
    program = program()
    flags = "-p --verbose --output-format stream-json --permission-mode acceptEdits".split()
    login = ".claude/.credentials.json"
    token = "sk-ant-oat01-not-a-token"

    def credentials(self):
        scopes = ["user:inference", "user:profile"]
        login = {"accessToken": self.token, "refreshToken": "sk-ant-ort01-not-a-token"}
        # In the year 2100.
        login.update(expiresAt=4102444800000, scopes=scopes, subscriptionType="max")
        return {"claudeAiOauth": login}

    def to_the_mock(self, url):
        """Variables and flags that lead it to the mock."""
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        return {"ANTHROPIC_BASE_URL": url, **quiet}, []


class Codex:
    """Codex, with a key as its login."""

    program = codex()
    name = subprocess.run([program, "--version"], capture_output=True, check=True).stdout
    name = name.decode().strip()
    flags = "exec --sandbox danger-full-access -".split()
    login = ".codex/auth.json"
    token = "sk-not-a-key"

    def credentials(self):
        return {"auth_mode": "apikey", "OPENAI_API_KEY": self.token}

    def to_the_mock(self, url):
        mock = f'{{name="mock",base_url="{url}/v1",wire_api="responses",requires_openai_auth=true}}'
        return {}, ["-c", 'model_provider="mock"', "-c", f"model_providers.mock={mock}"]


class Failure(Exception):
    """The executor or its agent did something else than it should."""


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failure(f"{what}: {seen!r} instead of {wanted!r}")


class Author(Model):
    """A model that does what the goal says: it writes a file, or nothing, or never answers."""

    def __init__(self):
        super().__init__("Write", {})
        self.hung = threading.Event()

    def reply(self, request):
        conversation = blocks(request["messages"])
        goal = " ".join(text(block) for block in conversation if block["role"] == "user")
        offered = [tool["name"] for tool in request.get("tools", [])]
        self.hang_if_told(goal)
        done = any(block["type"] == "tool_result" for block in conversation)
        if "write the greeting" not in goal or self.marker not in offered or done:
            return {"type": "text", "text": "All done, and every test passes."}, "end_turn"
        folder = re.search(r"[Ww]orking directory: (\S+)", json.dumps(request).replace("\\n", " "))
        if folder is None:
            raise Failure("the agent does not tell where it works")
        path = folder[1].rstrip('",')
        call = {"type": "tool_use", "id": "toolu_write", "name": "Write"}
        written = {"file_path": f"{path}/greeting.txt", "content": "hello\n"}
        return {**call, "input": written}, "tool_use"


    def respond(self, request):
        """The same in the items of the Responses API."""
        goal = json.dumps([item for item in request["input"] if item.get("role") == "user"])
        self.hang_if_told(goal)
        done = any(item["type"] == "function_call_output" for item in request["input"])
        if "write the greeting" in goal and not done:
            command = json.dumps({"cmd": "echo hello > greeting.txt"})
            call = {"type": "function_call", "id": "fc_write", "call_id": "call_write"}
            return {**call, "name": "exec_command", "arguments": command}
        said = {"type": "output_text", "text": "All done, and every test passes."}
        return {"type": "message", "role": "assistant", "id": "msg_done", "content": [said]}

    def hang_if_told(self, goal):
        if "never answer" in goal:
            self.hung.set()
            threading.Event().wait(PATIENCE_SECONDS)


class Session:
    """A server with an executor that has an agent, and a client of a few lines."""

    def __init__(self, directory, rocco, agent):
        self.agent = agent
        self.model = Author()
        self.repo = directory / "repo"
        self.repo.mkdir()
        for words in ("init -q -b main", "config user.name A", "config user.email a@localhost"):
            self.git(*words.split())
        (self.repo / "readme.txt").write_text("A greeting is missing.\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "start")
        gates = directory / "gates.json"
        gate = {"argv": ["grep", "-qx", "hello", "greeting.txt"], "counts": "nothing"}
        gates.write_text(json.dumps({"greets": gate}))
        credentials = directory / agent.login
        credentials.parent.mkdir()
        credentials.write_text(json.dumps(agent.credentials()))
        passed, flags = agent.to_the_mock(self.model.url)
        passed.update(NO_NETWORK)
        own = {"PATH": os.environ["PATH"], "HOME": str(directory), "LANG": "C.UTF-8"}
        executor = [rocco, "executor", "--state", str(directory / "state")]
        executor += ["--allow-repo", str(self.repo), "--gates", str(gates)]
        executor += ["--sandbox", "require", "--credentials", str(credentials)]
        executor += [word for name in passed for word in ("--pass-env", name)]
        executor += ["--", str(agent.program), *flags_first(agent.flags, flags)]
        self.process = subprocess.Popen(
            [rocco, "mcp", "--executor", shlex.join(executor)],
            env={**own, **passed},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.next_id = 0
        opening = {"protocolVersion": "2025-11-25", "capabilities": {}}
        self.ask("initialize", {**opening, "clientInfo": {"name": "agent.py", "version": "1"}})

    def git(self, *words):
        done = subprocess.run(["git", *words], cwd=self.repo, capture_output=True, check=True)
        return done.stdout.decode()

    def ask(self, method, params):
        self.next_id += 1
        request = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]

    def submit(self, goal):
        acceptance = ["the greeting is friendly", "gate:greets"]
        task = {"goal": goal, "repo": str(self.repo), "acceptance": acceptance}
        return self.call("larry_submit_task", **task)["task_id"]

    def record(self, task_id):
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            status = self.call("larry_task_status", task_id=task_id, wait_s=45)
            if status.get("record"):
                return status["record"]
        raise Failure(f"in {PATIENCE_SECONDS} s the task did not end")

    def log(self, task_id):
        return self.call("larry_task_result", task_id=task_id, part="log")["text"]

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=PATIENCE_SECONDS)


def flags_first(words, flags):
    """Words of a command line with more flags in front of the last."""
    return [*words[:-1], *flags, words[-1]]


def writes(session):
    """The agent edits its clone, the gate passes, and the work is a ref of the repository."""
    task_id = session.submit("write the greeting")
    record = session.record(task_id)
    expect("how it ended", record["outcome"], "succeeded")
    expect("the result", session.git("show", f"refs/rocco/{task_id}:greeting.txt"), "hello\n")
    expect("the user's files", (session.repo / "greeting.txt").exists(), False)
    expect("the agent's words are in the log", "All done" in session.log(task_id), True)
    expect("the login", session.model.logins, {f"Bearer {session.agent.token}"})
    expect("the walls", record["sandbox"], "bubblewrap+landlock")


def lies(session):
    """The agent says that it is done, and has changed nothing."""
    record = session.record(session.submit("say that it is done"))
    expect("how it ended", record["outcome"], "failed")
    expect("why", record["error"]["code"], "no_changes")


def hangs(session):
    """The model never answers; a cancellation ends the agent with all that it has started."""
    task_id = session.submit("never answer")
    if not session.model.hung.wait(PATIENCE_SECONDS):
        raise Failure("the agent never asked its model")
    session.call("larry_cancel_task", task_id=task_id)
    expect("how it ended", session.record(task_id)["outcome"], "cancelled")
    left = subprocess.run(["pgrep", "-f", f"^{session.agent.program} "], capture_output=True, check=False)
    expect("the agents that are left", left.stdout, b"")


SCENARIOS = (writes, lies, hangs)


def plays(scenario, rocco, agent):
    """Plays a scenario, and tells whether all was as it should be."""
    directory = Path(tempfile.mkdtemp(prefix="rocco-agent-"))
    session = Session(directory, rocco, agent)
    try:
        scenario(session)
        expect("the exit code of the server", session.close(), 0)
    except Exception:
        print(f"FAILED  {scenario.__name__}", flush=True)
        traceback.print_exc()
        print(f"        what it left is in {directory}", file=sys.stderr)
        session.process.kill()
        return False
    print(f"passed  {scenario.__name__}", flush=True)
    shutil.rmtree(directory)
    return True


def main():
    if len(sys.argv) != 3 or sys.argv[1] != "--" or shutil.which(sys.argv[2]) is None:
        sys.exit("usage: agent -- ROCCO")
    rocco = str(Path(shutil.which(sys.argv[2])).absolute())
    failed = 0
    for agent in (Claude(), Codex()):
        print(agent.name, flush=True)
        failed += sum(not plays(scenario, rocco, agent) for scenario in SCENARIOS)
    print(f"{2 * len(SCENARIOS) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
