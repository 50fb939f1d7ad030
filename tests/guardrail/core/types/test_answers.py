"""One verdict a sentence; category, ``na`` and judgement follow from it."""

import pytest

from guardrail import Sentence, Verdict
from guardrail.core.types import Category


def sentence(**fields: object) -> Sentence:
    return Sentence(text="It is red.", start=0, end=10, **fields)


@pytest.mark.parametrize(
    ("verdict", "partial", "category", "na"),
    [
        (Verdict.SUPPORTED, False, Category.SUPPORTIVE, False),
        (Verdict.UNSUPPORTED, False, Category.IRRELEVANT, True),
        (Verdict.UNSUPPORTED, True, Category.PARTIALLY_SUPPORTIVE, True),
        (Verdict.CONTRADICTED, False, Category.CONTRADICTORY, False),
        (Verdict.NO_CLAIM, False, None, False),
        (Verdict.NOT_CHECKED, False, Category.IRRELEVANT, True),
    ],
)
def test_category_and_na_follow_from_the_verdict(
    verdict: Verdict, partial: bool, category: Category | None, na: bool
) -> None:
    one = sentence(verdict=verdict, partial=partial)
    assert (one.category, one.na) == (category, na)
    assert Sentence.model_validate_json(one.model_dump_json()) == one


def test_the_judgement_has_the_probabilities_of_the_verdict() -> None:
    one = sentence(verdict=Verdict.CONTRADICTED, support=0.1, contradiction=0.8)
    assert one.judgement is not None
    assert one.judgement.category is Category.CONTRADICTORY
    assert one.judgement.scores[Category.SUPPORTIVE] == one.support
    assert one.judgement.scores[Category.CONTRADICTORY] == one.contradiction
    assert sum(one.judgement.scores.values()) == pytest.approx(1.0)


def test_a_sentence_of_an_earlier_release_is_read_by_its_category() -> None:
    written = {"text": "It is red.", "start": 0, "end": 10, "na": True}
    one = Sentence.model_validate({**written, "category": "partially_supportive"})
    assert (one.verdict, one.partial) == (Verdict.UNSUPPORTED, True)


def test_what_nobody_judged_never_looks_clean() -> None:
    one = Sentence.not_judged("It is red.", 0, 10)
    assert (one.verdict, one.na, one.judgement) == (Verdict.NOT_CHECKED, True, None)
