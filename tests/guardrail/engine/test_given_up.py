"""Work that nobody waits for any more ends at the next look, not at its own end."""

import asyncio
import json
import threading
import time

import httpx
import pytest
from openai import AsyncOpenAI

from chains import guard_openai
from chains.gateway import GatewaySettings, create_app
from guardrail import ANNOTATE, Guardrail, GuardrailConfig
from guardrail.core.workers import GivenUpError, Workers, stop_if_given_up
from guardrail.verdict.grounder import SENTENCES_AT_ONCE
from tests.chains.scripted import ScriptedJudge
from tests.clock import PATIENCE_S

SENTENCES = 6 * SENTENCES_AT_ONCE
SECONDS = 3.0  # in which even a busy machine has come to the judge
ANSWER = " ".join(f"The bridge number {number} was opened." for number in range(SENTENCES))
ASKED = {"question": "", "answer": ANSWER, "passages": ["The bridge was opened."]}


class HeldJudge(ScriptedJudge):
    """Holds the first lot until it is let go, and counts what it was asked."""

    def __init__(self):
        self.asked = 0
        self.begun, self.let_go = threading.Event(), threading.Event()

    def ground(self, items):
        self.asked += len(items)
        self.begun.set()
        assert self.let_go.wait(PATIENCE_S)
        return super().ground(items)


@pytest.fixture
def judge():
    judge = HeldJudge()
    yield judge
    judge.let_go.set()


@pytest.fixture
def guard(judge):
    with Guardrail(GuardrailConfig(graph={"location": "none"}), grounding=judge) as guard:
        yield guard


async def asked_in_all(judge):
    """How many sentences the judge was asked about once the lot that it holds is let go."""
    judge.let_go.set()
    before = -1
    while before != judge.asked:
        before = judge.asked
        await asyncio.sleep(0.6)
    return before


async def test_after_a_504_the_judge_is_left_alone(guard, judge):
    app = create_app(guard, GatewaySettings(timeout_s=SECONDS))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        reply = await client.post("/v1/checks", json=ASKED)
    assert reply.status_code == 504
    assert 0 < await asked_in_all(judge) < SENTENCES


async def test_after_a_deadline_the_judge_is_left_alone(guard, judge):
    answer = await guard.acheck(
        question="", answer=ANSWER, policy=ANNOTATE.changed(deadline_s=SECONDS)
    )
    assert "deadline" in [problem.part for problem in answer.errors]
    assert 0 < await asked_in_all(judge) < SENTENCES


@pytest.mark.parametrize("stream", [False, True])
async def test_a_guarded_client_whose_caller_went_leaves_the_judge_alone(guard, judge, stream):
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "finish_reason": "stop"}
    body = {"choices": [choice | {"delta" if stream else "message": message}]}
    events = f"data: {json.dumps(body)}\n\ndata: [DONE]\n\n"

    def reply(request):
        kind = {"content-type": "text/event-stream"}
        return (
            httpx.Response(200, headers=kind, text=events)
            if stream
            else httpx.Response(200, json=body)
        )

    inner = httpx.AsyncClient(transport=httpx.MockTransport(reply))
    client = guard_openai(AsyncOpenAI(api_key="k", http_client=inner), guard)

    async def ask():
        asked = [{"role": "user", "content": "Which bridges were opened?"}]
        extra = {"guardrail": {"evidence": ASKED["passages"]}}
        given = {"model": "m", "messages": asked, "stream": stream, "extra_body": extra}
        reply = await client.chat.completions.create(**given)
        return [chunk async for chunk in reply] if stream else reply

    task = asyncio.ensure_future(ask())
    assert await asyncio.to_thread(judge.begun.wait, PATIENCE_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 0 < await asked_in_all(judge) < SENTENCES


async def test_a_call_that_was_given_up_sees_it():
    workers, begun, seen = Workers(1, 1), threading.Event(), threading.Event()

    def work():
        begun.set()
        while True:
            time.sleep(0.01)
            try:
                stop_if_given_up()
            except GivenUpError:
                seen.set()
                raise

    task = asyncio.ensure_future(workers.run(work))
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    assert not seen.is_set()
    task.cancel()
    assert await asyncio.to_thread(seen.wait, PATIENCE_S)
    stop_if_given_up()  # of this context nothing was given up
    workers.close()
