"""Targets that speak a protocol: OpenAI's, streams, those of other hosts, MCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import mcp
from hypothesis import strategies as st

from benchmarks.fuzz.bodies import (
    ANSWER,
    CANARY,
    CHAT,
    EVIDENCE,
    HOSTS,
    QUESTION,
    REPLIES,
    RESPONSES,
    keys_of,
)
from benchmarks.fuzz.inputs import Target, almost, almost_json, json_values, repeated
from chains.evidence.base import EvidenceSettings
from chains.gateway.protocols import PROTOCOLS
from chains.mcp_server import mcp_server
from chains.openai_exchange import Exchange
from chains.openai_request import GuardSettings
from chains.openai_wire import (
    MESSAGE_CHARACTERS,
    Endpoint,
    EventDecoder,
    Reply,
    request_body,
)
from guardrail import STRICT, Guardrail, GuardrailConfig
from guardrail.core.errors import GuardrailError
from guardrail.core.incoming import read_clean_json
from guardrail.core.types import Evidence

__all__ = ["EXCHANGES", "check_reply", "check_stream"]

PLACES = EvidenceSettings(marks=("<c>", "</c>"))
WORDS = (
    "tool", "user", "text", "tool_result", "function_call_output", "message", "output_text",
    "refusal", ANSWER, f"It is {CANARY}.", "\ud800", "[NA]", "{}", "assistant", "system",
)  # fmt: skip
BODIES = {Endpoint.CHAT: CHAT, Endpoint.RESPONSES: RESPONSES}
JSON_TOKENS = (
    "{", "}", "[", "]", '"', ":", ",", "\\ud800", "\\", "null", "NaN", "1e999", "9" * 400, "\x00",
    '{"a":', '"messages"', '"content"', '[{"role": "user", "content": "a"}, ',
)  # fmt: skip
SSE_TOKENS = (
    "data: ", "data:", "\n", "\r", "\r\n", "\n\n", "event: x\n", ": note\n", "data: [DONE]\n\n",
    "id: 1\n", "retry: 1\n", "data: {}\n\n", "\ufeff", "é", "\x00", "data: [[\n\n", "data\n",
)  # fmt: skip


@cache
def _guarding() -> GuardSettings:
    config = GuardrailConfig().changed(
        judge="benchmarks.faults.judge:FaultyJudge", graph="none", policy=STRICT
    )
    guard = Guardrail(config, retriever=_nothing)
    guard.warm_up()
    return GuardSettings(guard=guard, policy=STRICT, evidence=PLACES)


def _nothing(question: str) -> Sequence[Evidence]:
    """What a retriever finds that knows nothing."""
    return []


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def _run(work: Coroutine[Any, Any, None]) -> None:
    _runner().run(work)


def _whole(endpoint: Endpoint, request: Any, reply: bytes) -> None:
    async def exchanged() -> None:
        async def send(body: Mapping[str, Any]) -> Reply:
            json.dumps(body).encode()
            return Reply(200, (), reply)

        with suppress(GuardrailError):
            exchange = Exchange(_guarding(), endpoint, request)
            guarded = await exchange.whole(send)
            if CANARY not in json.dumps(request):  # else it may be what the evidence says
                check_reply(guarded.reply.body)
            json.loads(guarded.reply.body, parse_constant=_no_number)

    _run(exchanged())


def check_reply(content: bytes) -> None:
    """Check that no text left which was not judged, but an error's message.

    Raises:
        AssertionError: There is some.
    """
    assert CANARY not in json.dumps(_judged(json.loads(content))), f"unjudged: {content[:2000]!r}"


def check_stream(content: bytes) -> None:
    """Check the same of what left as a stream.

    Raises:
        AssertionError: There is some.
    """
    decoder = EventDecoder()
    for event in decoder.feed(content) + decoder.finish():
        assert CANARY not in json.dumps([event.name, _judged(event.json())]), f"unjudged: {event}"


def _judged(value: Any) -> Any:
    """JSON without the messages of errors, which are no answer and are not judged."""
    if isinstance(value, list):
        return [_judged(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = dict(value)
    errors = [kept] if kept.get("type") == "error" else []
    if isinstance(kept.get("error"), dict):
        kept["error"] = dict(kept["error"])
        errors.append(kept["error"])
    for error in errors:
        assert len(error.pop("message", "")) <= MESSAGE_CHARACTERS, "an error without end"
    return {name: _judged(held) for name, held in kept.items()}


def _no_number(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def _request(given: tuple[Endpoint, bytes]) -> None:
    endpoint, content = given
    with suppress(GuardrailError):
        body = request_body(content)
        body.pop("stream", None)
        _whole(endpoint, body, json.dumps(REPLIES[endpoint][0]).encode())


def _reply(given: tuple[Endpoint, bytes]) -> None:
    endpoint, content = given
    request = {"model": "m", "guardrail": {"evidence": EVIDENCE}}
    asked = {"input": QUESTION, "messages": [{"role": "user", "content": QUESTION}]}
    _whole(endpoint, request | asked, content)


def _decoded(text: str) -> None:
    """The same events come out whatever the size of the chunks."""
    data = text.encode("utf-8", "surrogatepass")
    found = []
    for size in (1, 7, max(1, len(data))) if len(data) < 10_000 else (1_000, len(data)):
        decoder = EventDecoder()
        events = []
        for start in range(0, len(data), size):
            events += decoder.feed(data[start : start + size])
        found.append(events + decoder.finish())
    assert all(events == found[0] for events in found), "chunks decide what is read"


def _stream(given: tuple[Endpoint, Sequence[Any]]) -> None:
    """Events of any JSON: what leaves is judged."""
    endpoint, events = given
    asked = {"input": QUESTION, "messages": [{"role": "user", "content": QUESTION}]}
    request = {"model": "m", "stream": True, "guardrail": {"evidence": EVIDENCE}} | asked

    async def streamed() -> None:
        with suppress(GuardrailError):
            stream = Exchange(_guarding(), endpoint, request).stream()
            out = b""
            for event in events:
                out += await stream.feed(f"data: {json.dumps(event)}\n\n".encode())
            out += await stream.finish()
            check_stream(out)

    _run(streamed())


def _hosts(given: tuple[str, Any]) -> None:
    name, content = given

    async def called() -> None:
        protocol = PROTOCOLS[name]()
        with suppress(GuardrailError):
            reply, _ = await protocol.answer(request_body(_written(content)), _guarding())
            json.dumps(reply, allow_nan=False).encode()

    _run(called())


def _tools(given: Any) -> None:
    async def called() -> None:
        async with mcp.Client(mcp_server(_guarding().guard)) as client:
            for name in ("check_answer", "find_facts"):
                result = await client.call_tool(name, given)
                content = "".join(getattr(item, "text", "") for item in result.content)
                assert result.is_error or json.loads(content) is not None
                assert "Traceback" not in content

    _run(called())


def _line(text: str) -> None:
    """A line of stdin, as the server of MCP reads it."""
    with suppress(ValueError, RecursionError):
        json.dumps(read_clean_json(text), ensure_ascii=False, allow_nan=False).encode()


ENDPOINTS = st.sampled_from(list(Endpoint))
ARGUMENTS = {
    "question": QUESTION,
    "answer": ANSWER,
    "evidence": [
        EVIDENCE[0],
        {"text": EVIDENCE[0], "id": "1", "title": "T", "url": "u"},
        {"triple": ["Kestrel", "rooms", 42]},
        {"table": {"rows": [{"id": 1, "name": "a", "price": 2.5}], "name": "t"}},
        {"file": {"filename": "a.txt", "file_data": "QW5u"}},
    ],
    "policy": "strict",
    "strictness": "balanced",
}


def _bodies(bodies: Sequence[Any], more: Sequence[str] = ()) -> st.SearchStrategy[Any]:
    values = json_values([*keys_of(bodies), *more], WORDS)
    return almost_json(bodies, values)


def _written(body: Any) -> bytes:
    return json.dumps(body).encode()


def _requests(endpoint: Endpoint) -> st.SearchStrategy[tuple[Endpoint, bytes]]:
    whole = _bodies([BODIES[endpoint]]).map(_written)
    texts = almost([json.dumps(BODIES[endpoint])], JSON_TOKENS)
    broken = texts.map(lambda text: text.encode("utf-8", "surrogatepass"))
    return st.tuples(st.just(endpoint), whole | broken)


def _replies(endpoint: Endpoint) -> st.SearchStrategy[tuple[Endpoint, bytes]]:
    bodies = REPLIES[endpoint]
    broken = almost([json.dumps(body) for body in bodies], JSON_TOKENS)
    texts = broken.map(lambda text: text.encode("utf-8", "surrogatepass"))
    return st.tuples(st.just(endpoint), _bodies(bodies).map(_written) | texts)


def _event_lists(endpoint: Endpoint) -> st.SearchStrategy[tuple[Endpoint, list[Any]]]:
    events = st.lists(_bodies(REPLIES[endpoint]), max_size=6)
    return st.tuples(st.just(endpoint), events)


def _long_bodies(size: int) -> Mapping[str, tuple[Endpoint, bytes]]:
    """Requests of a size, by what is in them."""
    kinds: dict[str, Any] = {
        "one message": {"messages": [{"role": "user", "content": "Why? " * (size // 5)}]},
        "messages": {"messages": [{"role": "user", "content": "Why?"}] * (size // 38)},
        "tools": {
            "messages": [{"role": "tool", "tool_call_id": "c", "content": "a"}] * (size // 57)
        },
        "evidence": {"guardrail": {"evidence": ["A fact."] * (size // 11)}},
        "marks": {"messages": [{"role": "user", "content": "<c>" * (size // 3)}]},
        "marks closed": {"messages": [{"role": "user", "content": "<c>a</c>" * (size // 8)}]},
    }
    found = {name: (Endpoint.CHAT, _written(body)) for name, body in kinds.items()}
    texts = repeated(JSON_TOKENS, size)
    return found | {name: (Endpoint.CHAT, text.encode()) for name, text in texts.items()}


def _long_replies(size: int) -> Mapping[str, tuple[Endpoint, bytes]]:
    choice = {"index": 0, "message": {"role": "assistant", "content": ANSWER}}
    long = choice | {"message": {"role": "assistant", "content": f"{ANSWER} " * (size // 32)}}
    kinds: dict[str, Any] = {
        "choices": {"choices": [choice] * (size // 85)},
        "one answer": {"choices": [long]},
        "no answer": {"choices": [{"index": 0, "message": {"content": " " * size}}]},
    }
    found = {name: (Endpoint.CHAT, _written(body)) for name, body in kinds.items()}
    texts = repeated(JSON_TOKENS, size)
    return found | {name: (Endpoint.CHAT, text.encode()) for name, text in texts.items()}


def _long_events(size: int) -> Mapping[str, tuple[Endpoint, list[Any]]]:
    def event(text: str) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": {"content": text}}]}

    return {
        f"deltas of {text[:9]!r}": (Endpoint.CHAT, [event(text)] * (size // (60 + len(text))))
        for text in (" ", "[", f"{ANSWER} ", "- ", "```\n", "word ")
    }


def _long_arguments(size: int) -> Mapping[str, Any]:
    short = {"question": QUESTION, "answer": ANSWER}
    return {
        "answer": short | {"answer": "It is so. " * (size // 10)},
        "evidence": short | {"evidence": ["A fact."] * (size // 11)},
        "question": short | {"question": "Why? " * (size // 5)},
    }


def _long_calls(size: int) -> Mapping[str, tuple[str, Any]]:
    found = {}
    for name, bodies in HOSTS.items():
        text = json.dumps(bodies[0]).replace(QUESTION, f"{QUESTION} " * (size // len(QUESTION)))
        found[f"{name} question"] = (name, json.loads(text))
        text = json.dumps(bodies[0]).replace(EVIDENCE[0], f"{EVIDENCE[0]} " * (size // 31))
        found[f"{name} evidence"] = (name, json.loads(text))
    return found


EXCHANGES: dict[str, Target] = {
    "requests": Target(ENDPOINTS.flatmap(_requests), _request, _long_bodies),
    "replies": Target(ENDPOINTS.flatmap(_replies), _reply, _long_replies),
    "sse": Target(
        almost(["data: ä\n\nevent: x\r\ndata: b\rdata: c\n\n"], SSE_TOKENS),
        _decoded,
        lambda size: repeated(SSE_TOKENS, size),
    ),
    "streams": Target(ENDPOINTS.flatmap(_event_lists), _stream, _long_events),
    "hosts": Target(
        st.sampled_from(sorted(HOSTS)).flatmap(
            lambda name: st.tuples(st.just(name), _bodies(HOSTS[name]))
        ),
        _hosts,
        _long_calls,
    ),
    "mcp": Target(
        _bodies([ARGUMENTS]).filter(lambda body: isinstance(body, dict)), _tools, _long_arguments
    ),
    "mcp lines": Target(
        almost([json.dumps({"jsonrpc": "2.0", "id": 1, "params": ARGUMENTS})], JSON_TOKENS),
        _line,
        lambda size: repeated(JSON_TOKENS, size),
    ),
}
"""By name."""
