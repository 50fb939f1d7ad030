"""Reasoning within the content is left out, like that in fields of its own."""

import json

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableGenerator, RunnableLambda

from chains import GuardrailRunnable
from chains.openai_exchange import Endpoint, Exchange, Reply
from chains.openai_request import GuardSettings
from guardrail import ANNOTATE, STRICT, GuardrailConfig
from tests.chains.conftest import CANARY, QUESTION, TRUE_START, scripted_guard

THOUGHT = f"<think>\nPerhaps {CANARY}? Or 1999.\n</think>\n\n"
SAID = THOUGHT + TRUE_START
CHAT = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
RESPONSE = {"model": "m", "input": QUESTION}


@pytest.fixture(scope="module")
def guard():
    with scripted_guard(config=GuardrailConfig(policy=STRICT)) as guard:
        yield guard


def exchange(guard, endpoint, asked, policy=STRICT):
    return Exchange(GuardSettings(guard=guard, policy=policy), endpoint, asked)


def completion(text):
    message = {"role": "assistant", "content": text}
    return {"id": "1", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


def response(text):
    item = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": text}]}
    return {"id": "1", "status": "completed", "output": [item]}


@pytest.mark.parametrize(
    ("endpoint", "asked", "reply"),
    [
        (Endpoint.CHAT, CHAT, completion(SAID)),
        (Endpoint.CHAT, CHAT, completion(SAID.removeprefix("<think>"))),
        (Endpoint.RESPONSES, RESPONSE, response(SAID)),
    ],
)
@pytest.mark.parametrize("policy", [STRICT, ANNOTATE, ANNOTATE.changed(dry_run=True)])
async def test_of_whole_replies(guard, endpoint, asked, reply, policy):
    whole = exchange(guard, endpoint, asked, policy)
    guarded = await whole.judge(Reply(200, (), json.dumps(reply).encode()))
    (answer,) = guarded.answers
    assert answer.original == TRUE_START
    assert CANARY not in guarded.reply.body.decode()
    assert "think>" not in guarded.reply.body.decode()


async def test_a_reply_of_reasoning_alone_has_no_answer(guard):
    whole = exchange(guard, Endpoint.CHAT, CHAT)
    guarded = await whole.judge(Reply(200, (), json.dumps(completion(THOUGHT)).encode()))
    assert guarded.answers == ()
    assert CANARY not in guarded.reply.body.decode()


async def test_json_behind_reasoning_is_json(guard):
    asked = CHAT | {"response_format": {"type": "json_object"}}
    whole = exchange(guard, Endpoint.CHAT, asked)
    reply = completion(THOUGHT + '{"name": "Mary"}')
    guarded = await whole.judge(Reply(200, (), json.dumps(reply).encode()))
    body = json.loads(guarded.reply.body)
    assert body["choices"][0]["message"]["content"] == '{"name": "Mary"}'


def chat_events(pieces):
    for piece in pieces:
        yield {"choices": [{"index": 0, "delta": {"content": piece}}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def response_events(pieces):
    place = {"output_index": 0, "content_index": 0}
    for piece in pieces:
        yield {"type": "response.output_text.delta", **place, "delta": piece}
    yield {"type": "response.output_text.done", **place}
    yield {"type": "response.completed", "response": response(SAID)}


@pytest.mark.parametrize(
    ("endpoint", "asked", "events"),
    [(Endpoint.CHAT, CHAT, chat_events), (Endpoint.RESPONSES, RESPONSE, response_events)],
)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
async def test_of_streams_split_at_any_place(guard, endpoint, asked, events, size):
    stream = exchange(guard, endpoint, asked | {"stream": True}).stream()
    pieces = [SAID[at : at + size] for at in range(0, len(SAID), size)]
    out = b""
    for event in events(pieces):
        out += await stream.feed(f"data: {json.dumps(event)}\n\n".encode())
    shown = (out + await stream.finish()).decode()
    assert CANARY not in shown
    assert "think" not in shown
    assert [answer.original for answer in stream.answers] == [TRUE_START]


async def test_of_a_json_stream(guard):
    asked = CHAT | {"response_format": {"type": "json_object"}, "stream": True}
    stream = exchange(guard, Endpoint.CHAT, asked).stream()
    out = b""
    for event in chat_events([THOUGHT[:9], THOUGHT[9:], '{"name": ', '"Mary"}']):
        out += await stream.feed(f"data: {json.dumps(event)}\n\n".encode())
    shown = (out + await stream.finish()).decode()
    assert CANARY not in shown
    assert "Mary" in shown


@pytest.mark.parametrize("said", [SAID, AIMessage(SAID)])
def test_of_a_chain(guard, said):
    chain = GuardrailRunnable(guard, RunnableLambda(lambda question: said), policy=ANNOTATE)
    for guarded in (chain.invoke(QUESTION), *chain.batch([QUESTION])):
        assert CANARY not in str(guarded)
        assert "Mary Shelley" in str(guarded)


def test_of_a_chains_stream(guard):
    def words(_):
        for at in range(0, len(SAID), 4):
            yield AIMessageChunk(SAID[at : at + 4])

    chain = GuardrailRunnable(guard, RunnableGenerator(words), policy=ANNOTATE)
    shown = "".join(chunk.text for chunk in chain.stream(QUESTION))
    assert CANARY not in shown
    assert "think" not in shown
    assert "Mary Shelley" in shown
