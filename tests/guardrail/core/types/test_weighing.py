"""A judge's word and findings make one probability each of support and contradiction."""

import pytest

from guardrail.core.types import Effect, Finding, Grounding
from guardrail.core.types.judging import Weighing, Weights, features_of

SAID = Grounding(supported=0.6, unsupported=0.3, contradicted=0.1, no_claim=0.0)


def found(effect, check="typed_values"):
    return Finding(check=check, effect=effect, start=0, end=4, because="it says so")


def test_without_findings_the_judge_s_own_word_stands():
    weighed = Weights().weigh(features_of(SAID, []))
    assert weighed.support == pytest.approx(0.6)
    assert weighed.contradiction == pytest.approx(0.1)


@pytest.mark.parametrize("effect", [Effect.MISSING, Effect.CONTRADICTS])
def test_what_speaks_against_a_sentence_lowers_its_support(effect):
    assert Weights().weigh(features_of(SAID, [found(effect)])).support < 0.2


def test_what_carries_it_raises_support_and_lowers_contradiction():
    weighed = Weights().weigh(features_of(SAID, [found(Effect.CARRIES)]))
    assert weighed.support > 0.6
    assert weighed.contradiction < 0.1


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


def test_what_agrees_supports_where_it_is_a_triple_and_speaks_against_contradiction_in_prose_too():
    bare = Weights().weigh(features_of(SAID, []))
    features = features_of(SAID, [found(Effect.CARRIES)])
    triples, prose = Weighing().triples.weigh(features), Weighing().passages.weigh(features)
    assert triples.support > prose.support == bare.support
    assert triples.contradiction == prose.contradiction < bare.contradiction
