"""Events of a hostile server: text beside an error stays here, values of odd kinds are no fault."""

import json

import pytest

from chains.openai_exchange import Endpoint, Exchange
from chains.openai_text import Guarding
from guardrail import STRICT
from tests.chains.conftest import QUESTION

HIDDEN = "zephyrcanary"
ASKED = {
    Endpoint.CHAT: {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": QUESTION}],
    },
    Endpoint.RESPONSES: {"model": "m", "stream": True, "input": QUESTION},
}


async def left(guard, endpoint, *events):
    """What leaves of a stream."""
    stream = Exchange(Guarding(guard=guard, policy=STRICT), endpoint, ASKED[endpoint]).stream()
    out = b""
    for event in events:
        out += await stream.feed(f"data: {json.dumps(event)}\n\n".encode())
    return (out + await stream.finish()).decode()


@pytest.mark.parametrize("endpoint", Endpoint)
async def test_what_stands_beside_an_error_stays_here(guard, endpoint):
    hidden = {"type": "response.output_text.delta", "delta": HIDDEN, "output": HIDDEN}
    shown = await left(guard, endpoint, hidden | {"error": {"message": "busy"}})
    assert "busy" in shown
    assert HIDDEN not in shown


async def test_an_error_of_null_is_none(guard):
    delta = {"index": 0, "delta": {"content": "Mary Shelley was a writer. "}}
    shown = await left(guard, Endpoint.CHAT, {"error": None, "choices": [delta]})
    assert "writer" in shown


@pytest.mark.parametrize("odd", [[[]], 3, "x", None])
async def test_values_of_another_kind_are_no_fault(guard, odd):
    for kind, field in (
        ("response.created", "response"),
        ("response.completed", "response"),
        ("response.content_part.added", "part"),
        ("response.output_item.added", "item"),
    ):
        await left(guard, Endpoint.RESPONSES, {"type": kind, field: odd})
