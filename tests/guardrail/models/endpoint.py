"""A local HTTP server that speaks the part of OpenAI's protocol that the back ends use."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.servers import Reply, answering


class Endpoint:
    """What the server received, and what it shall answer."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.text = "An answer [NA]."
        self.choices_at_most = 99
        self.refuses_n = False
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

    def answer(path: str, body: bytes) -> Reply:
        endpoint.requests.append(json.loads(body))
        time.sleep(endpoint.delay_s)
        if endpoint.refuses_n and endpoint.requests[-1].get("n", 1) > 1:
            refusal = {"error": {"message": "Field 'n': Value must be between 1 and 1"}}
            return Reply(json.dumps(refusal).encode(), 400)
        if endpoint.body:
            return Reply(endpoint.body, endpoint.status, endpoint.kind)
        reply = endpoint.reply(path, endpoint.requests[-1])
        return Reply(json.dumps(reply).encode(), endpoint.status)

    with answering(answer) as url:
        endpoint.url = f"{url}/v1"
        yield endpoint
