"""Thresholds learned from readers' feedback.

An answer with any thumb down or correction is wrong; one with only thumbs up is right. An answer
passes if its score reaches the threshold; the false-pass rate is the share of wrong answers that
pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from guardrail.core.errors import InputError
from guardrail.core.types import Value
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
    "read_labels",
    "tune",
]

SECTION = "policy.thresholds"
"""Section of the settings for thresholds on scores."""


class Label(Value):
    """The readers' opinion of one answer.

    Attributes:
        record: The answer.
        right: True if readers found it right.
    """

    record: Record
    right: bool


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
    """Choose the best threshold at which at most a share of the wrong answers passes.

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


def _thresholds(rows: Sequence[Scored]) -> list[float]:
    """Every score, and a threshold just above the highest, which nothing passes."""
    seen = sorted({row.score for row in rows})
    return [*seen, seen[-1] + max(1e-4, 1e-4 * abs(seen[-1]))]
