"""A sentence's verdict and what its judge finds likeliest: where they part, a finding says why."""

from __future__ import annotations

from guardrail.core.types import (
    AttributedAnswer,
    Category,
    Effect,
    Finding,
    Sentence,
    VerdictThresholds,
)

__all__ = ["JUDGE", "explained"]

JUDGE = "judge"
"""Name of the finding, beside those of the checks."""


def explained(answer: AttributedAnswer, thresholds: VerdictThresholds) -> AttributedAnswer:
    """The answer with a finding on each sentence whose verdict is not its judge's likeliest.

    What is sure enough neither of support nor of contradiction lacks support, though either may be
    likelier than that. ``thresholds`` are those that the verdicts were given by.
    """
    sentences = tuple(_explained(sentence, thresholds) for sentence in answer.sentences)
    return answer.model_copy(update={"sentences": sentences})


def _explained(sentence: Sentence, thresholds: VerdictThresholds) -> Sentence:
    judgement, category = sentence.judgement, sentence.category
    if judgement is None or category is None:
        return sentence
    likeliest = max(judgement.scores, key=lambda item: judgement.scores[item])
    if judgement.scores[category] >= judgement.scores[likeliest]:
        return sentence
    against = category is Category.CONTRADICTORY
    finding = Finding(
        check=JUDGE,
        effect=Effect.CONTRADICTS if against else Effect.MISSING,
        start=sentence.start,
        end=sentence.end,
        because=(
            f"support takes a probability of {thresholds.support:.2f} and has "
            f"{sentence.support or 0.0:.2f}; contradiction takes "
            f"{thresholds.contradiction:.2f} and has {sentence.contradiction or 0.0:.2f}"
        ),
    )
    return sentence.model_copy(update={"findings": (*sentence.findings, finding)})
