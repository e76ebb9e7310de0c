"""Claude Code in a pseudo-terminal, with a home, a key and a model that are not real."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent

# It looks like a key, and opens nothing.
KEY = "sk-ant-not-a-key-0000000000000000000000"

ENTER = "\r"
ESCAPE = "\x1b"
ROWS, COLUMNS = 50, 160

# Colours, movements and titles.
CONTROL = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b.")


class Client:
    """A client that runs, until `close`."""

    def __init__(self, directory, model_url, server):
        self.home, self.work = directory / "home", directory / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.greet_nobody()
        servers = {"mcpServers": {"rocco": {"command": server[0], "args": server[1:]}}}
        configuration = directory / "mcp.json"
        configuration.write_text(json.dumps(servers))
        command = [str(program()), "--strict-mcp-config", "--mcp-config", str(configuration)]
        command += ["--permission-mode", "default", "--allowedTools", "mcp__rocco"]

        self.master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            command,
            cwd=self.work,
            env=self.environment(model_url),
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        self.output = b""
        self.log = open(directory / "screen", "wb")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def greet_nobody(self):
        """Answers beforehand what a client asks when it is started for the first time."""
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        settings = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.work): trusted},
        }
        (self.home / ".claude.json").write_text(json.dumps(settings))

    def environment(self, model_url):
        """Nothing of the caller's but the path; and no way out of the machine."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": model_url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # The model is offered the tools at once, without having to search for them.
            "ENABLE_TOOL_SEARCH": "false",
            # Nobody listens there.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
        }

    def read(self):
        while True:
            try:
                seen = os.read(self.master, 65536)
            except OSError:  # The terminal has no other end any more.
                return
            if not seen:
                return
            self.output += seen
            self.log.write(seen)
            self.log.flush()

    def press(self, keys):
        os.write(self.master, keys.encode())

    def shows(self, text, since=0):
        """Whether a text was drawn, blanks aside, after so many bytes of output."""
        drawn = CONTROL.sub("", self.output[since:].decode(errors="replace"))
        return "".join(text.split()) in "".join(drawn.split())

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join(timeout=5)
        os.close(self.master)
        self.log.close()


def program():
    """The client's binary, of the package for this very system."""
    found = sorted(HERE.glob("node_modules/@anthropic-ai/claude-code-*/claude"))
    if not found:
        sys.exit("the client is not installed for this system")
    return found[0]


def version():
    package = HERE / "node_modules/@anthropic-ai/claude-code/package.json"
    return json.loads(package.read_text())["version"]


def codex():
    """The program of Codex, without the script that looks for it."""
    found = sorted(HERE.glob("node_modules/@openai/codex-linux-*/vendor/*/bin/codex"))
    if not found:
        sys.exit("Codex is not installed for this system")
    return found[0]
