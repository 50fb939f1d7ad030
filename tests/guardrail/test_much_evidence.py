"""Much evidence is read beside the event loop, and once for the answers of a ranking."""

import threading

import pytest

from guardrail import Guardrail, GuardrailConfig, Triple
from guardrail.guard import AT_ONCE

ANSWERS = ["The Fjell 3 costs 40 euros.", "The Fjell 3 costs 50 euros.", "It is green."]


class Watched(Triple):
    """Tells which threads read it, and how often."""

    @property
    def text(self) -> str:
        threads.append(threading.current_thread())
        return super().text


threads: list[threading.Thread] = []


@pytest.fixture
def guard():
    threads.clear()
    with Guardrail(GuardrailConfig(graph={"location": "none"}, judge="none")) as guard:
        yield guard


def facts(count):
    rest = [Triple("Fjell 3", f"part {number}", "steel") for number in range(count - 1)]
    return [Watched("Fjell 3", "price", "40 euros"), *rest]


async def test_it_is_read_beside_the_event_loop(guard):
    answer = await guard.acheck("Price?", ANSWERS[0], evidence=facts(AT_ONCE + 1))
    assert answer.sentences[0].category == "supportive"
    await guard.arank("Price?", ANSWERS, evidence=facts(AT_ONCE + 1))
    assert threads
    assert threading.current_thread() not in threads


async def test_it_is_read_once_for_the_answers_of_a_ranking(guard):
    await guard.arank("Price?", ANSWERS, evidence=facts(10))
    # What the parts read of it they read on threads of their own.
    assert threads.count(threading.current_thread()) == 1
