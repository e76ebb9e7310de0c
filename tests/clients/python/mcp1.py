"""Drives a server with `mcp` 1.x.

python mcp1.py -- SERVER ARGS...
"""

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client

from journey import MALFORMED_TASK, TASK, TOOL, Failure, drive, expect, parse_arguments

REVISION = "2025-11-25"


async def journey(command, args, complain):
    async def on_message(message):
        if isinstance(message, Exception):
            complain(message)

    server = StdioServerParameters(command=command, args=args)
    async with (
        stdio_client(server) as (read, write),
        ClientSession(read, write, message_handler=on_message) as session,
    ):
        initialized = await session.initialize()
        expect("the negotiated revision", initialized.protocolVersion, REVISION)

        tools = (await session.list_tools()).tools
        expect("the names of the tools", [tool.name for tool in tools], [TOOL])
        expect("the type of the input schema", tools[0].inputSchema.get("type"), "object")
        expect("the tool has a title", bool(tools[0].title), True)

        await expect_tool_error(session, TASK, "executor_not_connected")
        await expect_tool_error(session, MALFORMED_TASK, "invalid_arguments")

        try:
            await session.call_tool("no_such_tool", {})
        except McpError as refusal:
            expect("the code for an unknown tool", refusal.error.code, -32602)
        else:
            raise Failure("an unknown tool was not refused")

        await session.send_ping()


async def expect_tool_error(session, task, code):
    result = await session.call_tool(TOOL, task)
    expect(f"isError where {code} is expected", result.isError, True)
    expect(f"the content where {code} is expected", result.content[0].type, "text")
    expect("the start of the text", result.content[0].text[: len(code)], code)


_, server = parse_arguments(["initialize"])
drive(server, REVISION, journey)
