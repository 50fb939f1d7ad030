"""Whether a chat model as second judge improves on the first, measured on labelled answers.

The answers are judged by the first judge alone and with the second opinion. The model's own
probabilities are calibrated by five-fold cross-validation. It is recommended only if the gain in
balanced accuracy is significant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import FiniteFloat

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.types import (
    AttributedAnswer,
    Category,
    Probability,
    SecondOpinion,
    Value,
    Verdict,
    VerdictThresholds,
)
from guardrail.engine.parts import Parts
from guardrail.evaluation.rows import LabelledRow
from guardrail.tuning.thresholds import FOLDS, Scored, area, folds_of, judged, require_both
from judges.chat import ChatJudge
from judges.second_opinion import OwnOpinion, SecondJudge, SecondOpinions
from judges.service import RememberedGrounding
from judges.settings import Calibration, SecondJudgeSettings, Spending, fit


class Quality(Value):
    """Balanced accuracy, and the probability that a right row has more support than a wrong one."""

    balanced: Probability
    auc: Probability


class SecondTuning(Value):
    """The benefit of a second judge on labelled rows.

    Attributes:
        groups: Number of different evidence texts.
        asked: Rows with a sentence that the second judge was asked about.
        answered: Rows on which its answer counted.
        missing: Rows on which it did not, by reason.
        gain: Gain in balanced accuracy.
        lower: Its lower bound, one-sided, at 90 %, by bootstrap over the groups.
        calibration: Fitted on all answered rows.
        usage: Resources that the model used, by name.
    """

    least_groups: ClassVar[int] = 10
    """Least number of groups: the bound between fewer is too near the gain itself."""

    judge: str
    rows: int
    groups: int
    asked: int
    answered: int
    missing: dict[str, int]
    first: Quality
    both: Quality
    gain: FiniteFloat
    lower: FiniteFloat
    calibration: Calibration
    usage: dict[str, int]

    @property
    def helps(self) -> bool:
        """True if the gain is significant, and measured on enough groups."""
        return self.lower > 0.0 and self.groups >= self.least_groups


def tune_second(
    rows: Sequence[LabelledRow],
    parts: Parts,
    second: ChatJudge,
    bounds: SecondJudgeSettings | None = None,
    *,
    thresholds: VerdictThresholds,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SecondTuning:
    """Measure a second judge, whose calibration is changed.

    Args:
        rows: The labelled answers.
        parts: The engine with the first judge alone.
        second: The second judge.
        bounds: Which sentences it is asked about; None for the defaults.
        thresholds: The current thresholds.
        progress: Called with the number of judged rows and of all rows.

    Raises:
        InputError: There are too few rows, or all have one label.
        JudgeError: The first judge failed, or the second answered on no row.
        ConfigError: There is no first judge.
    """
    require_both(rows)
    if parts.grounding is None:
        raise ConfigError("a second judge comes after a first: judge must not be 'none'")
    bounds = bounds or SecondJudgeSettings(judge=second.name)
    first = RememberedGrounding(parts.grounding)
    # A day: the model is measured here, and each call has its own limit.
    unbounded = bounds.model_copy(update={"timeout_s": 86_400.0, "per_answer": Spending()})
    both, own = (
        parts.grounder_of(first, SecondOpinions(kind(second, second.name), unbounded))
        for kind in (SecondJudge, OwnOpinion)
    )
    alone = judged(parts.grounder_of(first), rows, thresholds)
    second.calibration = Calibration()
    answers = judged(own, rows, thresholds, progress)
    known = {place: words for place, answer in enumerate(answers) if (words := _shares(answer))}
    reasons = [why for answer in answers for why in _missing(answer)]
    if reasons and not known:
        raise JudgeError(f"{second.name} answered on no row: {reasons[0]}")

    def fitted(places: Sequence[int]) -> Calibration:
        labels = (Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
        used = [place for place in places if place in known]
        return fit(
            [known[place] for place in used], [labels.index(rows[place].label) for place in used]
        )

    folds = folds_of([row.group for row in rows])
    crossed = dict[int, AttributedAnswer]()
    for fold in range(FOLDS):
        second.calibration = fitted([place for place, of in enumerate(folds) if of != fold])
        places = [place for place, of in enumerate(folds) if of == fold]
        found = judged(both, [rows[place] for place in places], thresholds)
        crossed |= dict(zip(places, found, strict=True))
    final = [crossed[place] for place in range(len(rows))]
    outcomes = [_outcomes(rows, alone), _outcomes(rows, final)]
    before, after = (_quality(rows, *outcome) for outcome in outcomes)
    return SecondTuning(
        judge=second.name,
        rows=len(rows),
        groups=len({row.group for row in rows}),
        asked=sum(bool(_opinions(answer)) for answer in final),
        answered=sum(bool(_opinions(answer)) and not _missing(answer) for answer in final),
        missing=Counter(why for answer in final for why in dict.fromkeys(_missing(answer))),
        first=before,
        both=after,
        gain=after.balanced - before.balanced,
        lower=_lower_bound(rows, outcomes[1][0] - outcomes[0][0]),
        calibration=fitted(range(len(rows))),
        usage=dict(second.in_use().counts),
    )


def _opinions(answer: AttributedAnswer) -> list[SecondOpinion]:
    return [one.second_opinion for one in answer.sentences if one.second_opinion is not None]


def _missing(answer: AttributedAnswer) -> list[str]:
    """Why opinions on an answer do not count."""
    return [one.missing for one in _opinions(answer) if one.missing is not None]


def _shares(answer: AttributedAnswer) -> tuple[float, float, float] | None:
    """The second judge's probabilities for an answer with one claim; None if it gave none."""
    claims = [sentence for sentence in answer.sentences if sentence.category is not None]
    if len(claims) != 1 or claims[0].judgement is None:
        return None
    opinion = claims[0].second_opinion
    if opinion is None or opinion.missing is not None:
        return None
    scores = claims[0].judgement.scores
    support, against = scores[Category.SUPPORTIVE], scores[Category.CONTRADICTORY]
    return support, max(0.0, 1.0 - support - against), against


def _outcomes(
    rows: Sequence[LabelledRow], answers: Sequence[AttributedAnswer]
) -> tuple[NDArray[np.float64], list[float]]:
    """[n] 1 for each correctly judged row, else 0; and the support of each row."""
    correct, support = [], []
    for row, answer in zip(rows, answers, strict=True):
        claims = [sentence for sentence in answer.sentences if sentence.category is not None]
        passed = all(claim.category is Category.SUPPORTIVE for claim in claims)
        correct.append(float(passed is (row.label is Verdict.SUPPORTED)))
        support.append(min((claim.support or 0.0 for claim in claims), default=1.0))
    return np.array(correct), support


def _quality(
    rows: Sequence[LabelledRow], correct: NDArray[np.float64], support: Sequence[float]
) -> Quality:
    right = np.array([row.label is Verdict.SUPPORTED for row in rows])
    scored = [
        Scored(score, bool(kind), row.group)
        for score, kind, row in zip(support, right, rows, strict=True)
    ]
    balanced = 0.5 * (correct[right].mean() + correct[~right].mean())
    return Quality(balanced=float(balanced), auc=area(scored))


def _lower_bound(rows: Sequence[LabelledRow], gains: NDArray[np.float64]) -> float:
    """Lower bound of the gain in balanced accuracy, 1, 0 or -1 a row, by bootstrap over groups."""
    names, group = np.unique([row.group for row in rows], return_inverse=True)
    right = np.array([row.label is Verdict.SUPPORTED for row in rows])
    rng = np.random.default_rng(1)
    samples = 2_000
    times = rng.multinomial(len(names), [1 / len(names)] * len(names), samples)
    total = np.zeros(samples)
    for kind in (right, ~right):
        gained = times @ np.bincount(group, gains * kind, len(names))
        total += 0.5 * gained / np.maximum(1, times @ np.bincount(group, kind, len(names)))
    return float(np.sort(total)[round(0.1 * samples)])
