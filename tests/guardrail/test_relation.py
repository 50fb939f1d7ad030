"""A triple whose relation the judge does not find in a sentence is not cited."""

from collections.abc import Sequence

import pytest

from guardrail.attribution import AttributionRequest, Attributor
from guardrail.markers.grammar import parse
from guardrail.support import Thresholds
from guardrail.types import NLIScores, Triple
from judges.base import Pair
from tests.guardrail.test_attribution import Credulous

FOUNDER = Triple(subject="Acme", property="founded by", value="Ida Voss")


class Telling(Credulous):
    """A back end that finds everything entailed, and tells how surely the relation is stated."""

    def __init__(self, stated: float) -> None:
        self._stated = stated

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        told = {"stated": self._stated}
        return [one.model_copy(update=told) for one in super().judge(pairs)]


def cited(text: str, stated: float, limits: Thresholds | None = None) -> bool:
    request = AttributionRequest("", parse(text, (FOUNDER,)), (FOUNDER,))
    (attributed,), _ = Attributor(Telling(stated), None, limits).attribute([request])
    return bool(attributed.sentences[0].citations)


@pytest.mark.parametrize(("stated", "kept"), [(0.9, True), (0.1, False)])
def test_a_relation_told_in_no_word_of_its_own_has_to_be_stated(stated: float, kept: bool) -> None:
    assert cited("Ida Voss is behind Acme.", stated) is kept


def test_a_word_for_the_property_needs_no_head() -> None:
    assert cited("Acme was founded by Ida Voss.", 0.1)


def test_the_threshold_can_be_set() -> None:
    assert cited("Ida Voss is behind Acme.", 0.1, Thresholds(stated=0.0))
