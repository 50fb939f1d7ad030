"""What became of a stretch of an answer under a policy: as a user of the guardrail sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guardrail import Guardrail, Policy
from guardrail.core.types import Action, Category, GuardedAnswer, Sentence
from guardrail.core.types.answers import CheckRequest
from guardrail.markers.rendering import UNCARRIED

__all__ = ["Outcome", "checked", "outcome", "untouched"]

TOGETHER = 20
"""Answers that are checked together."""


class Outcome(NamedTuple):
    """What became of a stretch.

    Attributes:
        supported: Whether nothing of it was found to lack support.
        contradicted: Whether it was called contradicted.
        removed: Whether it was taken out, alone or with the whole answer.
        marked: Whether it was delivered with a mark.
        score: The least probability of support of its sentences; 1 for what makes no claim.
    """

    supported: bool
    contradicted: bool
    removed: bool
    marked: bool
    score: float

    @property
    def unmarked(self) -> bool:
        """Whether a reader gets it as though it were sure."""
        return not self.removed and not self.marked


def checked(
    guard: Guardrail, requests: Sequence[CheckRequest], *, policy: Policy | None = None
) -> list[GuardedAnswer]:
    """Check n answers, by the configured policy unless another is given.

    Raises:
        SystemExit: A part failed, so that nothing was measured.
    """
    found: list[GuardedAnswer] = []
    for first in range(0, len(requests), TOGETHER):
        found += guard.check_batch(list(requests[first : first + TOGETHER]), policy=policy)
    problems = [problem for answer in found for problem in answer.errors]
    if problems:
        raise SystemExit(f"{problems[0].part}: {problems[0].message}")
    return found


def outcome(answer: GuardedAnswer, text: str, start: int, end: int) -> Outcome:
    """What became of a stretch of an answer.

    Args:
        answer: What the guardrail made of it.
        text: The original answer.
        start: Offset of the stretch in it.
        end: Offset past the stretch.
    """
    gone = [item for item in answer.removed if item.start < end and start < item.end]
    kept = [(item, *place) for item, place in _delivered(answer, text)]
    kept = [item for item in kept if item[1] < end and start < item[2]]
    sentences = [*gone, *(item for item, _, _ in kept)]
    categories = {item.category for item in sentences}
    return Outcome(
        supported=categories <= {Category.SUPPORTIVE, None},
        contradicted=Category.CONTRADICTORY in categories,
        removed=bool(gone) or (answer.action is Action.REFUSE and not kept),
        marked=any(_is_marked(item) for item, _, _ in kept),
        score=min((_support(item) for item in sentences), default=1.0),
    )


def _delivered(answer: GuardedAnswer, text: str) -> list[tuple[Sentence, tuple[int, int]]]:
    """The sentences delivered, each with its position in the original answer."""
    found: list[tuple[Sentence, tuple[int, int]]] = []
    read = 0
    for sentence in answer.sentences:
        while True:
            start = text.find(sentence.text, read)
            if start < 0:
                break
            read = start + len(sentence.text)
            if not any(item.start < read and start < item.end for item in answer.removed):
                found.append((sentence, (start, read)))
                break
    return found


def _is_marked(sentence: Sentence) -> bool:
    return any(span.kind in UNCARRIED for span in sentence.spans)


def _support(sentence: Sentence) -> float:
    if sentence.category is None:
        return 1.0
    if sentence.support is None:
        return float(sentence.category is Category.SUPPORTIVE)
    return sentence.support


def untouched(answer: GuardedAnswer, text: str) -> bool:
    """Whether a reader gets an answer whole and without a mark of what lacks support."""
    return answer.text == text and not any(_is_marked(item) for item in answer.sentences)
