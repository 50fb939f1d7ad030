"""Ranking: every place has its reason."""

from guardrail import ANNOTATE, BEST_OF_N, STRICT, Guardrail
from guardrail.core.types import Action

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
        "rank 2 of 2: no grounded score, the answer is empty, or nothing but markers; there is "
        "nothing to check"
    )


def test_an_answer_of_markers_alone_is_no_answer(exact_guard: Guardrail) -> None:
    for answer in ("[Ada Lovelace, occupation: mathematician]", " [NA] "):
        checked = exact_guard.check(question=QUESTION, answer=answer, policy=STRICT)
        assert checked.action is not Action.PASS
        assert "nothing but markers" in checked.errors[0].message
