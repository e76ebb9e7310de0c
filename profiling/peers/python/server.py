"""The tool `larry_submit_task`, not connected, on the Python SDK, as its documentation sets a
server up."""
from mcp.server.fastmcp import FastMCP
from mcp.types import CallToolResult, TextContent

server = FastMCP("rocco", log_level="ERROR")


@server.tool(name="larry_submit_task")
def submit(goal: str, repo: str, acceptance: list[str],
           files: list[str] | None = None) -> CallToolResult:
    """Hands one bounded coding task to an executor that works on its own in a local repository."""
    message = "no executor is connected, so the task was not submitted."
    return CallToolResult(
        isError=True,
        content=[TextContent(type="text", text=f"executor_not_connected: {message}")],
        structuredContent={"error": {
            "code": "executor_not_connected", "message": message, "retryable": False,
            "details": {"reason": "not_configured"}}})


server.run()
