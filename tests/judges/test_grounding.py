"""Any NLI judge grounds sentences by its pairs."""

from collections.abc import Sequence

import pytest

from guardrail.core.types import Grounding, NLIScores, Verdict
from judges.base import GroundingItem, GroundingJudge, Pair
from judges.grounding import NLIGrounding, as_grounding
from tests.guardrail.scripted import Overlap, Ready


class Words(Ready):
    """Entails hypotheses made of the premise's words; contradicts those with *not*."""

    name = "words"

    def __init__(self) -> None:
        self.asked: list[Pair] = []

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        self.asked += pairs
        return [_scores(pair) for pair in pairs]


def _scores(pair: Pair) -> NLIScores:
    premise, hypothesis = (set(text.lower().strip(".").replace(".", "").split()) for text in pair)
    if "not" in hypothesis:
        return NLIScores(entailment=0.0, neutral=0.1, contradiction=0.9)
    good = hypothesis <= premise
    return NLIScores(entailment=0.9 if good else 0.1, neutral=0.1 if good else 0.9, contradiction=0)


FACTS = ("the bridge opened in 1932.", "it is red.")


def grounded(sentence: str, statements: tuple[str, ...] = FACTS) -> Grounding:
    (one,) = NLIGrounding(Words()).ground([GroundingItem(statements, sentence)])
    return one


def test_the_verdict_is_that_of_all_statements_together() -> None:
    assert grounded("the bridge opened in 1932 it is red").verdict is Verdict.SUPPORTED
    assert grounded("the bridge opened in 1940").verdict is Verdict.UNSUPPORTED
    assert grounded("the bridge is not red").verdict is Verdict.CONTRADICTED
    assert grounded("the bridge opened", ()).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("sentence", "facts", "carries"),
    [
        ("the bridge opened in 1932", FACTS, [True, False]),
        ("bridge, opened: 1932 by the king", ("bridge, opened: 1932.",), [True]),  # entails it
    ],
)
def test_each_statement_is_scored_separately(
    sentence: str, facts: tuple[str, ...], carries: list[bool]
) -> None:
    scores = grounded(sentence, facts).statements
    assert [score is not None and score.carries > 0.5 for score in scores] == carries


def test_words_are_missing_without_which_the_sentence_is_entailed() -> None:
    one = grounded("the bridge opened in 1932 yesterday")
    missing = [word for word in one.words if word.missing >= 0.5]
    assert [(word.start, word.end) for word in missing] == [(26, 35)]


def test_one_call_holds_the_pairs_of_all_sentences() -> None:
    judge = Words()
    items = [GroundingItem(FACTS, "it is red"), GroundingItem(FACTS, "the bridge opened")]
    assert NLIGrounding(judge).ground(items) == [
        entry for item in items for entry in NLIGrounding(Words()).ground([item])
    ]


@pytest.mark.parametrize("able", [True, False])
def test_a_judge_that_grounds_itself_is_used_as_it_is(able: bool) -> None:
    class Both(Overlap, Words):
        grounds = able

        def __init__(self) -> None:
            self.asked = []

    judge = Both()
    made = as_grounding(judge)
    assert isinstance(made, GroundingJudge)
    assert (made is judge) is able
