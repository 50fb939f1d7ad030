"""Thresholds and weights learned from readers' feedback.

An answer is labelled by what readers said of it: wrong with any thumb down or correction, right
with thumbs up alone. A threshold on a score lets an answer pass at or above it; the false-pass
rate is the share of the wrong answers that pass.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from math import ceil, sqrt

from pydantic import Field, FiniteFloat

from guardrail.errors import InputError
from guardrail.log.entries import Feedback, Record
from guardrail.log.records import Readable
from guardrail.report.summary import intent_of
from guardrail.types import Probability, Value

__all__ = [
    "CurvePoint",
    "Label",
    "Tuning",
    "WeightAdvice",
    "learn_sck_weights",
    "read_labels",
    "tune",
]

LEAST_LABELS = 10
"""Fewer wrong or fewer right answers than this give no threshold worth the name."""
Z_95 = 1.96
"""Two-sided 95 % of the normal distribution, for Wilson's interval."""
WEIGHT_STEP = 10
"""SCK weights are tried in tenths."""
SCK_PARTS = ("sck.structure", "sck.content", "sck.knowledge")


class Label(Value):
    """What readers said of one answer.

    Attributes:
        record: The answer.
        right: True when readers found it right.
    """

    record: Record
    right: bool


class CurvePoint(Value):
    """What a threshold lets through.

    Attributes:
        threshold: Least score that passes.
        false_pass: Share of the wrong answers that pass.
        upper: Upper end of its 95 % Wilson interval.
        pass_right: Share of the right answers that pass.
        wrong_among_passed: Share of wrong ones among those that pass; None when none does.
    """

    threshold: FiniteFloat
    false_pass: Probability
    upper: Probability
    pass_right: Probability
    wrong_among_passed: Probability | None


class Tuning(Value):
    """A threshold for a wanted false-pass rate, with the whole curve.

    Attributes:
        score: Name of the score.
        wanted: Most false passes allowed, as a share of the wrong answers.
        right: Number of answers found right.
        wrong: Number of answers found wrong.
        chosen: The lowest threshold within what is wanted; None where even the highest score
            lets too many pass.
        auc: Probability that a right answer scores above a wrong one.
        curve: By rising threshold.
    """

    score: str
    wanted: Probability
    right: int
    wrong: int
    chosen: CurvePoint | None
    auc: Probability
    curve: tuple[CurvePoint, ...]

    @property
    def toml(self) -> str:
        """The setting to copy into ``guardrail.toml``; empty without a threshold."""
        if self.chosen is None:
            return ""
        # Rounded up, since a lower threshold would let more pass than was asked for.
        threshold = ceil(round(self.chosen.threshold * 1e4, 6)) / 1e4
        return f'[policy.thresholds]\n"{self.score}" = {threshold:.4f}\n'


class WeightAdvice(Value):
    """Weights of S, C and K that order right answers above wrong ones best, for one intent.

    Attributes:
        intent: Of the question; ``all`` for answers of every intent together.
        labels: Number of answers it rests on.
        structure: α of SCK eq. 5.
        content: β.
        knowledge: γ.
        auc: Probability that a right answer scores above a wrong one, with these weights.
        auc_equal: The same with equal weights.
    """

    intent: str
    labels: int = Field(ge=0)
    structure: Probability
    content: Probability
    knowledge: Probability
    auc: Probability
    auc_equal: Probability


def read_labels(log: Readable) -> list[Label]:
    """The answers that readers judged.

    Args:
        log: The score log with its feedback.

    Raises:
        RecordError: The log cannot be read.
    """
    said: dict[str, list[Feedback]] = defaultdict(list)
    for one in log.feedback():
        said[one.record_id].append(one)
    labels = []
    for record in log.records() if said else ():
        verdicts = said.get(record.id, [])
        if any(one.thumb < 0 or one.correction for one in verdicts):
            labels.append(Label(record=record, right=False))
        elif any(one.thumb > 0 for one in verdicts):
            labels.append(Label(record=record, right=True))
    return labels


def tune(labels: Sequence[Label], *, score: str = "overall", false_pass: float = 0.05) -> Tuning:
    """Choose the lowest threshold that lets at most a share of the wrong answers pass.

    Args:
        labels: The judged answers.
        score: Name of the score.
        false_pass: The share allowed, in [0, 1].

    Raises:
        InputError: There are too few labels with that score.
    """
    scored = [
        (value, one.right) for one in labels if (value := one.record.score(score)) is not None
    ]
    good = sorted(value for value, right in scored if right)
    bad = sorted(value for value, right in scored if not right)
    if min(len(good), len(bad)) < LEAST_LABELS:
        raise InputError(
            f"{len(good)} right and {len(bad)} wrong answers with a score {score!r} have feedback; "
            f"{LEAST_LABELS} of each are needed"
        )
    curve = [_point(threshold, good, bad) for threshold in _thresholds(good, bad)]
    chosen = next((point for point in curve if point.false_pass <= false_pass), None)
    return Tuning(
        score=score,
        wanted=false_pass,
        right=len(good),
        wrong=len(bad),
        chosen=chosen,
        auc=_auc(good, bad),
        curve=tuple(curve),
    )


def learn_sck_weights(labels: Sequence[Label]) -> list[WeightAdvice]:
    """Weights of SCK's parts by intent, where readers judged enough answers (SCK 2.5, Table 3).

    Every mix in tenths is tried; of equally good ones the most even is taken.

    Args:
        labels: The judged answers; those without all three parts are left out.
    """
    groups: dict[str, list[tuple[tuple[float, ...], bool]]] = defaultdict(list)
    for one in labels:
        parts = [one.record.score(name) for name in SCK_PARTS]
        known = tuple(part for part in parts if part is not None)
        if len(known) == len(SCK_PARTS):
            groups["all"].append((known, one.right))
            groups[intent_of(one.record) or "none"].append((known, one.right))
    mixes = [
        tuple(part / WEIGHT_STEP for part in mix)
        for mix in product(range(WEIGHT_STEP + 1), repeat=len(SCK_PARTS))
        if sum(mix) == WEIGHT_STEP
    ]
    advice = []
    for intent, rows in groups.items():
        right = sum(1 for _, good in rows if good)
        if min(right, len(rows) - right) < LEAST_LABELS:
            continue
        best = max(mixes, key=lambda mix: (_mixed(rows, mix), -max(mix)))
        advice.append(
            WeightAdvice(
                intent=intent,
                labels=len(rows),
                structure=best[0],
                content=best[1],
                knowledge=best[2],
                auc=_mixed(rows, best),
                auc_equal=_mixed(rows, (1.0, 1.0, 1.0)),
            )
        )
    return advice


def _mixed(rows: Iterable[tuple[tuple[float, ...], bool]], mix: tuple[float, ...]) -> float:
    good: list[float] = []
    bad: list[float] = []
    for parts, right in rows:
        value = round(sum(weight * part for weight, part in zip(mix, parts, strict=True)), 12)
        (good if right else bad).append(value)
    return _auc(sorted(good), sorted(bad))


def _thresholds(good: Sequence[float], bad: Sequence[float]) -> list[float]:
    """Every score seen, and one just above the highest, which lets nothing pass."""
    seen = sorted({*good, *bad})
    return [*seen, seen[-1] + max(1e-4, 1e-4 * abs(seen[-1]))]


def _point(threshold: float, good: Sequence[float], bad: Sequence[float]) -> CurvePoint:
    passed_bad = len(bad) - bisect_left(bad, threshold)
    passed_good = len(good) - bisect_left(good, threshold)
    passed = passed_bad + passed_good
    return CurvePoint(
        threshold=threshold,
        false_pass=passed_bad / len(bad),
        upper=_wilson_upper(passed_bad, len(bad)),
        pass_right=passed_good / len(good),
        wrong_among_passed=passed_bad / passed if passed else None,
    )


def _wilson_upper(hits: int, total: int) -> float:
    share, square = hits / total, Z_95 * Z_95
    middle = share + square / (2 * total)
    reach = Z_95 * sqrt(share * (1 - share) / total + square / (4 * total * total))
    return min(1.0, (middle + reach) / (1 + square / total))


def _auc(good: Sequence[float], bad: Sequence[float]) -> float:
    """Area under the ROC curve by ranks; ties count half. Both are sorted."""
    below = at = 0
    wins = 0.0
    for value in good:
        while below < len(bad) and bad[below] < value:
            below += 1
        at = max(at, below)
        while at < len(bad) and bad[at] <= value:
            at += 1
        wins += below + 0.5 * (at - below)
    return wins / (len(good) * len(bad))
