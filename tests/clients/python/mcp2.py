"""Drives a server with `mcp` 2.x.

python mcp2.py [MODE] -- SERVER ARGS...

The modes are those of the library:

auto        its default: asks `server/discover`, and does the `initialize`
            handshake on the same process where that brings nothing
legacy      the `initialize` handshake
2026-07-28  takes the revision for granted and starts with a request
"""

import warnings
from functools import partial

from mcp import Client, MCPDeprecationWarning, MCPError, StdioServerParameters

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

HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"

mode, server = parse_arguments(["auto", "legacy", MODERN])
revision = HANDSHAKE if mode == "legacy" else MODERN


async def journey(command, args, complain):
    async def on_message(message):
        if isinstance(message, Exception):
            complain(message)

    parameters = StdioServerParameters(command=command, args=args)
    async with Client(parameters, mode=mode, message_handler=on_message) as client:
        expect("the negotiated revision", client.protocol_version, revision)

        tools = (await client.list_tools()).tools
        expect("the names of the tools", [tool.name for tool in tools], tools_of(server))
        expect("the type of the input schema", tools[0].input_schema.get("type"), "object")
        expect("the tool has a title", bool(tools[0].title), True)

        if has_executor(server):
            await hand_over(partial(call, client))
        else:
            await expect_tool_error(client, TASK, "executor_not_connected")
        await expect_tool_error(client, MALFORMED_TASK, "invalid_arguments")

        try:
            await client.call_tool("no_such_tool", {})
        except MCPError as refusal:
            expect("the code for an unknown tool", refusal.code, -32602)
        else:
            raise Failure("an unknown tool was not refused")

        # The newer revision has no ping, and the library warns of it in either.
        if revision == HANDSHAKE:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                await client.send_ping()


async def call(client, name, arguments):
    result = await client.call_tool(name, arguments)
    return bool(result.is_error), result.content[0].text, result.structured_content


async def expect_tool_error(client, task, code):
    result = await client.call_tool(TOOL, task)
    expect(f"is_error where {code} is expected", result.is_error, True)
    expect(f"the content where {code} is expected", result.content[0].type, "text")
    expect("the start of the text", result.content[0].text[: len(code)], code)


drive(server, revision, journey)
