"""Thresholds of the verdict learned from a file of labelled answers.

Every answer goes through the engine's own pass, checks included, at a threshold that stops nothing.
What it scores is the highest threshold of support at which all of it would still pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from guardrail.core.errors import InputError, JudgeError
from guardrail.core.types import (
    AttributedAnswer,
    Category,
    Probability,
    Sentence,
    Triple,
    Value,
    Verdict,
    VerdictThresholds,
)
from guardrail.markers.grammar import parse
from guardrail.tuning.curve import (
    LEAST_LABELS,
    Scored,
    Tuning,
    area,
    chosen_point,
    curve_of,
    rounded_up,
)
from guardrail.tuning.rows import LabelledRow
from guardrail.verdict.grounder import Grounder, GroundingRequest

__all__ = ["Contradiction", "LabelledTuning", "tune_labelled"]

SECTION = "strictness"
"""Where the settings hold thresholds of the verdict."""

TOGETHER = 32
"""Rows that go to the judge together."""

ALL_PASS = VerdictThresholds(support=0.0, contradiction=1.0)
"""Stops what a check stops, and what is likelier contradicted than supported."""


class Contradiction(Value):
    """A threshold that tells contradicted rows from unsupported ones, of those that do not pass.

    Attributes:
        threshold: Share of *contradicted* above which a row is called so.
        found: Share of the contradicted rows that are called so.
        wrong: Share of the unsupported rows that are called contradicted.
    """

    threshold: Probability
    found: Probability
    wrong: Probability


class LabelledTuning(Tuning):
    """A threshold of support, and where rows tell it one of contradiction.

    Attributes:
        groups: Number of different texts of evidence.
        contradiction: None where too few rows of either kind do not pass.
    """

    groups: int
    contradiction: Contradiction | None = None

    @property
    def settings(self) -> dict[str, float]:
        """The settings of the section by name; empty without a threshold."""
        found = super().settings
        if found and self.contradiction is not None:
            found["contradiction"] = self.contradiction.threshold
        return found


def tune_labelled(
    rows: Sequence[LabelledRow],
    grounder: Grounder,
    *,
    false_pass: float = 0.05,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LabelledTuning:
    """Choose the best threshold of support that lets at most a share of the wrong rows pass.

    Args:
        rows: The labelled answers.
        grounder: Judges them, twice; one that remembers asks its judge once.
        false_pass: The share allowed, in [0, 1].
        progress: Told rows done and rows in all.

    Raises:
        InputError: There are too few rows, or all have one label.
        JudgeError: The judge failed.
    """
    _require_both(rows)
    scored = [
        Scored(_support(answer), row.label is Verdict.SUPPORTED, row.group)
        for row, answer in zip(rows, _judged(grounder, rows, ALL_PASS, progress), strict=True)
    ]
    curve = curve_of(scored, _thresholds(scored))
    chosen = chosen_point(curve, false_pass)
    right = sum(row.right for row in scored)
    found = LabelledTuning(
        section=SECTION,
        score="support",
        wanted=false_pass,
        right=right,
        wrong=len(scored) - right,
        chosen=chosen,
        auc=area(scored),
        curve=tuple(curve),
        groups=len({row.group for row in scored}),
    )
    if chosen is None:
        return found
    at = VerdictThresholds(support=found.settings["support"], contradiction=1.0)
    return found.model_copy(update={"contradiction": _contradiction(grounder, rows, at)})


def _require_both(rows: Sequence[LabelledRow]) -> None:
    right = sum(row.label is Verdict.SUPPORTED for row in rows)
    wrong = len(rows) - right
    if not right or not wrong:
        only = "supported" if right else "unsupported or contradicted"
        raise InputError(f"all {len(rows)} rows are {only}; a threshold needs both kinds")
    if min(right, wrong) < LEAST_LABELS:
        raise InputError(
            f"{right} supported and {wrong} other rows are too few; {LEAST_LABELS} of each are "
            "needed"
        )


def _judged(
    grounder: Grounder,
    rows: Sequence[LabelledRow],
    thresholds: VerdictThresholds,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[AttributedAnswer]:
    answers: list[AttributedAnswer] = []
    for first in range(0, len(rows), TOGETHER):
        requests = [
            GroundingRequest(
                row.question,
                parse(row.answer, [item for item in row.evidence if isinstance(item, Triple)]),
                row.evidence,
                thresholds=thresholds,
            )
            for row in rows[first : first + TOGETHER]
        ]
        found, problems = grounder.ground(requests)
        if problems:
            raise JudgeError(problems[0].message)
        answers += found
        progress(len(answers), len(rows))
    return answers


def _support(answer: AttributedAnswer) -> float:
    """The highest threshold at which no sentence is stopped; 0 where one always is."""
    return min((_sentence_support(sentence) for sentence in answer.sentences), default=1.0)


def _sentence_support(sentence: Sentence) -> float:
    if sentence.category is None:
        return 1.0  # it claims nothing
    if sentence.category is not Category.SUPPORTIVE or sentence.support is None:
        return 0.0
    return sentence.support


def _thresholds(rows: Sequence[Scored]) -> list[float]:
    """The middles between scores seen, as they would be written, and one above the highest.

    A middle leaves room on both sides for answers that are still to come.
    """
    seen = sorted({0.0, *(row.score for row in rows)})
    middles = [rounded_up((low + high) / 2) for low, high in pairwise(seen)]
    return [*middles, min(1.0, rounded_up(seen[-1]) + 1e-4)]


def _contradiction(
    grounder: Grounder, rows: Sequence[LabelledRow], at: VerdictThresholds
) -> Contradiction | None:
    """The threshold that best tells contradicted rows that do not pass from unsupported ones."""
    shares: dict[Verdict, list[float]] = {Verdict.CONTRADICTED: [], Verdict.UNSUPPORTED: []}
    for row, answer in zip(rows, _judged(grounder, rows, at), strict=True):
        stopped = [
            sentence
            for sentence in answer.sentences
            if sentence.category not in (None, Category.SUPPORTIVE)
        ]
        if stopped and row.label in shares:
            shares[row.label].append(max(_against(item) for item in stopped))
    against, lacking = shares[Verdict.CONTRADICTED], shares[Verdict.UNSUPPORTED]
    if min(len(against), len(lacking)) < LEAST_LABELS:
        return None

    def at_threshold(threshold: float) -> Contradiction:
        return Contradiction(
            threshold=threshold,
            found=sum(share > threshold for share in against) / len(against),
            wrong=sum(share > threshold for share in lacking) / len(lacking),
        )

    points = [at_threshold(int(share * 1e4) / 1e4) for share in {0.5, *against, *lacking}]
    # Of equally good ones that nearest to the default.
    return max(points, key=lambda item: (item.found - item.wrong, -abs(item.threshold - 0.5)))


def _against(sentence: Sentence) -> float:
    """Probability of contradiction."""
    return sentence.contradiction or 0.0
