"""The event loop hands work over and waits: it is free for other callers meanwhile."""

import json
import threading
import time
from collections.abc import Awaitable, Callable
from types import ModuleType

import pytest

from chains import streaming
from chains.evidence.base import Case
from chains.gateway.protocols.litellm import LiteLLMGuardrail
from chains.openai_exchange import Endpoint, Exchange, Reply
from chains.openai_text import Guarding
from chains.streaming import SentenceGate
from guardrail import ANNOTATE, Guardrail, GuardrailConfig
from guardrail.core.types import Action
from guardrail.engine import flow, session
from tests.chains.conftest import FACTS, QUESTION

SENTENCES = (
    "Mary Shelley was a writer. She was born on 4 May 1999. "
    "Her mother was Mary Wollstonecraft [Q47152, mother: Mary Wollstonecraft]. "
)
LONG = SENTENCES * (8 * 1024 // len(SENTENCES))
FILTERING = ANNOTATE.changed(contradicted=Action.FILTER, unsupported=Action.FILTER)
MOST = 0.04
"""Share of a long answer's processor time that the loop's own thread may take; 0.06 to 0.13 before
the loop handed it over."""

Work = Callable[[Guardrail], Awaitable[object]]


async def checked(guard: Guardrail) -> None:
    answer = await guard.acheck(QUESTION, LONG, evidence=FACTS, policy=FILTERING)
    assert answer.action is Action.FILTER


async def completed(guard: Guardrail) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": LONG}}
    exchange = Exchange(
        Guarding(guard=guard, policy=ANNOTATE),
        Endpoint.CHAT,
        {"messages": [{"role": "user", "content": QUESTION}]},
    )
    guarded = await exchange.judge(Reply(200, (), json.dumps({"choices": [choice]}).encode()))
    assert b"[NA]" in guarded.reply.body


async def responded(guard: Guardrail) -> None:
    part = {"type": "output_text", "text": LONG}
    item = {"type": "message", "role": "assistant", "content": [part]}
    exchange = Exchange(
        Guarding(guard=guard, policy=ANNOTATE), Endpoint.RESPONSES, {"input": QUESTION}
    )
    guarded = await exchange.judge(Reply(200, (), json.dumps({"output": [item]}).encode()))
    assert b"[NA]" in guarded.reply.body


async def asked_by_litellm(guard: Guardrail) -> None:
    protocol = LiteLLMGuardrail(Guarding(guard=guard, policy=ANNOTATE))
    reply, _ = await protocol({"input_type": "response", "texts": [LONG]})
    assert "[NA]" in str(reply)


@pytest.mark.parametrize("work", [checked, completed, responded, asked_by_litellm])
async def test_a_long_answer_is_worked_on_elsewhere(work: Work) -> None:
    with Guardrail(GuardrailConfig(judge="none"), retriever=lambda question: FACTS) as guard:
        await work(guard)  # loads
        shares = []
        for _ in range(5):  # what a busy machine does between two of the loop's steps only adds
            of_loop, of_all = time.thread_time(), time.process_time()
            await work(guard)
            of_loop, of_all = time.thread_time() - of_loop, time.process_time() - of_all
            shares.append(of_loop / of_all)
    assert min(shares) < MOST


async def test_a_streamed_sentence_is_worked_on_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, set[int]] = {}

    def noted(module: ModuleType, name: str) -> None:
        function = getattr(module, name)

        def call(*given: object, **named: object) -> object:
            threads.setdefault(name, set()).add(threading.get_ident())
            return function(*given, **named)

        monkeypatch.setattr(module, name, call)

    noted(streaming, "render_sentences")
    noted(session, "parse")
    noted(session, "marked_text")
    noted(flow, "decide")
    with Guardrail(GuardrailConfig(judge="none")) as guard:
        gate = SentenceGate(guard, Case(QUESTION, tuple(FACTS)), policy=ANNOTATE)
        for start in range(0, len(SENTENCES), 8):
            await gate.feed(SENTENCES[start : start + 8])
        assert (await gate.finish()).answer is not None
    assert set(threads) == {"render_sentences", "parse", "marked_text", "decide"}
    assert not any(threading.get_ident() in found for found in threads.values())
