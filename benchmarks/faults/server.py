"""A fake model server and graph endpoint, in its own process.

``/v1/chat/completions`` fails as the question in the request names it, ``/sparql`` by the person
that a query is about.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import httpx
from pyoxigraph import QueryBoolean, QueryResultsFormat, QuerySolutions, RdfFormat, Store

from benchmarks.faults.facts import (
    HANG_S,
    LATE_S,
    PERSONS,
    answer_about,
    fault_of,
    faults_in,
    turtle,
)
from guardrail.core.errors import GuardrailError

__all__ = ["serving"]

ENDLESS = 4 << 20
"""Bytes of a reply that does not end by itself; the gateway of the bench reads one mebibyte."""
GARBAGE = (
    random.Random(1).randbytes(4096),
    b"[" * 50_000,
    b'{"choices": 3, "results": 3}',
    b"null",
    b'{"results": {"bindings": [[]]}, "choices": [{}]}',
)
"""What is sent in place of an answer, one after the other."""
PIECE = 9
"""Characters of one delta of a stream."""

STORE = Store()
_TURN = itertools.count()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on stderr."""

    def do_GET(self) -> None:
        """Tell that the server is there."""
        self._whole(b'{"object": "list", "data": []}')

    def do_POST(self) -> None:
        """Answer, or fail as the question demands."""
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        with contextlib.suppress(OSError):  # the other side gave up
            if self.path.startswith("/sparql"):
                self._sparql(parse_qs(body)["query"][0])
            else:
                self._chat(json.loads(body), faults_in(body).get("model", "none"))

    def _sparql(self, query: str) -> None:
        fault = fault_of(query)
        found = STORE.query(query)
        assert isinstance(found, QuerySolutions | QueryBoolean)
        content = found.serialize(format=QueryResultsFormat.JSON)
        assert content is not None
        if self._fails(fault, content, "application/sparql-results+json"):
            return
        self._whole(content, "application/sparql-results+json")

    def _chat(self, body: dict[str, object], fault: str) -> None:
        text = answer_about(next(name for name in PERSONS if name in json.dumps(body)))
        head = {"id": "chatcmpl-1", "created": 1, "model": "faults"}
        if body.get("stream"):
            self._stream(head | {"object": "chat.completion.chunk"}, text, fault)
            return
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        content = json.dumps(head | {"object": "chat.completion", "choices": [choice]}).encode()
        if not self._fails(fault, content, "application/json"):
            self._whole(content)

    def _stream(self, head: dict[str, object], text: str, fault: str) -> None:
        """A stream; ``late`` and ``hang`` begin, ``reset`` and ``half`` end within the text."""
        deltas = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
        choices = [{"index": 0, "delta": {"content": delta}} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        events = [f"data: {json.dumps(head | {'choices': [item]})}\n\n" for item in choices]
        if fault in ("garbage", "full"):
            self._fails(fault, b"", "text/event-stream")
            return
        self._head("text/event-stream", None)
        for number, event in enumerate(events):
            if number == len(events) // 2 and fault in ("late", "hang", "reset", "half"):
                if fault == "reset":
                    self._reset()
                if fault in ("reset", "half"):
                    self.close_connection = True
                    return
                time.sleep(LATE_S if fault == "late" else HANG_S)
            self._chunk(event.encode())
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _fails(self, fault: str, content: bytes, kind: str) -> bool:
        """Fail; whether a reply was made."""
        if fault == "late":
            time.sleep(LATE_S)
            return False
        if fault == "none":
            return False
        self.close_connection = True
        if fault == "hang":
            time.sleep(HANG_S)
        elif fault == "reset":
            self._reset()
        elif fault == "garbage":
            self._whole(GARBAGE[next(_TURN) % len(GARBAGE)], kind)
        elif fault == "half":
            self._head(kind, len(content))
            self.wfile.write(content[: len(content) // 2])
        elif next(_TURN) % 2:
            self._whole(b'{"error": {"message": "no room is left"}}', status=507)
        else:
            self._head(kind, None)
            for _ in range(ENDLESS >> 16):
                self._chunk(b"data: " + b" " * 65_530)
        return True

    def _whole(self, content: bytes, kind: str = "application/json", status: int = 200) -> None:
        self._head(kind, len(content), status)
        self.wfile.write(content)

    def _head(self, kind: str, length: int | None, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))

    def _reset(self) -> None:
        """Break off so that the other side sees a reset, and no orderly end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that was broken off is what was asked for."""


@contextmanager
def serving() -> Iterator[str]:
    """Start the server on a free port; yields its address."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "benchmarks.faults.server", str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        end = time.monotonic() + 60
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > end:
                raise GuardrailError("the stand-in server of the bench did not start")
            time.sleep(0.05)
        yield url
    finally:
        process.kill()
        process.communicate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=1).status_code == 200
    except httpx.HTTPError:
        return False


def _end_with_parent() -> None:
    """End when the process that started this one is gone, and its end of the pipe with it."""
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    STORE.load(turtle().encode(), RdfFormat.TURTLE)
    _Server(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
