"""Drives a server through what a host for Python makes of its tools.

python hosts.py google|openai|grammars -- SERVER ARGS...
"""

import json
import sys
import traceback
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from agents import Agent
from agents.mcp import MCPServerStdio, MCPUtil
from agents.run_context import RunContextWrapper
from agents.tool_context import ToolContext
from google.genai._adapters import McpToGenAiToolAdapter
from google.genai.types import FunctionCall
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

sys.path.insert(0, str(Path(__file__).resolve().parent / ".grammars"))
from gbnf import Grammar
from llama_grammar import json_schema_to_gbnf

SUBMIT, STATUS, RESULT, CANCEL = (
    "larry_submit_task", "larry_task_status", "larry_task_result", "larry_cancel_task")
TASK = {
    "goal": "Retry the upload when the connection \"drops\".",
    "repo": "/srv/uploader",
    "acceptance": ["cargo test passes"],
    "files": ["src/upload.rs"],
}


class Failure(Exception):
    """A host has made something else of the tools than it should."""


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failure(f"{what}: {seen!r} instead of {wanted!r}")


@asynccontextmanager
async def session_with(server):
    parameters = StdioServerParameters(command=server[0], args=server[1:])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


def said_by(result):
    if getattr(result, "structured_content", None) is None:
        raise Failure(f"no structured content: {result}")
    return result.structured_content


@asynccontextmanager
async def google(server):
    """Declarations of functions; a model gives numbers as floats."""
    async with session_with(server) as session:
        listed = await session.list_tools()
        adapter = McpToGenAiToolAdapter(session, listed)
        declared = {one.name: one for tool in adapter.tools for one in tool.function_declarations}
        for tool in listed.tools:
            given = tool.input_schema["properties"]
            taken = declared[tool.name].parameters.properties
            expect(f"the arguments of {tool.name}", sorted(taken), sorted(given))
            for name, argument in taken.items():
                what = f"{name} of {tool.name}"
                expect(f"the description of {what}", argument.description,
                       given[name]["description"])
                optional = name not in tool.input_schema.get("required", [])
                expect(f"whether {what} may be null", bool(argument.nullable), optional)

        async def call(name, arguments):
            numbers = {key: float(value) if isinstance(value, int) else value
                       for key, value in arguments.items()}
            return said_by(await adapter.call_tool(FunctionCall(name=name, args=numbers)))

        yield call


@asynccontextmanager
async def openai(server):
    """Strict functions, of which a model gives every argument; null stands for what is left out."""
    parameters = {"command": server[0], "args": server[1:]}
    async with MCPServerStdio(parameters, use_structured_content=True) as connected:
        agent, context = Agent(name="a"), RunContextWrapper(context=None)
        listed = await MCPUtil.get_function_tools(connected, True, context, agent)
        tools = {tool.name: tool for tool in listed}
        for tool in listed:
            schema = tool.params_json_schema
            expect(f"whether {tool.name} is strict", tool.strict_json_schema, True)
            expect(f"what {tool.name} needs", schema["required"], list(schema["properties"]))

        async def call(name, arguments):
            tool = tools[name]
            every = {key: arguments.get(key) for key in tool.params_json_schema["properties"]}
            text = json.dumps(every)
            of_call = ToolContext(context=None, tool_name=name, tool_call_id="call_1",
                                  tool_arguments=text)
            answer = await tool.on_invoke_tool(of_call, text)
            if isinstance(answer, dict):  # The text of an error.
                return {"error": {"code": answer["text"].partition(":")[0]}}
            return json.loads(answer)

        yield call


@asynccontextmanager
async def grammars(server):
    """Grammars that bind what a model writes: what must be there, and then what may be."""
    async with session_with(server) as session:
        grammars = {tool.name: Grammar(json_schema_to_gbnf(json.dumps(tool.input_schema)))
                    for tool in (await session.list_tools()).tools}

        async def call(name, arguments):
            written = [json.dumps(arguments), json.dumps({**arguments, "extra": 1})]
            taken = [grammars[name].takes(text) for text in written]
            expect(f"whether a model may write {written}", taken, [True, False])
            return said_by(await session.call_tool(name, arguments))

        yield call


async def journey(host, server):
    async with host(server) as call:
        answer = await call(SUBMIT, TASK)
        if "--executor" not in server:
            expect("the error", answer["error"]["code"], "executor_not_connected")
            return "was told that no executor is there"
        task = {"task_id": answer["task_id"]}
        ended = await call(STATUS, {**task, "wait_s": 45})
        expect("the state", ended["state"], "succeeded")
        page = await call(RESULT, {**task, "part": "diff", "offset": 0, "limit": 100})
        # That executor has no pages.
        expect("the page", page["error"]["code"], "unsupported")
        expect("the state after a late cancel", (await call(CANCEL, task))["state"], "succeeded")
        return "had a task done"


async def in_time(host, server):
    try:
        with anyio.fail_after(60):
            print(await journey(host, server))
    except Exception as error:
        # The libraries wrap an error once for each task that it passes through.
        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        traceback.print_exception(error)
        sys.exit(1)


name, dashes, *server = sys.argv[1:]
expect("the arguments", dashes, "--")
anyio.run(in_time, {"google": google, "openai": openai, "grammars": grammars}[name], server)
