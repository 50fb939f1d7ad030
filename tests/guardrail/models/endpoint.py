"""A local HTTP server that speaks the part of OpenAI's protocol that the back ends use."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Endpoint:
    """What the server received, and what it shall answer."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.text = "An answer [NA]."
        self.choices_at_most = 99
        self.status = 200
        self.body: bytes | None = None
        self.kind = "text/html"
        self.delay_s = 0.0
        self.url = ""

    def reply(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        chat = path.endswith("/chat/completions")
        choices = []
        for index in range(min(request.get("n", 1), self.choices_at_most)):
            choice: dict[str, Any] = {"index": index, "finish_reason": "stop", "logprobs": None}
            if chat:
                choice["message"] = {"role": "assistant", "content": self.text}
            else:
                choice["text"] = f" {self.text}"
            choices.append(choice)
        kind = "chat.completion" if chat else "text_completion"
        return {"id": "1", "object": kind, "created": 1, "model": "m", "choices": choices}


@contextmanager
def serve() -> Iterator[Endpoint]:
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.requests.append(request)
            time.sleep(endpoint.delay_s)
            body = endpoint.body or json.dumps(endpoint.reply(self.path, request)).encode()
            kind = endpoint.kind if endpoint.body else "application/json"
            try:
                self.send_response(endpoint.status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client gave up waiting, as a test wants it to

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
