"""A mock of the model that Claude Code talks to: the Messages API, on loopback. Codex talks to the
Responses API of the same server.

It calls a tool where its plan says so, and says "Noted." to everything else. It
keeps every conversation that it was shown with the tools.
"""

import itertools
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model:
    """A model with a plan, which serves until the process ends.

    The plan has a tool for each word that the user may say: its name, and a
    function from the conversation to its arguments. `marker` is the name of a tool
    that only requests of the conversation itself offer: clients ask models for titles
    and the like besides.
    """

    def __init__(self, marker, plan):
        self.marker = marker
        self.plan = dict(plan)
        self.asked = 0
        self.shown = []
        self.logins = set()
        self.lock = threading.Lock()
        handler = type("Bound", (Handler,), {"model": self})
        self.server = Server(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def reply(self, request):
        """The content block that answers a request, and the reason to stop after it."""
        noted = {"type": "text", "text": "Noted."}, "end_turn"
        with self.lock:
            self.asked += 1
        if self.marker not in [tool["name"] for tool in request.get("tools", [])]:
            return noted
        conversation = blocks(request["messages"])
        with self.lock:
            self.shown.append(conversation)
            said = said_last(conversation)
            if said not in self.plan:
                return noted
            name, arguments = self.plan.pop(said)
        call = {"type": "tool_use", "id": f"toolu_{said}", "name": name}
        return {**call, "input": arguments(conversation)}, "tool_use"


def blocks(messages):
    """A conversation as a flat list of content blocks, each with its role."""
    flat = []
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        flat += [{**block, "role": message["role"]} for block in content]
    return flat


def said_last(conversation):
    """What the user said last, if nothing but the system has spoken since."""
    spoken = [block for block in conversation if block["role"] != "system"]
    return spoken[-1].get("text") if spoken else None


def text(block):
    """The text of a block, also of one that holds the result of a tool."""
    content = block.get("content", block.get("text", ""))
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that ends resets its connections, and any other mistake is for stderr."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None
    ids = itertools.count(1)

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send("text/plain", b"")

    def do_GET(self):
        self.send("application/json", b"{}")

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        request = json.loads(self.rfile.read(length) or b"{}")
        path = self.path.split("?")[0]
        self.model.logins.add(self.headers.get("authorization"))
        if path == "/v1/messages":
            self.send_message(request, *self.model.reply(request))
        elif path == "/v1/responses":
            self.send_response_item(self.model.respond(request))
        elif path == "/v1/messages/count_tokens":
            self.send("application/json", b'{"input_tokens":1}')
        else:
            self.send("application/json", b"{}")

    def send_message(self, request, block, stop):
        envelope = {"id": f"msg_{next(self.ids)}", "type": "message"}
        envelope.update(role="assistant", model=request.get("model"), stop_sequence=None)
        envelope["usage"] = {"input_tokens": 1, "output_tokens": 1}
        if not request.get("stream"):
            whole = {**envelope, "content": [block], "stop_reason": stop}
            self.send("application/json", json.dumps(whole).encode())
            return
        events = stream({**envelope, "content": [], "stop_reason": None}, block, stop)
        self.send("text/event-stream", lines_of(events))

    def send_response_item(self, item):
        """The events of the Responses API that bring one item."""
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response = {"id": f"resp_{next(self.ids)}", "usage": usage}
        events = [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": response},
        ]
        self.send("text/event-stream", lines_of(events))

    def send(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def lines_of(events):
    """Events as a stream of them has them."""
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()


def stream(envelope, block, stop):
    """The events that bring one content block."""
    if block["type"] == "text":
        start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        {"type": "message_start", "message": envelope},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
