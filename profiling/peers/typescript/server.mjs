// The tool `larry_submit_task`, not connected, on the TypeScript SDK, as its documentation sets a
// server up.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "rocco", version: "0.1.0" });

server.registerTool(
  "larry_submit_task",
  {
    title: "Submit a coding task",
    description:
      "Hands one bounded coding task to an executor that works on its own in a local repository.",
    inputSchema: {
      goal: z.string().describe("What is to be achieved."),
      repo: z.string().describe("The local repository to work in: its absolute path."),
      files: z.array(z.string()).optional().describe("The files that may be changed."),
      acceptance: z.array(z.string()).describe("What decides that the task is done."),
    },
  },
  async () => {
    const message = "no executor is connected, so the task was not submitted.";
    return {
      isError: true,
      content: [{ type: "text", text: `executor_not_connected: ${message}` }],
      structuredContent: {
        error: {
          code: "executor_not_connected",
          message,
          retryable: false,
          details: { reason: "not_configured" },
        },
      },
    };
  },
);

await server.connect(new StdioServerTransport());
