"""Requests and replies that use all that is read: what is changed to make hostile ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from chains.gateway.protocols import PROTOCOLS
from chains.openai_wire import Endpoint

__all__ = [
    "ANSWER",
    "CANARY",
    "CHAT",
    "EVIDENCE",
    "HOSTS",
    "QUESTION",
    "REPLIES",
    "RESPONSES",
    "keys_of",
]

QUESTION = "How many rooms does the Kestrel Hotel have?"
ANSWER = "The Kestrel Hotel has 42 rooms."
CANARY = "97 zanzibarcanary"
"""Marks false sentences; no released text may contain it."""
EVIDENCE = [ANSWER]
RECORDED = Path(__file__).parents[2] / "tests/chains/hosts/recorded"
"""Calls as other hosts send them."""


FIELD = {
    "evidence": [
        ANSWER,
        {"text": ANSWER, "id": "d1", "title": "Rooms", "url": "https://h.example", "triple": None},
        {"triple": ["Kestrel", "rooms", 42]},
        {"page_content": ANSWER, "metadata": {"source": "rooms.md", "title": "Rooms"}, "id": "d2"},
    ],
    "policy": "strict",
    "strictness": "balanced",
}
CHAT = {
    "model": "m",
    "n": 1,
    "stream": False,
    "stream_options": {"include_usage": True},
    "response_format": {"type": "text"},
    "system": [{"type": "text", "text": "<c>The pool is open.</c>"}],
    "groundingSources": [ANSWER],
    "qna": {"query": QUESTION},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": QUESTION},
                {"type": "grounding_source", "text": ANSWER, "id": "d1", "title": "T", "url": "u"},
                {"guardContent": {"text": {"text": ANSWER, "qualifiers": ["grounding_source"]}}},
                {"type": "document", "source": {"type": "text", "data": ANSWER}, "title": "T"},
                {"searchResult": {"source": "u", "title": "T", "content": [{"text": ANSWER}]}},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"text": ANSWER}]},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c2", "name": "look", "input": {}}],
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "name": "look",
            "content": [{"title": "T", "body": ANSWER, "price": 3, "metadata": {"id": 1}}],
        },
        {"role": "user", "content": QUESTION},
    ],
    "guardrail": FIELD,
}
RESPONSES = {
    "model": "m",
    "stream": False,
    "instructions": "<c>The pool is open.</c>",
    "text": {"format": {"type": "text"}},
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Rooms?"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"rooms": 42}'},
        {
            "type": "file_search_call",
            "results": [
                {"text": ANSWER, "file_id": "f", "filename": "f.md", "attributes": {"url": "u"}}
            ],
        },
        {"role": "user", "content": QUESTION},
    ],
    "guardrail": FIELD,
}
_MESSAGE = {"role": "assistant", "content": f"{ANSWER} It has {CANARY} rooms."}
_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
_TEXT = {"type": "output_text", "text": _MESSAGE["content"], "annotations": [], "logprobs": []}
REPLIES: dict[Endpoint, list[Any]] = {
    Endpoint.CHAT: [
        {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": _MESSAGE | {"refusal": None}},
                {"index": 1, "message": {"role": "assistant", "tool_calls": [_CALL]}},
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        },
        {"choices": [{"index": 0, "delta": _MESSAGE}]},
        {"choices": [{"index": 0, "delta": {"refusal": "No."}, "finish_reason": "stop"}]},
        {"error": {"message": "busy", "code": 1}},
    ],
    Endpoint.RESPONSES: [
        {
            "id": "r1",
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [
                {"type": "message", "id": "m1", "role": "assistant", "content": [_TEXT]},
                {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
                {"type": "file_search_call", "id": "f1", "results": [{"text": ANSWER}]},
                {"type": "reasoning", "id": "s1", "summary": [{"text": ANSWER}]},
            ],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        },
        {"type": "response.created", "response": {"id": "r1", "output": []}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "message", "id": "m1", "content": []},
        },
        {
            "type": "response.output_text.delta",
            "item_id": "m1",
            "output_index": 0,
            "content_index": 0,
            "delta": _MESSAGE["content"],
        },
        {"type": "response.output_text.done", "output_index": 0, "text": _MESSAGE["content"]},
        {"type": "response.completed", "response": {"output": [{"content": [_TEXT]}]}},
    ],
}
"""Replies, whole ones and events of streams."""


def _recorded(name: str) -> list[Any]:
    files = sorted((*RECORDED.glob(f"{name}.json"), *RECORDED.glob(f"{name}_*.json")))
    return [json.loads(file.read_text("utf-8")) for file in files]


HOSTS: dict[str, list[Any]] = {name: _recorded(name) for name in PROTOCOLS}
"""Calls of other gateways by protocol: what is recorded in ``NAME.json``, or ``NAME_….json``."""


def keys_of(bodies: Sequence[Any]) -> list[str]:
    """All names of fields in bodies."""
    return sorted({name for body in bodies for name in _names(body)})


def _names(value: Any) -> Iterator[str]:
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict):
        yield from value
    for held in inner if isinstance(value, dict | list) else ():
        yield from _names(held)
