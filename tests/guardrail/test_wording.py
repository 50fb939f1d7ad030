"""How judges read triples: as the sentence writes names and figures, where they are the same."""

from collections.abc import Sequence

import pytest

from guardrail import Guardrail
from guardrail.types import Category, NLIScores, Triple
from judges.base import Pair
from tests.guardrail.test_attribution import Credulous, attribute


class Reader(Credulous):
    """A back end that keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        self.asked += [pair.hypothesis for pair in pairs]
        return super().judge(pairs)


@pytest.mark.parametrize(
    ("text", "value", "asked"),
    [
        ("Ada Roe studied at UCLA.", "University of California, Los Angeles", "UCLA"),
        ("Ada Roe joined the UN.", "United Nations", "UN"),
        ("Ada Roe voted for the United Nations, the UN.", "United Nations", "United Nations"),
        ("Ada Roe paid some 2.4 billion dollars.", "$2,410,000,000", "2.4 billion dollars"),
        ("Ada Roe paid €120.", "€120", "€120"),
        ("Ada Roe came in the early 1990s.", "1991", "early 1990s"),
        ("Ada Roe came on 3 May 1991.", "1991", "1991"),
    ],
)
def test_a_judge_reads_a_value_as_the_sentence_writes_it(text: str, value: str, asked: str) -> None:
    reader = Reader()
    attribute(text, (Triple(subject="Ada Roe", property="key", value=value),), reader)
    assert reader.asked == [f"Ada Roe, key: {asked}."]


@pytest.mark.parametrize(
    ("text", "value", "supported"),
    [
        ("Ada Roe was educated at MIT.", "Massachusetts Institute of Technology", True),
        ("Ada Roe studied at UCLA.", "University of California, Los Angeles", True),
        ("Ada Roe studied at UCLA.", "University of California, Berkeley", False),
        ("Ada Roe studied at the EU.", "Emory University", False),
    ],
)
def test_initials_stand_for_a_name(
    guard: Guardrail, text: str, value: str, supported: bool
) -> None:
    evidence = [Triple(subject="Ada Roe", property="educated at", value=value)]
    (one,) = guard.check(question="", answer=text, evidence=evidence).sentences
    assert (one.category is Category.SUPPORTIVE) is supported


def test_initials_stand_for_a_subject(guard: Guardrail) -> None:
    name = "International Business Machines"
    evidence = [Triple(subject=name, property="inception", value="1911")]
    (one,) = guard.check(
        question="", answer="IBM was founded in 1911.", evidence=evidence
    ).sentences
    assert one.category is Category.SUPPORTIVE
