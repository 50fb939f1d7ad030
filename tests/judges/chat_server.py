"""A chat endpoint that speaks the real protocol, counts tokens, and answers as a function says."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests import servers

SENTENCE = re.compile(r"<sentence>\n(.*)\n</sentence>", re.DOTALL)
SENTENCES = re.compile(r"^\((\d+)\) (.*)$", re.MULTILINE)
TOKEN = re.compile(r"\w+|[^\w\s]")

Reply = Callable[[dict[str, Any]], str]


class ChatServer:
    """The endpoint.

    Args:
        reply: Text of the reply to a request.
        refused: Options that it does not take.
        likelihoods: Of the letters, as alternatives of every letter in a reply; empty for an
            endpoint that reports none.
    """

    def __init__(
        self,
        reply: Reply,
        *,
        refused: tuple[str, ...] = (),
        likelihoods: dict[str, float] | None = None,
    ) -> None:
        self.reply = reply
        self.refused = refused
        self.likelihoods = likelihoods or {}
        self.requests: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    @property
    def prompts(self) -> list[str]:
        """The whole prompt of each request that was answered."""
        return [prompt_of(body) for body in self.requests]

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body["model"] == "missing":
            return 404, {"error": {"message": "no such model", "code": "model_not_found"}}
        for name in self.refused:
            if name in body:
                return 400, {"error": {"message": f"{name} is not supported"}}
        with self._lock:
            self.requests.append(body)
        text = self.reply(body)
        tokens = TOKEN.findall(prompt_of(body))
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
            "logprobs": self._logprobs(text) if body.get("logprobs") else None,
        }
        usage = {"prompt_tokens": len(tokens), "completion_tokens": len(TOKEN.findall(text))}
        return 200, {
            "id": "1", "object": "chat.completion", "created": 0, "model": body["model"],
            "choices": [choice], "usage": usage | {"total_tokens": sum(usage.values())},
        }  # fmt: skip

    def _logprobs(self, text: str) -> dict[str, Any] | None:
        if not self.likelihoods:
            return None
        return {"content": [self._token(part) for part in re.findall(r"\w+|\W", text)]}

    def _token(self, text: str) -> dict[str, Any]:
        found = self.likelihoods if text in self.likelihoods else {text: 1.0}
        tops = [
            {"token": token, "logprob": math.log(chance), "bytes": None}
            for token, chance in found.items()
        ]
        return {"token": text, "logprob": 0.0, "bytes": None, "top_logprobs": tops}


def prompt_of(body: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


def sentence_of(body: dict[str, Any]) -> str:
    """The sentence that a request asks about; empty for several."""
    match = SENTENCE.search(body["messages"][-1]["content"])
    return match[1] if match else ""


def sentences_of(body: dict[str, Any]) -> list[str]:
    """The sentences of a request that asks about several."""
    inside = body["messages"][-1]["content"].partition("<sentences>")[2].partition("</sentences>")
    return [text for _, text in SENTENCES.findall(inside[0])]


def labels(of: Callable[[str], str]) -> Reply:
    """A reply in the form that is asked for, with the label of each sentence."""

    def reply(body: dict[str, Any]) -> str:
        asked = sentences_of(body)
        if not asked:
            return of(sentence_of(body))
        verdicts = [
            {"sentence": number, "label": of(text), "evidence": [1], "words": []}
            for number, text in enumerate(asked, start=1)
        ]
        return json.dumps({"verdicts": verdicts})

    return reply


@contextmanager
def endpoint(reply: str | Reply, **options: Any) -> Iterator[tuple[str, ChatServer]]:
    """Serve; gives the base URL and the server."""
    server = ChatServer((lambda _: reply) if isinstance(reply, str) else reply, **options)

    def answer(_: str, body: bytes) -> servers.Reply:
        status, found = server.answer(json.loads(body))
        return servers.Reply(json.dumps(found).encode(), status)

    with servers.answering(answer) as url:
        yield f"{url}/v1", server
