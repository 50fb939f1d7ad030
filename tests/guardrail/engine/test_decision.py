"""What a policy makes of an answer."""

import pytest

from guardrail import ANNOTATE, STRICT, Action, Score, Sentence
from guardrail.core.types import AttributedAnswer, Category, ScoreCard, Span, SpanKind
from guardrail.engine.decision import as_judged_first, decide, dry, feedback

TRUE, FALSE, UNTOLD = "The pool is warm.", "The pool is green.", "The pool is large."
KINDS = {
    TRUE: Category.SUPPORTIVE,
    FALSE: Category.CONTRADICTORY,
    UNTOLD: Category.IRRELEVANT,
    "Hello.": None,
}


def answer(*texts):
    whole, sentences = " ".join(texts), []
    for text in texts:
        start, kind = whole.index(text), KINDS[text]
        na = kind not in (None, Category.SUPPORTIVE)
        end = start + len(text)
        span = Span(text=text[9:-1], start=start + 9, end=end - 1, kind=SpanKind.NA)
        sentences.append(
            Sentence(
                text=text,
                start=start,
                end=end,
                category=kind,
                na=na,
                sure=kind is Category.CONTRADICTORY,
                spans=(span,) if na else (),
                against=("The pool is blue.",) if kind is Category.CONTRADICTORY else (),
            )
        )
    return AttributedAnswer(text=whole, marked=whole, sentences=tuple(sentences))


def card(overall):
    return ScoreCard(overall=Score(value=overall, reason=None if overall else "nothing to score"))


@pytest.mark.parametrize(
    ("policy", "texts", "action", "shown"),
    [
        (ANNOTATE, (TRUE,), Action.PASS, TRUE),
        (ANNOTATE, (TRUE, UNTOLD), Action.ANNOTATE, f"{TRUE} {UNTOLD}"),
        (STRICT, (TRUE, FALSE), Action.FILTER, TRUE),
        (STRICT, (FALSE,), Action.REFUSE, STRICT.refusal),
        (STRICT, (UNTOLD,), Action.REFUSE, STRICT.refusal),
        (STRICT, ("Hello.",), Action.PASS, "Hello."),
        (ANNOTATE.changed(contradicted="regenerate"), (TRUE, FALSE), Action.REGENERATE,
         f"{TRUE} {FALSE}"),
        (ANNOTATE.changed(contradicted="refuse"), (TRUE, FALSE), Action.REFUSE, ANNOTATE.refusal),
    ],
)  # fmt: skip
def test_the_strongest_of_what_is_asked_for_is_done(policy, texts, action, shown):
    decision = decide(policy, answer(*texts), card(1.0))
    assert decision.action is action
    assert decision.answer.text.strip() == shown
    assert bool(decision.reasons) is (action is not Action.PASS)


def test_what_is_removed_is_kept_beside_it_with_the_reason():
    decision = decide(STRICT, answer(TRUE, FALSE), card(1.0))
    assert [item.text for item in decision.removed] == [FALSE]
    assert decision.reasons == (f'contradicted: "{FALSE}" against The pool is blue.',)


def test_a_score_below_its_threshold_asks_for_what_the_policy_says():
    policy = ANNOTATE.changed(thresholds={"overall": 0.5}, below="refuse")
    assert decide(policy, answer(TRUE), card(0.5)).action is Action.PASS
    decision = decide(policy, answer(TRUE), card(0.4))
    assert decision.action is Action.REFUSE
    assert decision.reasons == ("overall is 0.40, below 0.50",)
    assert decide(policy, answer(TRUE), card(None)).action is Action.PASS


def test_a_dry_run_tells_and_does_nothing():
    came = answer(TRUE, FALSE)
    told = dry(decide(STRICT, came, card(1.0)), came)
    assert (told.action, told.would, told.answer) == (Action.PASS, Action.FILTER, came)
    assert told.removed == ()


def test_removed_sentences_are_those_that_came():
    came, shown = answer(TRUE, UNTOLD), answer(TRUE, FALSE)
    decision = as_judged_first(decide(STRICT, shown, card(1.0)), shown, came)
    assert [item.text for item in decision.removed] == [UNTOLD]


def test_a_model_is_told_what_failed_and_why():
    failed = feedback(answer(TRUE, FALSE, UNTOLD).sentences)
    assert [(item.text, item.reason) for item in failed] == [
        (FALSE, "but The pool is blue."),
        (UNTOLD, 'no support is given for "is large"'),
    ]
