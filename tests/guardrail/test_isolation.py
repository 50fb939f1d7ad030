"""A row that a part cannot cope with stays the only one without it."""

from collections.abc import Sequence

import pytest

from guardrail import STRICT, Action, CheckRequest, Guardrail, GuardrailConfig, JudgeError, Passage
from guardrail.core.types import Grounding, NLIScores
from judges.base import GroundingItem, Pair
from judges.registry import register
from tests.guardrail.scripted import Ready

GOOD = "Artemisia was painting in Rome."
BAD = "Artemisia was painting with a curse."


class Squeamish(Ready):
    """A judge that finds everything entailed and chokes on curses."""

    name = "squeamish-1"

    def __init__(self, model: str | None) -> None:
        self.calls = 0

    def judge(self, pairs: Sequence[Pair]) -> list[NLIScores]:
        self.calls += 1
        if any("curse" in text for pair in pairs for text in pair):
            raise JudgeError("I cannot read that")
        return [NLIScores(entailment=1.0, neutral=0.0, contradiction=0.0) for _ in pairs]


@pytest.fixture
def judge() -> Squeamish:
    made = Squeamish(None)
    register("squeamish", lambda model: made)
    return made


def checked(answers: Sequence[str]) -> list[Action]:
    with Guardrail(GuardrailConfig(judge="squeamish")) as guard:
        results = guard.check_batch(
            [
                CheckRequest(question="Who?", answer=answer, evidence=(Passage(text=answer),))
                for answer in answers
            ]
        )
    for answer, result in zip(answers, results, strict=True):
        problems = [(error.part, error.message) for error in result.errors]
        assert result.original == answer
        assert problems == (
            [("judge", "I cannot read that")] if "UNV" in result.action.name else []
        )
    return [result.action for result in results]


@pytest.mark.parametrize("place", [0, 3, 11])
def test_one_bad_row_leaves_the_others_of_its_pass_verified(judge: Squeamish, place: int) -> None:
    answers = [GOOD] * 12
    answers[place] = BAD
    actions = checked(answers)
    assert actions.pop(place) is Action.UNVERIFIED
    assert set(actions) == {Action.PASS}


def test_a_part_that_is_down_is_not_asked_once_a_row(judge: Squeamish) -> None:
    assert set(checked([BAD] * 40)) == {Action.UNVERIFIED}
    once = judge.calls
    checked([BAD])
    assert once <= 4 * (judge.calls - once)


class Broken(Ready):
    """A grounding judge of another package that does what it pleases."""

    name = "broken-1"

    def __init__(self, gives: object) -> None:
        self.gives = gives

    def ground(self, items: Sequence[GroundingItem]) -> list[Grounding]:
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives  # type: ignore[return-value]


@pytest.mark.parametrize("cache", [0, 100])
@pytest.mark.parametrize(
    "gives", [ConnectionResetError("gone"), MemoryError(), [], [b"noise"], None]
)
def test_whatever_a_judge_does_is_a_judges_error(gives: object, cache: int) -> None:
    config = GuardrailConfig(graph="none", policy="strict", judge_cache=cache)
    with Guardrail(config, grounding=Broken(gives)) as guard:
        refused = guard.check("Who?", GOOD, evidence=[Passage("Artemisia was born in Rome.")])
        assert refused.action is Action.REFUSE
        assert [error.part for error in refused.errors] == ["judge"]
        strict = STRICT.changed(unavailable="raise")
        with pytest.raises(JudgeError, match="the judge"):
            guard.check("Who?", GOOD, evidence=[Passage("Artemisia was born.")], policy=strict)
