"""Thresholds of the verdict learned from a file of labelled answers.

The engine judges every answer, checks included, with thresholds that stop nothing. The score of an
answer is the highest threshold of support at which all of it would pass. Learned thresholds are
cross-validated, and used only if they classify more rows correctly than the current ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from guardrail.core.errors import InputError, JudgeError
from guardrail.core.types import (
    AttributedAnswer,
    Probability,
    Strictness,
    Triple,
    Value,
    Verdict,
    VerdictThresholds,
)
from guardrail.evaluation.rows import LabelledRow
from guardrail.evidence.prepared import prepare
from guardrail.markers.grammar import parse
from guardrail.tuning.curve import (
    LEAST_LABELS,
    CurvePoint,
    Scored,
    Tuning,
    area,
    chosen_point,
    curve_of,
    rounded_up,
)
from guardrail.verdict.grounder import Grounder, GroundingRequest

__all__ = [
    "Contradiction",
    "Counts",
    "LabelledTuning",
    "folds_of",
    "judged",
    "require_both",
    "tune_labelled",
]

SECTION = "strictness"
"""Section of the settings for thresholds of the verdict."""

TOGETHER = 32
"""Rows per call of the judge."""

FOLDS = 5
"""Folds of the cross-validation."""

NEARLY = 0.01
"""A smaller difference of balanced accuracy is chance: among thresholds this close to the best, the
one nearest to the current threshold is chosen."""

ALL_PASS = VerdictThresholds(support=0.0, contradiction=1.0)
"""Stops only sentences that a check stops or that are likelier contradicted than supported."""


class Contradiction(Value):
    """A threshold that separates contradicted rows from others, among rows that do not pass.

    Attributes:
        threshold: Probability of *contradicted* from which on a row is called contradicted.
        found: Share of the contradicted rows that are called contradicted.
        wrong: Share of the other rows that are called contradicted.
    """

    threshold: Probability
    found: Probability
    wrong: Probability


class Counts(Value):
    """Outcomes of labelled rows under some thresholds.

    Attributes:
        right: Supported rows.
        right_passed: Supported rows that pass.
        right_called: Supported rows that are called contradicted.
        wrong: Rows that are not supported.
        wrong_passed: Those of them that pass.
        contradicted: Contradicted rows.
        named: Contradicted rows that are called contradicted.
    """

    right: int
    right_passed: int
    right_called: int
    wrong: int
    wrong_passed: int
    contradicted: int
    named: int

    @property
    def balanced(self) -> float:
        """Balanced accuracy of passing: the mean of the shares classified correctly."""
        return 0.5 * (self.right_passed / self.right + 1.0 - self.wrong_passed / self.wrong)


class LabelledTuning(Tuning):
    """A threshold of support, and one of contradiction if there are enough rows.

    Attributes:
        groups: Number of different evidence texts.
        before: Outcomes under the current thresholds.
        after: Outcomes of each fold under the thresholds learned from the other folds.
        thresholds: The learned thresholds; None if none meets the wanted false-pass rate.
        contradiction: None if too few rows of either kind do not pass.
        asked: True if a false-pass rate was given, False for the best balanced accuracy.
    """

    groups: int
    before: Counts
    after: Counts
    thresholds: VerdictThresholds | None = None
    contradiction: Contradiction | None = None
    asked: bool = False

    @property
    def helps(self) -> bool:
        """True if a false-pass rate was given or the learned thresholds generalise.

        They generalise if held-out rows are classified better, and no more right rows are called
        contradicted.
        """
        better = self.after.balanced > self.before.balanced
        return self.asked or (better and self.after.right_called <= self.before.right_called)

    @property
    def settings(self) -> dict[str, float]:
        """The settings of the section by name; empty if nothing useful was learned."""
        found = self.thresholds
        return {} if found is None or not self.helps else found.model_dump()


class _Row(NamedTuple):
    """A labelled row with the probabilities of its claims.

    Attributes:
        label: The label that people gave.
        group: Rows of the same group are not independent.
        claims: Support and contradiction of each claim.
    """

    label: Verdict
    group: str
    claims: tuple[tuple[float, float], ...]

    @property
    def support(self) -> float:
        """The highest threshold at which all claims pass; 0 if one never does."""
        return min((_passes_to(*pair) for pair in self.claims), default=1.0)

    def verdicts(self, at: VerdictThresholds) -> set[Verdict]:
        """The verdicts on its claims."""
        return {at.verdict(*pair) for pair in self.claims}

    def against(self, support: float) -> float | None:
        """The highest contradiction of a claim that does not pass; None if all pass."""
        stopped = [pair for pair in self.claims if _passes_to(*pair) < support]
        return max((against for _, against in stopped), default=None)


def _passes_to(support: float, contradiction: float) -> float:
    return support if support >= contradiction else 0.0


def tune_labelled(
    rows: Sequence[LabelledRow],
    grounder: Grounder,
    *,
    false_pass: float | None = None,
    before: VerdictThresholds = Strictness.BALANCED.thresholds,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LabelledTuning:
    """Learn thresholds of support and contradiction, and cross-validate them.

    Args:
        rows: The labelled answers.
        grounder: Judges them.
        false_pass: The share of wrong rows that may pass, in [0, 1]; None for the best balanced
            accuracy.
        before: The current thresholds.
        progress: Called with the number of judged rows and of all rows.

    Raises:
        InputError: There are too few rows, or all have one label.
        JudgeError: The judge failed.
    """
    require_both(rows)
    found = [
        _Row(row.label, row.group, _claims(answer))
        for row, answer in zip(rows, judged(grounder, rows, ALL_PASS, progress), strict=True)
    ]
    curve = _curve(found)
    chosen = _chosen(curve, false_pass, before)
    learned, contradiction = _learned(found, false_pass, before)
    right = sum(row.label is Verdict.SUPPORTED for row in found)
    return LabelledTuning(
        section=SECTION,
        score="support",
        wanted=(chosen.false_pass if chosen else 0.0) if false_pass is None else false_pass,
        right=right,
        wrong=len(found) - right,
        chosen=chosen,
        auc=area(_scored(found)),
        curve=tuple(curve),
        groups=len({row.group for row in found}),
        before=_counts([(row, before) for row in found]),
        after=_counts(_crossed(found, false_pass, before)),
        thresholds=learned,
        contradiction=contradiction,
        asked=false_pass is not None,
    )


def _learned(
    rows: Sequence[_Row], false_pass: float | None, before: VerdictThresholds
) -> tuple[VerdictThresholds | None, Contradiction | None]:
    chosen = _chosen(_curve(rows), false_pass, before)
    if chosen is None:
        return None, None
    support = rounded_up(chosen.threshold)
    found = _contradiction(rows, support, before)
    contradiction = before.contradiction if found is None else found.threshold
    removal = max(before.removal, contradiction)
    return VerdictThresholds(support=support, contradiction=contradiction, removal=removal), found


def folds_of(groups: Sequence[str]) -> list[int]:
    """The fold of each row; rows of a group stay together if there are enough groups."""
    distinct = list(dict.fromkeys(groups))
    place = {group: number for number, group in enumerate(distinct)}
    together = len(distinct) >= FOLDS
    return [(place[group] if together else at) % FOLDS for at, group in enumerate(groups)]


def _crossed(
    rows: Sequence[_Row], false_pass: float | None, before: VerdictThresholds
) -> list[tuple[_Row, VerdictThresholds]]:
    """Each row with the thresholds learned from the other folds, else the current ones."""
    parts = folds_of([row.group for row in rows])
    found = []
    for part in range(FOLDS):
        rest = [row for row, of in zip(rows, parts, strict=True) if of != part]
        both = {row.label is Verdict.SUPPORTED for row in rest} == {True, False}
        learned = _learned(rest, false_pass, before)[0] if both else None
        found += [
            (row, learned or before) for row, of in zip(rows, parts, strict=True) if of == part
        ]
    return found


def _counts(rows: Sequence[tuple[_Row, VerdictThresholds]]) -> Counts:
    found = [(row.label, row.verdicts(at)) for row, at in rows]
    right = [verdicts for label, verdicts in found if label is Verdict.SUPPORTED]
    wrong = [verdicts for label, verdicts in found if label is not Verdict.SUPPORTED]
    against = [verdicts for label, verdicts in found if label is Verdict.CONTRADICTED]
    return Counts(
        right=len(right),
        right_passed=sum(verdicts <= {Verdict.SUPPORTED} for verdicts in right),
        right_called=sum(Verdict.CONTRADICTED in verdicts for verdicts in right),
        wrong=len(wrong),
        wrong_passed=sum(verdicts <= {Verdict.SUPPORTED} for verdicts in wrong),
        contradicted=len(against),
        named=sum(Verdict.CONTRADICTED in verdicts for verdicts in against),
    )


def _scored(rows: Sequence[_Row]) -> list[Scored]:
    return [Scored(row.support, row.label is Verdict.SUPPORTED, row.group) for row in rows]


def _curve(rows: Sequence[_Row]) -> list[CurvePoint]:
    scored = _scored(rows)
    return curve_of(scored, _thresholds(scored))


def _chosen(
    curve: Sequence[CurvePoint], false_pass: float | None, before: VerdictThresholds
) -> CurvePoint | None:
    if false_pass is not None:
        return chosen_point(curve, false_pass)
    worth = {point: point.pass_right - point.false_pass for point in curve}
    good = [point for point in curve if worth[point] >= max(worth.values()) - 2.0 * NEARLY]
    return min(good, key=lambda point: abs(point.threshold - before.support))


def require_both(rows: Sequence[LabelledRow]) -> None:
    """Check that there are enough rows of both kinds.

    Raises:
        InputError: There are too few rows, or all have one label.
    """
    right = sum(row.label is Verdict.SUPPORTED for row in rows)
    wrong = len(rows) - right
    if not right or not wrong:
        only = "supported" if right else "unsupported or contradicted"
        raise InputError(f"all {len(rows)} rows are {only}; a threshold needs both kinds")
    if min(right, wrong) < LEAST_LABELS:
        raise InputError(
            f"{right} supported and {wrong} other rows are too few: {LEAST_LABELS} of each are "
            f"needed, {max(0, LEAST_LABELS - right)} more supported ones and "
            f"{max(0, LEAST_LABELS - wrong)} more others"
        )


def judged(
    grounder: Grounder,
    rows: Sequence[LabelledRow],
    thresholds: VerdictThresholds,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[AttributedAnswer]:
    """Judge labelled rows, checks included.

    Raises:
        JudgeError: The judge failed.
    """
    answers: list[AttributedAnswer] = []
    for first in range(0, len(rows), TOGETHER):
        requests = [
            GroundingRequest(
                row.question,
                parse(row.answer, [item for item in row.evidence if isinstance(item, Triple)]),
                prepare(row.evidence),
                thresholds=thresholds,
            )
            for row in rows[first : first + TOGETHER]
        ]
        found, _, problems = grounder.ground(requests)
        if problems:
            raise JudgeError(problems[0].message)
        answers += found
        progress(len(answers), len(rows))
    return answers


def _claims(answer: AttributedAnswer) -> tuple[tuple[float, float], ...]:
    """Support and contradiction of the claims."""
    return tuple(
        (sentence.support or 0.0, sentence.contradiction or 0.0)
        for sentence in answer.sentences
        if sentence.category is not None
    )


def _thresholds(rows: Sequence[Scored]) -> list[float]:
    """The midpoints between scores, rounded as in the settings, and one above the highest.

    A midpoint leaves a margin on both sides for future answers.
    """
    seen = sorted({0.0, *(row.score for row in rows)})
    middles = [rounded_up((low + high) / 2) for low, high in pairwise(seen)]
    return [*middles, min(1.0, rounded_up(seen[-1]) + 1e-4)]


def _contradiction(
    rows: Sequence[_Row], support: float, before: VerdictThresholds
) -> Contradiction | None:
    """The threshold that best separates contradicted rows that do not pass from the others."""
    shares: dict[bool, list[float]] = {True: [], False: []}
    for row in rows:
        if (likely := row.against(support)) is not None:
            shares[row.label is Verdict.CONTRADICTED].append(likely)
    against, others = shares[True], shares[False]
    if min(len(against), len(others)) < LEAST_LABELS:
        return None

    def at_threshold(threshold: float) -> Contradiction:
        return Contradiction(
            threshold=threshold,
            found=sum(share >= threshold for share in against) / len(against),
            wrong=sum(share >= threshold for share in others) / len(others),
        )

    seen = sorted({*against, *others})
    middles = {rounded_up((low + high) / 2) for low, high in pairwise(seen)}
    points = [at_threshold(threshold) for threshold in {before.contradiction, *middles}]
    best = max(point.found - point.wrong for point in points)
    good = [point for point in points if point.found - point.wrong >= best - 2.0 * NEARLY]
    return min(good, key=lambda point: abs(point.threshold - before.contradiction))
