"""A sentence's verdict and what its judge finds likeliest: where they part, a finding says why."""

from __future__ import annotations

from guardrail.types import AttributedAnswer, Category, Effect, Finding, Sentence

__all__ = ["JUDGE", "explained"]

JUDGE = "judge"
"""Name of the finding, beside those of the checks."""


def explained(answer: AttributedAnswer) -> AttributedAnswer:
    """The answer with a finding on each sentence whose verdict is not its judge's likeliest.

    Support takes half of the probability. Below that the likelier of contradiction and no support
    is the verdict, though support alone may be likelier than either.
    """
    return answer.model_copy(update={"sentences": tuple(map(_explained, answer.sentences))})


def _explained(sentence: Sentence) -> Sentence:
    judgement, category = sentence.judgement, sentence.category
    if judgement is None or category is None:
        return sentence
    likeliest = max(judgement.scores, key=lambda item: judgement.scores[item])
    if judgement.scores[category] >= judgement.scores[likeliest]:
        return sentence
    against = category is Category.CONTRADICTORY
    support = judgement.scores[Category.SUPPORTIVE]
    finding = Finding(
        check=JUDGE,
        effect=Effect.CONTRADICTS if against else Effect.MISSING,
        start=sentence.start,
        end=sentence.end,
        because=(
            f"support takes a probability of 0.5 and has {support:.2f}; of the rest, "
            f"{'contradiction' if against else 'no support'} is likelier"
        ),
    )
    return sentence.model_copy(update={"findings": (*sentence.findings, finding)})
