"""What a sentence says of its subjects, and which of it nothing speaks of."""

import pytest

from guardrail import Guardrail
from guardrail.phrases import parse
from guardrail.predicates import predicates_of
from guardrail.types import Category, SpanKind, Triple

ADA = "Ada Byron"
EVIDENCE = (
    Triple(subject=ADA, subject_id="Q1", property="occupation", value="writer"),
    Triple(subject=ADA, subject_id="Q1", property="father", value="John Byron"),
    Triple(subject=ADA, subject_id="Q1", property="place of birth", value="London"),
)


def words(text: str) -> list[str]:
    (doc,) = parse([text])
    return [
        " ".join(text[start:end] for start, end in predicate)
        for predicate in predicates_of(doc, 0, len(text))
    ]


def test_each_finite_verb_has_a_predicate_without_its_subject() -> None:
    assert words("Her parents wrote novels and had a large house.") == [
        "wrote novels and .",
        "had a large house",
    ]


def test_one_more_thing_that_somebody_is_stands_alone() -> None:
    assert "dancer" in words("She was a writer and dancer.")


def test_one_more_thing_that_somebody_does_stands_alone() -> None:
    assert "the violin" in words("He played the organ and the violin")


def test_blank_text_has_none() -> None:
    assert words(" ") == []


@pytest.mark.parametrize(
    ("answer", "lacking"),
    [
        ("Ada Byron was born in London and had a large garden.", {"garden"}),
        ("Ada Byron was a writer and a talented dancer.", {"talented", "dancer"}),
        ("Ada Byron was a dancer born in London.", {"dancer"}),
        ("Ada Byron, a wealthy banker, was born in London.", {"wealthy", "banker"}),
    ],
)
def test_a_predicate_without_any_evidence_is_a_claim_of_its_own(
    guard: Guardrail, answer: str, lacking: set[str]
) -> None:
    (sentence,) = guard.check(
        question=f"Who was {ADA}?", answer=answer, evidence=EVIDENCE
    ).sentences
    assert sentence.category is Category.PARTIALLY_SUPPORTIVE
    assert {span.text for span in sentence.spans if span.kind is SpanKind.NA} == lacking
    assert sentence.citations


@pytest.mark.parametrize(
    "answer",
    [
        "Ada Byron was a writer and was born in London.",
        "Ada Byron was born in London and was the daughter of John Byron.",
    ],
)
def test_supported_predicates_are_not_doubted(guard: Guardrail, answer: str) -> None:
    (sentence,) = guard.check(
        question=f"Who was {ADA}?", answer=answer, evidence=EVIDENCE
    ).sentences
    assert sentence.category is Category.SUPPORTIVE
    assert not sentence.na
