"""Whether a chat model as second judge improves on the first, measured on labelled answers.

The answers are judged twice, by the first judge alone and with the second opinion. The model's
probabilities are calibrated by five-fold cross-validation. It is recommended only if the gain in
balanced accuracy is significant.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import FiniteFloat

from guardrail.core.errors import ConfigError, JudgeError
from guardrail.core.types import (
    AttributedAnswer,
    Category,
    Probability,
    Value,
    Verdict,
    VerdictThresholds,
)
from guardrail.engine.parts import Parts
from guardrail.evaluation.rows import LabelledRow
from guardrail.tuning.curve import Scored, area
from guardrail.tuning.labelled import FOLDS, folds_of, judged, require_both
from guardrail.verdict.grounder import Grounder
from judges.calibration import Calibration, fit
from judges.memory import RememberedGrounding
from judges.recalibration import RecalibratedJudge
from judges.second_opinion import SecondJudge, SecondOpinions
from judges.settings import SecondJudgeSettings

__all__ = ["SecondTuning", "tune_second"]

LABELS = (Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)

RESAMPLES = 2_000
"""Bootstrap samples of the groups of rows."""

PATIENCE_S = 86_400.0
"""Seconds to wait for the model, which is measured here; each call has its own limit."""

CONFIDENCE = 0.9
"""Share of the samples in which the second opinion must gain."""


class Quality(Value):
    """How well right and wrong rows are distinguished.

    Attributes:
        balanced: Balanced accuracy: mean share of correctly judged rows of both kinds.
        auc: Probability that a right row has more support than a wrong one.
    """

    balanced: Probability
    auc: Probability


class SecondTuning(Value):
    """The benefit of a second judge on labelled rows.

    Attributes:
        judge: Name of the second judge.
        rows: Rows.
        groups: Number of different evidence texts.
        asked: Rows with a sentence that the second judge was asked about.
        answered: Rows on which it gave a usable answer.
        first: Quality of the first judge alone.
        both: Quality with the second judge.
        gain: Gain in balanced accuracy.
        lower: Its lower bound, one-sided, at 90 %, by bootstrap over the groups.
        calibration: Fitted on all answered rows.
        usage: Resources that the model used, by name.
    """

    judge: str
    rows: int
    groups: int
    asked: int
    answered: int
    first: Quality
    both: Quality
    gain: FiniteFloat
    lower: FiniteFloat
    calibration: Calibration
    usage: dict[str, int]

    @property
    def helps(self) -> bool:
        """True if the gain is significant."""
        return self.lower > 0.0


class _Judged(NamedTuple):
    passed: bool
    support: float


def tune_second(
    rows: Sequence[LabelledRow],
    parts: Parts,
    second: RecalibratedJudge,
    bounds: SecondJudgeSettings | None = None,
    *,
    thresholds: VerdictThresholds,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SecondTuning:
    """Measure a second judge.

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
    first, both = _grounders(parts, second, bounds or SecondJudgeSettings(judge=second.name))
    alone = [_outcome(answer) for answer in judged(first, rows, thresholds)]
    answers = judged(both, rows, thresholds, progress)
    asked = [_asked(answer) for answer in answers]
    known = {place: words for place, answer in enumerate(answers) if (words := _shares(answer))}
    if any(asked) and not known:
        raise JudgeError(f"{second.name} answered on no row: {_missing(answers)}")
    folds = folds_of([row.group for row in rows])
    crossed: dict[int, _Judged] = {}
    for fold in range(FOLDS):
        second.calibration = _fitted(rows, known, [n for n, of in enumerate(folds) if of != fold])
        places = [place for place, of in enumerate(folds) if of == fold]
        found = judged(both, [rows[place] for place in places], thresholds)
        crossed |= dict(zip(places, map(_outcome, found), strict=True))
    with_second = [crossed[place] for place in range(len(rows))]
    gain = _balanced(rows, with_second) - _balanced(rows, alone)
    return SecondTuning(
        judge=second.name,
        rows=len(rows),
        groups=len({row.group for row in rows}),
        asked=sum(asked),
        answered=len(known),
        first=_quality(rows, alone),
        both=_quality(rows, with_second),
        gain=gain,
        lower=_lower_bound(rows, alone, with_second),
        calibration=_fitted(rows, known, range(len(rows))),
        usage=dict(second.in_use().counts),
    )


def _grounders(
    parts: Parts, second: RecalibratedJudge, bounds: SecondJudgeSettings
) -> tuple[Grounder, Grounder]:
    """The engine without and with the second judge; both share the results of the first judge."""
    if parts.grounding is None:
        raise ConfigError("a second judge comes after a first: judge must not be 'none'")
    first = RememberedGrounding(parts.grounding)
    opinions = SecondOpinions(
        SecondJudge(second, second.name, cache_size=0),
        band=bounds.band,
        share=bounds.share,
        timeout_s=PATIENCE_S,
    )
    return parts.grounder_of(first), parts.grounder_of(first, opinions)


def _outcome(answer: AttributedAnswer) -> _Judged:
    claims = [sentence for sentence in answer.sentences if sentence.category is not None]
    return _Judged(
        all(sentence.category is Category.SUPPORTIVE for sentence in claims),
        min((sentence.support or 0.0 for sentence in claims), default=1.0),
    )


def _asked(answer: AttributedAnswer) -> bool:
    return any(sentence.second_opinion is not None for sentence in answer.sentences)


def _missing(answers: Sequence[AttributedAnswer]) -> str:
    reasons = (
        sentence.second_opinion.missing
        for answer in answers
        for sentence in answer.sentences
        if sentence.second_opinion is not None
    )
    return next((reason for reason in reasons if reason), "no reason was given")


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


def _fitted(
    rows: Sequence[LabelledRow],
    known: dict[int, tuple[float, float, float]],
    places: Sequence[int],
) -> Calibration:
    used = [place for place in places if place in known]
    return fit(
        [known[place] for place in used], [LABELS.index(rows[place].label) for place in used]
    )


def _balanced(rows: Sequence[LabelledRow], found: Sequence[_Judged]) -> float:
    right = [item.passed for row, item in zip(rows, found, strict=True) if _right(row)]
    wrong = [not item.passed for row, item in zip(rows, found, strict=True) if not _right(row)]
    return 0.5 * (sum(right) / max(1, len(right)) + sum(wrong) / max(1, len(wrong)))


def _right(row: LabelledRow) -> bool:
    return row.label is Verdict.SUPPORTED


def _quality(rows: Sequence[LabelledRow], found: Sequence[_Judged]) -> Quality:
    scored = [
        Scored(item.support, _right(row), row.group) for row, item in zip(rows, found, strict=True)
    ]
    return Quality(balanced=_balanced(rows, found), auc=area(scored))


def _lower_bound(
    rows: Sequence[LabelledRow], alone: Sequence[_Judged], both: Sequence[_Judged]
) -> float:
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row.group, []).append(place)
    rng, names, gains = random.Random(1), list(groups), []
    for _ in range(RESAMPLES):
        places = [place for name in rng.choices(names, k=len(names)) for place in groups[name]]
        some = [rows[place] for place in places]
        gains.append(
            _balanced(some, [both[place] for place in places])
            - _balanced(some, [alone[place] for place in places])
        )
    return sorted(gains)[round((1.0 - CONFIDENCE) * RESAMPLES)]
