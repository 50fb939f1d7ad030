"""The question at the end of a conversation, made to stand on its own."""

import pytest

from chains.conversation import Turn, standalone_question
from guardrail import Triple
from guardrail.core.types import Effect
from tests.chains.conftest import scripted_guard
from tests.growth import is_linear


def talk(*texts: str) -> list[Turn]:
    """Alternating user and assistant turns, the user first."""
    return [Turn("user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(texts)]


@pytest.mark.parametrize("follow_up", ["And his father?", "Where was she born?", "Why?"])
def test_a_follow_up_brings_what_it_leans_on(follow_up):
    turns = talk("Who was Mary Shelley?", "A writer.", follow_up)
    assert standalone_question(turns) == f"Who was Mary Shelley? A writer. {follow_up}"
    alone = talk("Who was Ada Lovelace?", "A mathematician.", "Where was Mary Shelley born?")
    assert standalone_question(alone) == "Where was Mary Shelley born?"


def test_the_budget_cuts_history_and_never_the_question():
    turns = talk("Tell me of Rome.", "A city.", "Who was Mary Shelley?", "A writer.", "Her mother?")
    assert "Rome" not in standalone_question(turns)  # before a turn that stands alone
    turns = talk("Who was Mary Shelley?", "word " * 500, "When did she die?")
    question = standalone_question(turns, max_words=20)
    assert question.endswith("When did she die?")
    assert len(question.split()) <= 20


def test_system_and_tool_turns_are_passed_over():
    turns = [Turn("system", "Be brief."), *talk("Why did he leave?"), Turn("tool", "{}")]
    assert standalone_question(turns) == "Why did he leave?"
    assert standalone_question(turns[:1]) == ""


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("The Fjell 3 costs 2,190 euros.", "The Fjell 3 costs ."),
        ("It was opened on 4 May 1999 by Ada Lovelace.", "It was opened on by Ada Lovelace."),
        ("The shop has fourteen branches, open at 9 am.", "The shop has branches, open at ."),
        ("The Fjell 3 and the Boeing 747-400 fly.", "The Fjell 3 and the Boeing 747-400 fly."),
    ],
)
def test_an_earlier_answer_adds_names_and_no_values_to_the_question(said, left):
    turns = talk("What of it, at 17 euros?", said, "And again?")
    assert standalone_question(turns) == f"What of it, at 17 euros? {left} And again?"


def test_a_number_does_not_become_supported_by_being_said_again():
    """A check tells of it whatever was said before, as it does of a first answer."""
    repeated = standalone_question(talk("How heavy is it?", "It weighs 23 kg.", "And again?"))
    evidence = [Triple("Fjell 3", "range", "110 km")]
    with scripted_guard() as guard:
        first, again = (
            guard.check(question, "As I said, it weighs 23 kg.", evidence=evidence).sentences[0]
            for question in ("How heavy is it?", repeated)
        )
    assert [(item.check, item.effect) for item in again.findings] == [
        ("typed_values", Effect.MISSING)
    ]
    assert again.support == first.support


@pytest.mark.parametrize("unit", ["The depot costs 12 euros. ", "Fjell 3 ", "1-", "a"])
def test_of_a_long_turn_the_beginning_is_read(unit):
    def question(said: str) -> str:
        return standalone_question(talk("What of it?", said, "And his father?"))

    assert is_linear(question, lambda n: unit * n, 3_000)
    assert len(question(unit * 100_000)) < 5_000
    assert "Ada had sons. " in question("Ada had 2 sons. " + unit * 100_000)
