"""Ranking: every place has its reason."""

import pytest

from guardrail import ANNOTATE, BEST_OF_N, STRICT, Guardrail
from guardrail.core.types import (
    Action,
    Correction,
    GuardedAnswer,
    Score,
    ScoreCard,
    Sentence,
)
from guardrail.engine.decision import ranked

QUESTION = "Who was Ada Lovelace?"


def test_each_place_tells_the_number_it_rests_on(exact_guard: Guardrail) -> None:
    best, worst = exact_guard.rank(
        question=QUESTION,
        answers=["She liked tea.", "Ada Lovelace was born in London in 1815."],
        policy=BEST_OF_N,
    )
    assert best.reasons[0] == (
        "rank 1 of 2: grounded 2.00 (facts cited: 2; 1 of 1 claims supported; "
        "0 lack support, 0 contradicted)"
    )
    assert worst.reasons[0].startswith("rank 2 of 2: grounded 0.00 (facts cited: 0; ")


def test_an_answer_that_was_not_scored_says_why(exact_guard: Guardrail) -> None:
    ranked = exact_guard.rank(
        question=QUESTION,
        answers=["", "Ada Lovelace was born in London."],
        policy=ANNOTATE.model_copy(update={"rank_by": "grounded"}),
    )
    assert ranked[0].text == "Ada Lovelace was born in London."
    assert ranked[1].reasons[0] == (
        "rank 2 of 2: no grounded score, the answer is empty or has only markers; there is "
        "nothing to check"
    )


def test_an_answer_of_markers_alone_is_no_answer(exact_guard: Guardrail) -> None:
    for answer in ("[Ada Lovelace, occupation: mathematician]", " [NA] "):
        checked = exact_guard.check(question=QUESTION, answer=answer, policy=STRICT)
        assert checked.action is not Action.PASS
        assert "only markers" in checked.errors[0].message


def scored(overall: float, mended: int = 0, **changes: object) -> GuardedAnswer:
    """An answer with a score, a number of corrected sentences, and further scores by name."""
    names = {name: changes.pop(name) for name in ("citations", "na_share") if name in changes}
    card = ScoreCard(
        overall=Score(value=overall),
        scores={name: Score.model_validate({"value": value}) for name, value in names.items()},
    )
    correction = Correction(original="as it was", by="edit")
    sentences = (Sentence(text="", start=0, end=0, correction=correction),) * mended
    answer = GuardedAnswer(
        id="a", question="", text="", marked="", action=Action.PASS, scorecard=card
    )
    return answer.model_copy(update={"sentences": sentences, **changes})


@pytest.mark.parametrize(
    ("better", "worse", "won", "lost"),
    [
        (scored(0.9), scored(0.5), "overall 0.90", "overall 0.50"),
        (
            scored(0.501),
            scored(0.499),
            "overall 0.50; decided against rank 2 by score: 0.501, there 0.499",
            "overall 0.50; decided against rank 1 by score: 0.499, there 0.501",
        ),
        (
            scored(0.9),
            scored(0.9, mended=2),
            "overall 0.90; decided against rank 2 by sentences corrected: 0, there 2",
            "overall 0.90; decided against rank 1 by sentences corrected: 2, there 0",
        ),
        (
            scored(0.9, citations=3),
            scored(0.9, citations=1),
            "overall 0.90; decided against rank 2 by different citations: 3, there 1",
            "overall 0.90; decided against rank 1 by different citations: 1, there 3",
        ),
        (
            scored(0.9, na_share=0.25),
            scored(0.9, na_share=0.5),
            "overall 0.90; decided against rank 2 by share without support: 0.25, there 0.5",
            "overall 0.90; decided against rank 1 by share without support: 0.5, there 0.25",
        ),
        (
            scored(0.2),
            scored(0.9, action=Action.REFUSE),
            "overall 0.20",
            "refused; overall 0.90",
        ),
        (
            scored(0.9, index=0),
            scored(0.9, index=1),
            "overall 0.90; equal to rank 2 in all, so in the order given",
            "overall 0.90; equal to rank 1 in all, so in the order given",
        ),
    ],
)
def test_the_reason_tells_what_decided(
    better: GuardedAnswer, worse: GuardedAnswer, won: str, lost: str
) -> None:
    first = better.index == worse.index  # of equal ones the order given is what is tested
    told = ranked([worse, better] if first else [better, worse], STRICT)
    assert [item.reasons[0] for item in told] == [f"rank 1 of 2: {won}", f"rank 2 of 2: {lost}"]
