"""Thresholds and weights learned from readers' feedback.

An answer is labelled by what readers said of it: wrong with any thumb down or correction, right
with thumbs up alone. A threshold on a score lets an answer pass at or above it; the false-pass
rate is the share of the wrong answers that pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

from pydantic import Field

from guardrail.core.errors import InputError
from guardrail.core.types import Probability, Value
from guardrail.log.entries import Feedback, Record
from guardrail.log.records import SQLiteLog
from guardrail.tuning.curve import (
    LEAST_LABELS,
    Scored,
    Tuning,
    area,
    chosen_point,
    curve_of,
)

__all__ = [
    "Label",
    "WeightAdvice",
    "learn_sck_weights",
    "read_labels",
    "tune",
]

SECTION = "policy.thresholds"
"""Where the settings hold thresholds on scores."""

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


def read_labels(log: SQLiteLog) -> list[Label]:
    """The answers that readers judged.

    Args:
        log: The score log with its feedback.

    Raises:
        RecordError: The log cannot be read.
    """
    said: dict[str, list[Feedback]] = defaultdict(list)
    for item in log.feedback():
        said[item.record_id].append(item)
    labels = []
    for record in log.records() if said else ():
        verdicts = said.get(record.id, [])
        if any(verdict.thumb < 0 or verdict.correction for verdict in verdicts):
            labels.append(Label(record=record, right=False))
        elif any(verdict.thumb > 0 for verdict in verdicts):
            labels.append(Label(record=record, right=True))
    return labels


def tune(labels: Sequence[Label], *, score: str = "overall", false_pass: float = 0.05) -> Tuning:
    """Choose the best threshold that lets at most a share of the wrong answers pass.

    Args:
        labels: The judged answers.
        score: Name of the score.
        false_pass: The share allowed, in [0, 1].

    Raises:
        InputError: There are too few labels with that score.
    """
    rows = [
        Scored(value, label.right, label.record.id)
        for label in labels
        if (value := label.record.score(score)) is not None
    ]
    right = sum(row.right for row in rows)
    if min(right, len(rows) - right) < LEAST_LABELS:
        raise InputError(
            f"{right} right and {len(rows) - right} wrong answers with a score {score!r} have "
            f"feedback; {LEAST_LABELS} of each are needed"
        )
    curve = curve_of(rows, _thresholds(rows))
    return Tuning(
        section=SECTION,
        score=score,
        wanted=false_pass,
        right=right,
        wrong=len(rows) - right,
        chosen=chosen_point(curve, false_pass),
        auc=area(rows),
        curve=tuple(curve),
    )


def learn_sck_weights(labels: Sequence[Label]) -> list[WeightAdvice]:
    """Weights of SCK's parts by intent, where readers judged enough answers (SCK 2.5, Table 3).

    Every mix in tenths is tried; of equally good ones the most even is taken.

    Args:
        labels: The judged answers; those without all three parts are left out.
    """
    groups: dict[str, list[tuple[tuple[float, ...], bool]]] = defaultdict(list)
    for label in labels:
        parts = [label.record.score(name) for name in SCK_PARTS]
        known = tuple(part for part in parts if part is not None)
        if len(known) == len(SCK_PARTS):
            groups["all"].append((known, label.right))
            groups[label.record.tags.get("intent") or "none"].append((known, label.right))
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
    return area(
        Scored(
            round(sum(weight * part for weight, part in zip(mix, parts, strict=True)), 12),
            right,
            "",
        )
        for parts, right in rows
    )


def _thresholds(rows: Sequence[Scored]) -> list[float]:
    """Every score seen, and one just above the highest, which lets nothing pass."""
    seen = sorted({row.score for row in rows})
    return [*seen, seen[-1] + max(1e-4, 1e-4 * abs(seen[-1]))]
