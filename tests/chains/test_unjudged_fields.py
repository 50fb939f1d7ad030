"""No field that only a model's server fills carries text past the judge."""

import json

import pytest

from chains.caller import wants_json
from chains.openai_asked import Asked
from chains.openai_exchange import Endpoint, Exchange, Reply
from chains.openai_response_stream import ResponseStream
from chains.openai_sse import Event
from chains.openai_text import Guarding
from guardrail import STRICT, GuardrailConfig
from tests.chains.conftest import CANARY, QUESTION, scripted_guard

TRUE = "Mary Wollstonecraft was a writer."
CHATS = {
    "alternatives to tokens": {
        "logprobs": {
            "content": [
                {
                    "token": TRUE,
                    "logprob": -0.1,
                    "bytes": list(CANARY.encode()),
                    "top_logprobs": [{"token": CANARY, "logprob": -0.2}],
                }
            ],
            "refusal": [{"token": CANARY, "logprob": 0.0}],
        },
        "message": {"role": "assistant", "content": TRUE},
    },
    "tokens of another text": {
        "logprobs": {"content": [{"token": CANARY, "logprob": 0.0}]},
        "message": {"role": "assistant", "content": TRUE},
    },
    "annotations beside nothing": {
        "message": {"role": "assistant", "content": "", "annotations": [{"text": CANARY}]},
    },
    "a refusal beside an answer": {
        "message": {"role": "assistant", "content": TRUE, "refusal": f"Is it? {CANARY}"},
    },
    "fields of no protocol": {
        "message": {"role": "assistant", "content": TRUE, "reasoning": CANARY},
        "note": CANARY,
    },
}
MESSAGE = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "content": [
        {
            "type": "output_text",
            "text": TRUE,
            "annotations": [{"title": CANARY}],
            "logprobs": [{"token": TRUE, "logprob": 0.0, "top_logprobs": [{"token": CANARY}]}],
        }
    ],
}
ITEMS = {
    "a tool of a server": {"type": "mcp_call", "id": "t", "name": "look", "output": CANARY},
    "a failed one": {"type": "mcp_call", "id": "t", "name": "look", "error": CANARY},
    "code that printed": {
        "type": "code_interpreter_call",
        "id": "c",
        "outputs": [{"type": "logs", "logs": CANARY}],
    },
    "a shell": {"type": "shell_call_output", "id": "s", "output": [{"stdout": CANARY}]},
    "a search": {"type": "file_search_call", "id": "f", "results": [{"text": CANARY}]},
    "reasoning": {"type": "reasoning", "id": "r", "summary": [{"text": CANARY}]},
}


@pytest.fixture(scope="module")
def guarding():
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        yield Guarding(guard=guard, policy=STRICT)


async def judged(guarding, endpoint, asked, reply):
    exchange = Exchange(guarding, endpoint, asked)
    return (await exchange.judge(Reply(200, (), json.dumps(reply).encode()))).reply.body.decode()


@pytest.mark.parametrize("choice", CHATS.values(), ids=CHATS)
async def test_of_chat_completions(guarding, choice):
    asked = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    reply = {
        "id": "1",
        "object": "chat.completion",
        "metadata": {"note": CANARY},
        "choices": [{"index": 0, "finish_reason": "stop", **choice}],
    }
    told = await judged(guarding, Endpoint.CHAT, asked, reply)
    assert CANARY not in told
    assert (TRUE in told) == bool(choice["message"]["content"])


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
async def test_of_responses(guarding, item):
    asked = {"model": "m", "input": QUESTION}
    reply = {
        "id": "1",
        "object": "response",
        "status": "incomplete",
        "incomplete_details": {"reason": CANARY},
        "metadata": {"note": CANARY},
        "output": [item, MESSAGE],
    }
    told = await judged(guarding, Endpoint.RESPONSES, asked, reply)
    assert CANARY not in told
    assert TRUE in told


@pytest.mark.parametrize("tools", [None, [{"type": "file_search", "vector_store_ids": ["v"]}]])
async def test_a_search_is_evidence_only_where_it_was_asked_for(guarding, tools):
    found = "Mary Wollstonecraft kept a red parrot."
    asked = {"model": "m", "input": QUESTION} | ({"tools": tools} if tools else {})
    search = {"type": "file_search_call", "id": "f", "results": [{"text": found, "score": 0.9}]}
    message = {**MESSAGE, "content": [{"type": "output_text", "text": found, "annotations": []}]}
    told = await judged(
        guarding, Endpoint.RESPONSES, asked, {"id": "1", "output": [search, message]}
    )
    [answer] = json.loads(told)["output"][1:]
    assert ("red parrot" in answer["content"][0]["text"]) == bool(tools)


@pytest.mark.parametrize("index", [[], "x", None, -1, 1.5, {}])
async def test_places_of_another_type_are_no_fault(guarding, index):
    asked = Asked(guarding, {"model": "m", "input": QUESTION}, responses=True)
    stream = ResponseStream(asked)
    data = {"type": "response.output_text.delta", "output_index": index, "delta": TRUE}
    await stream.feed(Event.of(data, "response.output_text.delta"))


@pytest.mark.parametrize("kind", [[], {}, None, 3])
def test_a_format_of_another_type_asks_for_no_json(kind):
    assert not wants_json({"response_format": {"type": kind}})
    assert not wants_json({"text": {"format": {"type": kind}}})
