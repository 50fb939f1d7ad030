"""Decisions and rankings, and their reasons."""

from __future__ import annotations

import pytest

from guardrail import (
    ANNOTATE,
    STRICT,
    Action,
    Guardrail,
    GuardrailConfig,
    Passage,
    Score,
    Sentence,
    Triple,
)
from guardrail.core.types import (
    AttributedAnswer,
    Category,
    Correction,
    Grounding,
    GuardedAnswer,
    ScoreCard,
    Span,
    SpanKind,
    StatementScore,
)
from guardrail.engine.decision import as_judged_first, decide, feedback, ranked
from tests.guardrail.scripted import Scripted

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


def test_removed_sentences_are_those_that_came():
    came, shown = answer(TRUE, UNTOLD), answer(TRUE, FALSE)
    decision = as_judged_first(decide(STRICT, shown, card(1.0)), shown, came)
    assert [item.text for item in decision.removed] == [UNTOLD]


QUESTION = "Who was Ada Lovelace?"


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


def scored(id: str, overall: float, corrected: int = 0, **values: float) -> GuardedAnswer:
    """An answer with a score, a number of corrected sentences, and further scores by name."""
    card = ScoreCard(
        overall=Score(value=overall),
        scores={name: Score(value=value) for name, value in values.items()},
    )
    correction = Correction(original="as it was", by="edit")
    sentences = (Sentence(text="", start=0, end=0, correction=correction),) * corrected
    action = Action.REFUSE if id == "refused" else Action.PASS
    return GuardedAnswer(
        id=id, question="", text="", marked="", action=action, scorecard=card, sentences=sentences
    )


@pytest.mark.parametrize(
    "order",
    [
        (scored("better", 0.9), scored("worse", 0.5)),
        (scored("whole", 0.9), scored("corrected", 0.9, corrected=2)),
        (scored("three facts", 0.9, citations=3), scored("one fact", 0.9, citations=1)),
        (scored("less unsupported", 0.9, na_share=0.25), scored("more", 0.9, na_share=0.5)),
        (scored("delivered", 0.2), scored("refused", 0.9)),
    ],
)
def test_the_better_answer_comes_first(order: tuple[GuardedAnswer, GuardedAnswer]) -> None:
    found = ranked(order[::-1], STRICT)
    assert [item.id for item in found] == [item.id for item in order]


SAID = "The Kestrel has ninety rooms."
OPEN = "The pool is open daily."
FACT = Triple(subject="Kestrel", property="rooms", value="forty-two")
PASSAGE = Passage(text="The Kestrel has forty-two rooms.", id="d1", title="Guide")
POOL = Passage(text=OPEN, id="d2", title="Pool")


def judged(conflicts: float) -> Scripted:
    """A judge that finds the contradiction in the first statement."""
    against = StatementScore(carries=0.1, conflicts=conflicts)
    neither = StatementScore(carries=0.0, conflicts=0.0)
    carries = StatementScore(carries=0.9, conflicts=0.0)
    return Scripted(
        {
            SAID: Grounding(
                supported=0.02, unsupported=0.08, contradicted=0.9, no_claim=0.0,
                statements=(against, neither, neither),
            ),
            OPEN: Grounding(
                supported=0.96, unsupported=0.02, contradicted=0.02, no_claim=0.0,
                statements=(neither, carries, neither),
            ),
        }
    )  # fmt: skip


def check(evidence, *, conflicts=0.9, said=f"{SAID} {OPEN}", policy=STRICT):
    config = GuardrailConfig(graph={"location": "none"})
    with Guardrail(config, grounding=judged(conflicts)) as guard:
        return guard.check("Is there a pool?", said, evidence=evidence, policy=policy)


@pytest.mark.parametrize(
    ("first", "named"), [(PASSAGE, PASSAGE.text), (FACT, "Kestrel, rooms: forty-two.")]
)
def test_a_reason_names_what_contradicts(first, named):
    answer = check([first, POOL])
    assert answer.action is Action.FILTER
    assert answer.reasons == (f'contradicted: "{SAID}" against {named}',)
    marked = check([first, POOL], policy="annotate")
    assert marked.sentences[0].against == (named,)
    assert marked.sentences[1].against == ()
    (failed,) = feedback(marked.sentences)
    assert (failed.text, failed.reason) == (SAID, f"but {named}")


def test_without_a_statement_that_conflicts_a_sentence_is_only_unsupported():
    answer = check([POOL], conflicts=0.0, policy="annotate")
    assert answer.sentences[0].category is Category.IRRELEVANT
    assert answer.sentences[0].na
    assert [item.text for item in feedback(answer.sentences)] == [SAID]


def test_what_the_answer_cited_is_no_part_of_what_contradicts_it():
    """A reason may be shown where the answer may not."""
    said = f"{SAID[:-1]} [Kestrel, rooms: zanzibar]. {OPEN}"
    answer = check([FACT, POOL], said=said, policy="annotate")
    assert "zanzibar" in answer.sentences[0].note
    assert answer.sentences[0].against == (FACT.text,)
    assert "zanzibar" not in answer.reasons[0]
