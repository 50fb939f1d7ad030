"""Types that answers and judgements are made of."""

from __future__ import annotations

import pytest

from guardrail import Sentence, Verdict
from guardrail.core.types import Category, Effect, Finding, Grounding
from guardrail.core.types.judging import Weights, features_of


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


SAID = Grounding(supported=0.6, unsupported=0.3, contradicted=0.1, no_claim=0.0)


def found(effect, check="typed_values"):
    return Finding(check=check, effect=effect, start=0, end=4, because="it says so")


def test_without_findings_the_judge_s_own_word_stands():
    weighed = Weights().weigh(features_of(SAID, []))
    assert weighed.support == pytest.approx(0.6)
    assert weighed.contradiction == pytest.approx(0.1)


def test_the_parts_are_what_each_feature_adds():
    features = features_of(SAID, [found(Effect.CONTRADICTS)])
    parts = {part.name: part for part in Weights().parts(features)}
    assert set(parts) == {"support", "contradiction", "contradicts"}
    assert parts["contradicts"].support == -4.0
    assert parts["contradicts"].contradiction == 5.0


def test_a_probability_of_one_has_finite_log_odds():
    sure = Grounding(supported=1.0, unsupported=0.0, contradicted=0.0, no_claim=0.0)
    weighed = Weights().weigh(features_of(sure, []))
    assert 0.999 < weighed.support < 1.0
