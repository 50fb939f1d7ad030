from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from guardrail.core.errors import JudgeError
from guardrail.core.types import Category
from judges.base import AttributionItem, Pair
from judges.chat import ChatJudge, attribution_prompt, read_category, read_nli_label

ITEM = AttributionItem("Where was she born?", "In Rome.", ("Place of birth: Rome.", "Painter."))


class Endpoint:
    """An OpenAI-compatible chat endpoint that gives one reply and keeps the requests."""

    def __init__(self, reply: str, *, structured: bool) -> None:
        self.reply = reply
        self.structured = structured
        self.requests: list[dict[str, Any]] = []

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.requests.append(body)
        if body["model"] == "missing":
            return 404, {"error": {"message": "no such model", "code": "model_not_found"}}
        if "response_format" in body and not self.structured:
            return 400, {"error": {"message": "response_format is not supported"}}
        message = {"role": "assistant", "content": self.reply}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [choice],
        }


@contextmanager
def endpoint(reply: str, *, structured: bool = False) -> Iterator[tuple[str, Endpoint]]:
    served = Endpoint(reply, structured=structured)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = served.answer(body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", served
    finally:
        server.shutdown()
        server.server_close()


def test_structured_replies_are_asked_for_where_offered() -> None:
    with endpoint('{"category": "Insufficient"}', structured=True) as (url, served):
        first, again = ChatJudge("m", base_url=url).attribute([ITEM, ITEM])
    assert first == again
    assert first.category is Category.PARTIALLY_SUPPORTIVE
    [request] = served.requests
    assert request["temperature"] == 0
    assert request["response_format"]["type"] == "json_schema"
    assert request["messages"][0]["content"] == attribution_prompt(ITEM)


def test_an_endpoint_without_structure_is_read_by_pattern() -> None:
    with endpoint("Relationship Category: Supportive, as Rome is named.") as (url, served):
        judge = ChatJudge("m", base_url=url, concurrency=1)
        [verdict] = judge.attribute([ITEM])
        judge.attribute([ITEM._replace(answer="In Florence.")])
    assert verdict.category is Category.SUPPORTIVE
    assert ["response_format" in request for request in served.requests] == [True, False, False]


def test_pairs_are_judged_too() -> None:
    with endpoint('{"label": "contradiction"}', structured=True) as (url, _):
        [scores] = ChatJudge("m", base_url=url).judge([Pair("Born in Rome.", "Born in {Paris}.")])
    assert scores.label == "contradiction"


@pytest.mark.parametrize("reply", ["I cannot tell.", "Supportive or irrelevant", "", "{}"])
def test_an_unreadable_reply_is_an_error_never_a_default(reply: str) -> None:
    with endpoint(reply) as (url, _), pytest.raises(JudgeError, match="reply"):
        ChatJudge("m", base_url=url).attribute([ITEM])


def test_a_model_the_endpoint_lacks_is_named() -> None:
    with endpoint("") as (url, _), pytest.raises(JudgeError, match="no model 'missing'"):
        ChatJudge("missing", base_url=url).judge([Pair("a", "b")])


@pytest.mark.parametrize(
    ("reply", "category"),
    [
        ("Supportive", "supportive"),
        ("2. Insufficient", "partially_supportive"),
        ("The answer is partially supportive.", "partially_supportive"),
        ("**Contradictory**\nThe citation does not support the answer.", "contradictory"),
        ("It is not supportive; relationship category: Irrelevant", "irrelevant"),
        ("The citation is missing the date, so: insufficient.", "partially_supportive"),
    ],
)
def test_categories_are_read_from_free_text(reply: str, category: str) -> None:
    assert read_category(reply) == category


def test_labels_are_read_from_free_text() -> None:
    assert read_nli_label("Label: Entailment (the premise says so)") == "entailment"
    assert read_nli_label("not entailment, but neutral") == "neutral"
    with pytest.raises(JudgeError):
        read_nli_label("entailment or neutral")


def test_the_prompt_is_the_papers() -> None:
    zero = attribution_prompt(ITEM)
    assert "2. Insufficient: Choose this when the citation provides only partial backing" in zero
    assert zero.endswith(
        "Question: Where was she born?\nAnswer: In Rome.\n"
        "Reference: Place of birth: Rome. Painter.\nRelationship Category:"
    )
    few = attribution_prompt(ITEM, examples=[(ITEM, Category.SUPPORTIVE)])
    assert "Relationship Category: Supportive\nTest Example:" in few
