"""Reasoning within the content is left out, like that in fields of its own."""

import json

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from chains import GuardrailRunnable
from guardrail import ANNOTATE, STRICT
from tests.chains.conftest import CANARY, QUESTION
from tests.chains.exchanges import (
    CHAT,
    JSON_FORMAT,
    RESPONSES,
    TRUE,
    completion,
    events_of,
    guarded,
    pieces_of,
    reply_of,
)
from tests.chains.models import model, run

THOUGHT = f"<think>\nPerhaps {CANARY}? Or 1999.\n</think>\n\n"
SAID = THOUGHT + TRUE
DATA = '{"name": "Mary"}'


def assert_hidden(left):
    assert CANARY not in json.dumps(left)
    assert "think>" not in json.dumps(left)


@pytest.mark.parametrize(
    ("endpoint", "said"), [(CHAT, SAID), (CHAT, SAID.removeprefix("<think>")), (RESPONSES, SAID)]
)
@pytest.mark.parametrize("policy", [STRICT, ANNOTATE, ANNOTATE.changed(dry_run=True)])
async def test_of_whole_replies(guard, endpoint, said, policy):
    body, (answer,) = await guarded(guard, endpoint, {}, reply_of(endpoint, said), policy=policy)
    assert answer.original == TRUE
    assert_hidden(body)


async def test_json_after_reasoning_is_json(guard):
    body, answers = await guarded(guard, CHAT, {}, completion(THOUGHT))
    assert answers == ()  # reasoning alone is no answer
    assert_hidden(body)
    body, _ = await guarded(guard, CHAT, JSON_FORMAT[CHAT], completion(THOUGHT + DATA))
    assert body["choices"][0]["message"]["content"] == DATA
    pieces = pieces_of(CHAT, THOUGHT[:9], THOUGHT[9:], DATA[:5], DATA[5:])
    left, _ = await events_of(guard, CHAT, JSON_FORMAT[CHAT], *pieces)
    assert_hidden(left)
    assert "Mary" in str(left)


@pytest.mark.parametrize("endpoint", [CHAT, RESPONSES])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
async def test_of_streams_split_at_any_place(guard, endpoint, size):
    pieces = [SAID[at : at + size] for at in range(0, len(SAID), size)]
    left, stream = await events_of(guard, endpoint, {}, *pieces_of(endpoint, *pieces))
    assert_hidden(left)
    assert [answer.original for answer in stream.answers] == [TRUE]


@pytest.mark.parametrize("said", [SAID, AIMessage(SAID)])
@pytest.mark.parametrize("way", ["invoke", "batch", "stream"])
async def test_of_a_chain(guard, said, way):
    bound = model(said) if way == "stream" else RunnableLambda(lambda question: said)
    left = str(await run(GuardrailRunnable(guard, bound, policy=ANNOTATE), QUESTION, way))
    assert CANARY not in left
    assert "Mary Shelley" in left
