"""What every Python driver does with its client, and how it is judged."""

import os
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import anyio

RECORD = Path(__file__).resolve().parent.parent / "record.sh"

# A client waits for ever for a reply, and a test run should not.
PATIENCE_SECONDS = 30

TOOL = "larry_submit_task"

# Those that are there with an executor alone.
FOLLOWING = ["larry_task_status", "larry_task_result", "larry_cancel_task"]

TASK = {
    "goal": "Retry the upload when the connection is reset.",
    "repo": "/srv/uploader",
    "acceptance": ["cargo test passes"],
    "files": ["src/upload.rs"],
}

# The repository is missing and the goal is no string.
MALFORMED_TASK = {"goal": 7, "acceptance": ["cargo test passes"]}


class Failure(Exception):
    """The server did something else than it should."""


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failure(f"{what}: {seen!r} instead of {wanted!r}")


def parse_arguments(modes):
    """Splits `MODE -- SERVER ARGS...`; the mode may be left out."""
    given = sys.argv[1:]
    split = given.index("--") if "--" in given else -1
    server = given[split + 1 :]
    mode = given[0] if split == 1 else modes[0]
    if split not in (0, 1) or not server or mode not in modes:
        print(f"usage: [{'|'.join(modes)}] -- SERVER ARGS...", file=sys.stderr)
        sys.exit(2)
    return mode, server


def has_executor(server):
    return "--executor" in server


def tools_of(server):
    """The names of the tools that a server should have."""
    return [TOOL, *FOLLOWING] if has_executor(server) else [TOOL]


async def hand_over(call):
    """Has tests/executor_client/executor.py do a task, and calls each of the tools.

    `call(name, arguments)` gives whether the result is an error, its text and its
    structured content.
    """

    async def succeed(name, arguments):
        is_error, text, structured = await call(name, arguments)
        if is_error:
            raise Failure(f"{name} failed: {text}")
        return structured

    status, page, cancel = FOLLOWING
    task = {"task_id": (await succeed(TOOL, TASK))["task_id"]}
    ended = await succeed(status, {**task, "wait_s": 45})
    expect("the state after the wait", ended["state"], "succeeded")
    expect("the summary", ended["record"]["summary"], TASK["goal"])
    # That executor has no pages, and a task that has ended stays as it is.
    is_error, text, _ = await call(page, {**task, "part": "diff"})
    expect("a page is an error", is_error, True)
    expect("the start of its text", text.split(":")[0], "unsupported")
    cancelled = await succeed(cancel, task)
    expect("the state after a cancel that came too late", cancelled["state"], "succeeded")


def drive(server, revision, journey):
    """Runs the whole journey and ends the process with 0 or 1.

    `journey(command, args, complain)` connects, judges and closes. It hands to
    `complain` whatever its client could not read, since the clients only skip it.
    """
    directory = Path(tempfile.mkdtemp(prefix="rocco-client-"))
    complaints = []

    async def in_time():
        with anyio.fail_after(PATIENCE_SECONDS):
            await journey("sh", [str(RECORD), str(directory), *server], complaints.append)

    try:
        anyio.run(in_time)
        expect("the complaints of the client", complaints, [])
        check_run(directory)
    except Exception as error:
        # The libraries wrap an error once for each task that it passes through.
        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        traceback.print_exception(error)
        sys.exit(1)
    finally:
        kill_leftovers(directory)
        shutil.rmtree(directory, ignore_errors=True)
    print(f"spoke {revision}")


def check_run(directory):
    """Checks that the server ran once and ended by itself, in good order and silently."""
    runs = list(directory.iterdir())
    expect("how often the server was started", len(runs), 1)
    end = runs[0] / "end"
    if not end.exists():
        raise Failure("the server had not ended when its client was done")
    status, sent = end.read_text().split()
    expect("the signal that was needed to end the server", sent, "none")
    expect("the exit code of the server", status, "0")
    expect("the stderr of the server", (runs[0] / "stderr").read_text(), "")


def kill_leftovers(directory):
    """Ends the servers that outlived their client."""
    for run in directory.iterdir():
        if (run / "end").exists():
            continue
        try:
            os.kill(int((run / "pid").read_text()), signal.SIGKILL)
        except (OSError, ValueError):
            pass  # It ended in the meantime.
