"""The event loop hands work over and waits: it is free for other callers meanwhile."""

import sys

import pytest

from chains.gateway.protocols import LiteLLMGuardrail
from chains.openai_request import GuardSettings
from guardrail import ANNOTATE, Guardrail, GuardrailConfig
from guardrail.core.types import Action
from tests.chains.conftest import FACTS, QUESTION
from tests.chains.exchanges import CHAT, RESPONSES, completion, judged, response

SENTENCES = (
    "Mary Shelley was a writer. She was born on 4 May 1999. "
    "Her mother was Mary Wollstonecraft [Q47152, mother: Mary Wollstonecraft]. "
)
TIMES = 40
FILTERING = ANNOTATE.changed(contradicted=Action.FILTER, unsupported=Action.FILTER)
MOST = 60
"""Calls of a sentence more on the loop's own thread: the trace tells of it there in 44 to 50, its
parsing would add 30, and all that is done for it 2,000."""


async def checked(guard, text):
    answer = await guard.acheck(QUESTION, text, evidence=FACTS, policy=FILTERING)
    assert answer.action is Action.FILTER


async def completed(guard, text):
    assert "[NA]" in await judged(guard, CHAT, {}, completion(text), policy=ANNOTATE)


async def responded(guard, text):
    assert "[NA]" in await judged(guard, RESPONSES, {}, response(text), policy=ANNOTATE)


async def asked_by_litellm(guard, text):
    guarding = GuardSettings(guard=guard, policy=ANNOTATE)
    reply, _ = await LiteLLMGuardrail()({"input_type": "response", "texts": [text]}, guarding)
    assert "[NA]" in str(reply)


async def calls_of_loop(work, guard, text):
    """How many functions run on the loop's own thread while an answer is worked on."""
    events = []
    sys.setprofile(lambda frame, event, _: events.append(event))
    try:
        await work(guard, text)
    finally:
        sys.setprofile(None)
    return events.count("call") + events.count("c_call")


@pytest.mark.parametrize("work", [checked, completed, responded, asked_by_litellm])
async def test_a_long_answer_is_worked_on_elsewhere(work):
    with Guardrail(GuardrailConfig(judge="none"), retriever=lambda question: FACTS) as guard:
        await work(guard, SENTENCES)  # loads
        short = await calls_of_loop(work, guard, SENTENCES)
        long = await calls_of_loop(work, guard, SENTENCES * TIMES)
    assert (long - short) / (3 * (TIMES - 1)) < MOST
