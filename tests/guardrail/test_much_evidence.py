"""Large evidence is read outside the event loop, and once for all answers of a ranking."""

import threading

import pytest

from guardrail import Guardrail, GuardrailConfig, Passage, Triple
from guardrail.guard import ITEMS_ON_LOOP

ANSWERS = ["The Fjell 3 costs 40 euros.", "The Fjell 3 costs 50 euros.", "It is green."]


class Watched(Triple):
    """Records which threads read it, and how often."""

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


async def test_it_is_read_outside_the_event_loop(guard):
    answer = await guard.acheck("Price?", ANSWERS[0], evidence=facts(ITEMS_ON_LOOP + 1))
    assert answer.sentences[0].category == "supportive"
    await guard.arank("Price?", ANSWERS, evidence=facts(ITEMS_ON_LOOP + 1))
    assert threads
    assert threading.current_thread() not in threads


async def test_it_is_read_once_for_the_answers_of_a_ranking(guard):
    await guard.arank("Price?", ANSWERS, evidence=facts(10))
    # What the parts read of it they read on threads of their own.
    assert threads.count(threading.current_thread()) == 1


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_a_copied_sentence_of_a_long_document_is_supported_wherever_it_stands(place):
    models = [
        f"The Tarn {number} weighs {number % 30 + 10} kg and costs {number + 900:,} euros."
        for number in range(1_700)
    ]
    models.insert(int(place * len(models)), "The Fjell 3 costs 2,490 euros.")
    document = Passage("\n\n".join(models))
    assert len(document.text) > 80_000
    with Guardrail() as guard:
        answer = guard.check(
            "Price?",
            "The Fjell 3 costs 2,490 euros. The Fjell 3 costs 2,190 euros.",
            evidence=[document],
        )
    assert [item.category for item in answer.sentences] == ["supportive", "contradictory"]
