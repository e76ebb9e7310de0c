"""What a result holds in each revision of the protocol: these members and no others.

A case names a shape as {"$shape": [name, arguments...]}; what comes back is matched like `has`.
"""

NEWEST = "2026-07-28"  # the revision without a handshake
SERVER = "io.modelcontextprotocol/serverInfo"


def since(revision, first, *names):
    return list(names) if revision >= first else []


def server_info(revision):
    names = ["name", "version", *since(revision, "2025-06-18", "title"),
             *since(revision, "2025-11-25", "description", "icons", "websiteUrl")]
    return {"$only": names, "name": "rocco", "version": {"$match": r"^\d+\.\d+\.\d+"}}


def hello(revision):
    """The result of `initialize`."""
    return {"$only": ["protocolVersion", "capabilities", "serverInfo", "instructions"],
            "protocolVersion": revision,
            "capabilities": {"$only": ["tools"], "tools": {"$only": ["listChanged"]}},
            "serverInfo": server_info(revision)}


def strings():
    return {"type": "array", "items": {"type": "string"}}


def tool(revision):
    """larry_submit_task, in `tools/list`."""
    names = ["name", "description", "inputSchema", *since(revision, "2025-03-26", "annotations"),
             *since(revision, "2025-06-18", "title", "outputSchema"),
             *since(revision, "2025-11-25", "icons")]
    if revision == "2025-11-25":
        names.append("execution")
    members = {"goal": {"type": "string"}, "repo": {"type": "string"},
               "files": {**strings(), "type": ["array", "null"]}, "acceptance": strings()}
    hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
    wanted = {"$only": names, "name": "larry_submit_task", "description": {"$is": "string"},
              "inputSchema": {"type": "object", "properties": {"$only": list(members), **members},
                              "required": {"$is": "array"}}}
    if revision >= "2025-03-26":
        wanted["annotations"] = {"$only": ["title", *hints], "readOnlyHint": False}
    if revision >= "2025-06-18":
        wanted["title"] = {"$is": "string"}
        wanted["outputSchema"] = {"type": "object"}
    return wanted


def stateless():
    """What every result of the newest revision carries."""
    return {"resultType": "complete", "_meta": {SERVER: server_info(NEWEST)}}


def cached():
    return {**stateless(), "ttlMs": {"$min": 0}, "cacheScope": {"$in": ["public", "private"]}}


def listing(revision):
    """The result of `tools/list`: one page of one tool, hence no `nextCursor`."""
    extra = cached() if revision == NEWEST else {}
    return {"$only": ["tools", *extra], "tools": [tool(revision)], **extra}


def discovery():
    """The result of `server/discover`."""
    return {"$only": ["supportedVersions", "capabilities", "instructions", *cached()],
            "supportedVersions": [NEWEST], **cached(),
            "capabilities": {"$only": ["tools", "extensions"],
                             "tools": {"$only": ["listChanged"]}}}


def refusal(revision, code, names=(), spared=()):
    """The typed error of a call. Its text names these arguments and spares those."""
    extra = stateless() if revision == NEWEST else {}
    structured = revision >= "2025-06-18"
    text = {"$match": rf"^{code}: .+\. .+\.$", "$holds": list(names), "$lacks": list(spared)}
    wanted = {"$only": ["content", "isError", *extra] + ["structuredContent"] * structured,
              "isError": True, **extra,
              "content": [{"$only": ["type", "text"], "type": "text", "text": text}]}
    if structured:
        reason = {"reason": "not_configured"} if code == "executor_not_connected" else {}
        error = {"code": code, "retryable": {"$is": "boolean"}, "details": reason,
                 "message": {"$match": r"^.+\. .+\.$", "$holds": list(names)}}
        wanted["structuredContent"] = {"$only": ["error"], "error": {"$only": list(error), **error}}
    return wanted
