"""The benchmark of corrections: what counts as right is read from the whole text that left."""

import pytest

from benchmarks.correction.errors import ErrorCase, domain_cases
from benchmarks.correction.measure import came, came_of, table
from guardrail import Guardrail, GuardrailConfig, Triple
from guardrail.core.types import (
    Action,
    Correction,
    GuardedAnswer,
    ScoreCard,
    Sentence,
    Span,
    SpanKind,
)

FACTS = (
    Triple("Fjell 3", "maker", "Brandt Cycles"),
    Triple("Fjell 3", "range", "110 km"),
    Triple("Fjell 3", "food", "English"),
)
WRONG, RIGHT = "Its maker is Volt.", "Its maker is Brandt."
BESIDE = "It goes 110 km far."
CASE = ErrorCase(
    set="made",
    kind="name",
    evidence=FACTS,
    question="",
    text=f"{WRONG} {BESIDE}",
    true=(f"{RIGHT} {BESIDE}",),
    start=13,
    broken=FACTS[0],
    wrong="Volt",
)


def released(*sentences: tuple[str, str | None, str | None]) -> GuardedAnswer:
    """An answer of sentences, each with what stood there and the words that were written."""
    text = " ".join(sentence for sentence, _, _ in sentences)
    made = []
    for sentence, original, words in sentences:
        start = text.index(sentence)
        place = start + sentence.index(words or "")
        span = Span(
            text=words or "", start=place, end=place + len(words or ""), kind=SpanKind.CORRECTED
        )
        made.append(
            Sentence(
                text=sentence,
                start=start,
                end=start + len(sentence),
                spans=(span,) if words else (),
                correction=Correction(original=original, by="edit") if original else None,
            )
        )
    return GuardedAnswer(
        id="a",
        question="",
        text=text,
        marked=text,
        action=Action.CORRECT,
        sentences=tuple(made),
        scorecard=ScoreCard.model_validate({"overall": {"value": 1.0}}),
    )


AS_IT_WAS = (BESIDE, None, None)


@pytest.mark.parametrize(
    ("sentences", "right", "carried"),
    [
        # As the text had it, and as the evidence writes it.
        ([("Its maker is Brandt.", WRONG, "Brandt"), AS_IT_WAS], True, True),
        ([("Its maker is Brandt Cycles.", WRONG, "Brandt Cycles"), AS_IT_WAS], True, True),
        # What stood beside the error is gone, or reads otherwise.
        ([("Its maker is Brandt Cycles.", WRONG, "Brandt Cycles")], False, True),
        (
            [("Its maker is Brandt Cycles.", WRONG, "Brandt Cycles"), ("It goes far.", None, None)],
            False,
            True,
        ),
        ([("Its maker is Brandt Cycles Cycles.", WRONG, "Brandt Cycles"), AS_IT_WAS], False, True),
        # A true sentence was changed as well, to what is no value of the maker.
        (
            [
                ("Its maker is Brandt Cycles.", WRONG, "Brandt Cycles"),
                ("It goes English far.", BESIDE, "English"),
            ],
            False,
            False,
        ),
        # The wrong value of the wrong fact.
        ([("Its maker is English.", WRONG, "English"), AS_IT_WAS], False, False),
    ],
)
def test_right_is_what_leaves_all_else_as_it_was(sentences, right, carried):
    found = came(CASE, released(*sentences))
    assert len(found.corrected) == 1
    assert (found.right, found.carried) == (right, carried)


def test_the_projects_own_cases_are_mended_to_what_they_told():
    cases = [case for case in domain_cases() if case.set == "hotel"]
    with Guardrail(GuardrailConfig()) as guard:
        errors = came_of(guard, [case for case in cases if case.kind])
        kept = came_of(guard, [case for case in cases if not case.kind])
    assert sum(bool(item.corrected) for item in errors) >= 8
    assert all(item.right for item in errors if item.corrected)
    assert not any(item.changed for item in kept)
    assert table(errors, kept).splitlines()[-1].startswith("True sentences changed: 0 of ")
