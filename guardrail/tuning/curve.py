"""Shares of right and wrong rows that pass at each threshold, and the choice of a threshold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from guardrail.core.types import Probability, Value
from guardrail.intervals import Rate, effective_size, share

__all__ = [
    "LEAST_LABELS",
    "CurvePoint",
    "Scored",
    "Tuning",
    "area",
    "chosen_point",
    "curve_of",
    "rounded_up",
    "toml_key",
]

LEAST_LABELS = 10
"""Minimum number of right rows, and of wrong rows, to learn a threshold from."""


class Scored(NamedTuple):
    """A row that people judged, with its score.

    Attributes:
        score: The row passes at thresholds up to this.
        right: True if it should pass.
        group: Rows of the same group are not independent.
    """

    score: float
    right: bool
    group: str


class CurvePoint(Value):
    """Shares of rows that pass at a threshold, with Wilson's 95 % intervals.

    Attributes:
        threshold: Lowest score that passes.
        false_pass: Share of the wrong rows that pass.
        lower: Lower end of its interval.
        upper: Upper end of its interval.
        pass_right: Share of the right rows that pass.
        right_lower: Lower end of its interval.
        right_upper: Upper end of its interval.
        wrong_among_passed: Share of wrong rows among those that pass; None if none does.
    """

    threshold: FiniteFloat
    false_pass: Probability
    lower: Probability
    upper: Probability
    pass_right: Probability
    right_lower: Probability
    right_upper: Probability
    wrong_among_passed: Probability | None


class Tuning(Value):
    """A threshold for a given false-pass rate, with the whole curve.

    Attributes:
        section: Section of the settings that the threshold belongs to.
        score: Name of the score and of its setting.
        wanted: Maximum share of wrong rows that may pass.
        right: Number of right rows.
        wrong: Number of wrong rows.
        chosen: The best threshold (see ``chosen_point``); None if too many wrong rows have the
            highest score.
        auc: Probability that a right row scores above a wrong one.
        curve: By rising threshold.
    """

    section: str
    score: str
    wanted: Probability
    right: int
    wrong: int
    chosen: CurvePoint | None
    auc: Probability
    curve: tuple[CurvePoint, ...]

    @property
    def settings(self) -> dict[str, float]:
        """The settings of the section by name; empty without a threshold."""
        return {} if self.chosen is None else {self.score: rounded_up(self.chosen.threshold)}

    @property
    def toml(self) -> str:
        """The settings as TOML; empty without a threshold."""
        lines = [f"{toml_key(name)} = {value:.4f}\n" for name, value in self.settings.items()]
        return f"[{self.section}]\n{''.join(lines)}" if lines else ""


def rounded_up(threshold: float) -> float:
    """A threshold with four digits; rounding down would let more rows pass."""
    return ceil(round(threshold * 1e4, 6)) / 1e4


def toml_key(name: str) -> str:
    """A TOML key, quoted if it contains dots."""
    return f'"{name}"' if "." in name else name


def curve_of(rows: Sequence[Scored], thresholds: Iterable[float]) -> list[CurvePoint]:
    """Shares of right and of wrong rows that pass at each threshold, by rising threshold.

    Args:
        rows: Rows, some right and some wrong.
        thresholds: The thresholds, in any order.
    """
    kinds = []
    for right in (True, False):
        scores = np.array([row.score for row in rows if row.right is right])
        groups = np.array([row.group for row in rows if row.right is right])
        kinds.append((scores, np.unique(groups, return_inverse=True)[1]))
    curve: list[CurvePoint] = []
    for threshold in sorted(set(thresholds)):
        good, bad = (_passing(scores >= threshold, groups) for scores, groups in kinds)
        passed = good.value * good.rows + bad.value * bad.rows
        curve.append(
            CurvePoint(
                threshold=threshold,
                false_pass=bad.value,
                lower=bad.low,
                upper=bad.high,
                pass_right=good.value,
                right_lower=good.low,
                right_upper=good.high,
                wrong_among_passed=bad.value * bad.rows / passed if passed else None,
            )
        )
    return curve


def chosen_point(curve: Sequence[CurvePoint], false_pass: float) -> CurvePoint | None:
    """The best threshold at which at most a share of the wrong rows passes; None if there is none.

    The best one passes most right rows and, among equals, is the highest.
    """
    within = [point for point in curve if point.false_pass <= false_pass]
    return max(within, key=lambda point: (point.pass_right, point.threshold), default=None)


def area(rows: Sequence[Scored]) -> float:
    """Probability that a right row scores above a wrong one: the area under the ROC curve.

    Ties count half.
    """
    good = np.array([row.score for row in rows if row.right])
    bad = np.sort([row.score for row in rows if not row.right])
    below, up_to = (np.searchsorted(bad, good, side) for side in ("left", "right"))
    return float((below + up_to).mean() / (2 * len(bad)))


def _passing(passed: NDArray[np.bool_], groups: NDArray[np.int64]) -> Rate:
    return share(int(passed.sum()), len(passed), effective_size(passed, groups))
