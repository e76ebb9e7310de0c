"""Drives a server with `mcp` 1.x.

python mcp1.py -- SERVER ARGS...
"""

from functools import partial

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client

from journey import (
    MALFORMED_TASK,
    TASK,
    TOOL,
    Failure,
    drive,
    expect,
    hand_over,
    has_executor,
    parse_arguments,
    tools_of,
)

REVISION = "2025-11-25"


async def journey(command, args, complain):
    async def on_message(message):
        if isinstance(message, Exception):
            complain(message)

    parameters = StdioServerParameters(command=command, args=args)
    async with (
        stdio_client(parameters) as (read, write),
        ClientSession(read, write, message_handler=on_message) as session,
    ):
        initialized = await session.initialize()
        expect("the negotiated revision", initialized.protocolVersion, REVISION)

        tools = (await session.list_tools()).tools
        expect("the names of the tools", [tool.name for tool in tools], tools_of(server))
        expect("the type of the input schema", tools[0].inputSchema.get("type"), "object")
        expect("the tool has a title", bool(tools[0].title), True)

        if has_executor(server):
            await hand_over(partial(call, session))
        else:
            await expect_tool_error(session, TASK, "executor_not_connected")
        await expect_tool_error(session, MALFORMED_TASK, "invalid_arguments")

        try:
            await session.call_tool("no_such_tool", {})
        except McpError as refusal:
            expect("the code for an unknown tool", refusal.error.code, -32602)
        else:
            raise Failure("an unknown tool was not refused")

        await session.send_ping()


async def call(session, name, arguments):
    result = await session.call_tool(name, arguments)
    return bool(result.isError), result.content[0].text, result.structuredContent


async def expect_tool_error(session, task, code):
    result = await session.call_tool(TOOL, task)
    expect(f"isError where {code} is expected", result.isError, True)
    expect(f"the content where {code} is expected", result.content[0].type, "text")
    expect("the start of the text", result.content[0].text[: len(code)], code)


_, server = parse_arguments(["initialize"])
drive(server, REVISION, journey)
