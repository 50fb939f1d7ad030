"""What each threshold lets pass, of right rows and of wrong ones, and the threshold to choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

from pydantic import FiniteFloat

from guardrail.core.types import Probability, Value
from guardrail.intervals import GroupedShare

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
"""Fewer wrong or fewer right rows than this give no threshold worth the name."""


class Scored(NamedTuple):
    """A row that people judged, with its score.

    Attributes:
        score: It passes at thresholds up to this.
        right: Whether it should pass.
        group: Rows of one group are not independent of each other.
    """

    score: float
    right: bool
    group: str


class CurvePoint(Value):
    """What a threshold lets through; intervals are Wilson's, at 95 %.

    Attributes:
        threshold: Least score that passes.
        false_pass: Share of the wrong rows that pass.
        lower: Lower end of its interval.
        upper: Upper end of its interval.
        pass_right: Share of the right rows that pass.
        right_lower: Lower end of its interval.
        right_upper: Upper end of its interval.
        wrong_among_passed: Share of wrong ones among those that pass; None when none does.
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
    """A threshold for a wanted false-pass rate, with the whole curve.

    Attributes:
        section: Section of the settings that the threshold belongs to.
        score: Name of the score, and of its setting.
        wanted: Most false passes allowed, as a share of the wrong rows.
        right: Number of rows found right.
        wrong: Number of rows found wrong.
        chosen: Of the thresholds within what is wanted the one that passes most right rows, and
            of equals the highest, which passes fewest wrong ones; None where even the highest score
            lets too many pass.
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
        """The settings as they stand in ``guardrail.toml``; empty without a threshold."""
        lines = [f"{toml_key(name)} = {value:.4f}\n" for name, value in self.settings.items()]
        return f"[{self.section}]\n{''.join(lines)}" if lines else ""


def rounded_up(threshold: float) -> float:
    """A threshold as it is written; a lower one would let more pass than was asked for."""
    return ceil(round(threshold * 1e4, 6)) / 1e4


def toml_key(name: str) -> str:
    """A key of TOML, in quotes where its dots would open sections."""
    return f'"{name}"' if "." in name else name


def curve_of(rows: Sequence[Scored], thresholds: Iterable[float]) -> list[CurvePoint]:
    """What each threshold lets pass, by rising threshold.

    Args:
        rows: Rows of which some are right and some wrong.
        thresholds: The thresholds, in any order.
    """
    order = sorted(rows, key=lambda row: row.score)
    good = GroupedShare([row.group for row in order if row.right])
    bad = GroupedShare([row.group for row in order if not row.right])
    curve: list[CurvePoint] = []
    place = 0
    for threshold in sorted(set(thresholds)):
        while place < len(order) and order[place].score < threshold:
            (good if order[place].right else bad).fail(order[place].group)
            place += 1
        lower, upper = bad.interval()
        right_lower, right_upper = good.interval()
        passed = good.passed + bad.passed
        curve.append(
            CurvePoint(
                threshold=threshold,
                false_pass=bad.share,
                lower=lower,
                upper=upper,
                pass_right=good.share,
                right_lower=right_lower,
                right_upper=right_upper,
                wrong_among_passed=bad.passed / passed if passed else None,
            )
        )
    return curve


def chosen_point(curve: Sequence[CurvePoint], false_pass: float) -> CurvePoint | None:
    """Of the thresholds that let at most a share of the wrong rows pass, the best; None of none.

    The best passes most right rows; of those that pass as many, the highest passes fewest wrong.
    """
    within = [point for point in curve if point.false_pass <= false_pass]
    return max(within, key=lambda point: (point.pass_right, point.threshold), default=None)


def area(rows: Iterable[Scored]) -> float:
    """Probability that a right row scores above a wrong one: the area under the ROC curve.

    Ties count half.
    """
    rows = list(rows)
    good = sorted(row.score for row in rows if row.right)
    bad = sorted(row.score for row in rows if not row.right)
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
