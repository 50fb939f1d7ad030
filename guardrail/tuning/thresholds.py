"""Thresholds learned from labelled answers, or from readers' feedback in a score log.

The engine judges every labelled answer with the current thresholds, checks and second judge
included. The score of an answer is the highest threshold of support at which all of it would pass.
Learned thresholds are cross-validated: the engine judges each fold again with those learned from
the others. They are used only if more rows are classified correctly than with the current ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil
from statistics import fmean
from typing import NamedTuple, TypeVar

import numpy as np
from pydantic import FiniteFloat

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
from guardrail.intervals import Rate, clustered_share
from guardrail.log.records import SQLiteLog
from guardrail.markers.grammar import parse
from guardrail.verdict.claims import GroundingRequest, claims_of
from guardrail.verdict.grounder import Grounder

T = TypeVar("T")

LEAST_LABELS = 10
"""Minimum number of right rows, and of wrong rows, to learn a threshold from."""
FOLDS = 5
"""Folds of the cross-validation."""


class Scored(NamedTuple):
    """A row that people judged; it passes at thresholds up to its score.

    Rows of the same group are not independent.
    """

    score: float
    right: bool
    group: str


class CurvePoint(Value):
    """Shares of wrong and right rows that pass at a threshold, with Wilson's 95 % intervals."""

    threshold: FiniteFloat
    wrong: Rate
    right: Rate


class Tuning(Value):
    """A threshold on a score, with the whole curve.

    Attributes:
        section: Section of the settings that the threshold belongs to.
        wanted: Maximum share of wrong rows that may pass; None for the best balanced accuracy.
        groups: Number of different evidence texts of labelled rows.
        chosen: The point that passes most right rows; None if too many wrong rows have the highest
            score.
        auc: Probability that a right row scores above a wrong one.
        curve: By rising threshold; where a second judge decides now, by its word.
        before: Balanced accuracy of the engine on labelled rows under the current thresholds.
        after: The same of each fold under the thresholds learned from the other folds.
        settings: The settings of the section by name; empty if nothing useful was learned.
    """

    section: str
    score: str
    wanted: Probability | None
    right: int
    wrong: int
    groups: int | None = None
    chosen: CurvePoint | None
    auc: Probability
    curve: tuple[CurvePoint, ...]
    before: Probability | None = None
    after: Probability | None = None
    settings: Mapping[str, float]


class _Row(NamedTuple):
    """A labelled row with support and contradiction of each of its claims."""

    label: Verdict
    group: str
    claims: tuple[tuple[float, float], ...]

    @property
    def scored(self) -> Scored:
        """With the highest threshold at which all claims pass; 0 if one never does."""
        passes_to = min((_passes_to(*pair) for pair in self.claims), default=1.0)
        return Scored(passes_to, self.label is Verdict.SUPPORTED, self.group)


def tune_feedback(log: SQLiteLog, *, score: str = "overall", false_pass: float = 0.05) -> Tuning:
    """Learn a threshold on a score from readers' feedback.

    An answer with any thumb down or correction is wrong; one with only thumbs up is right. At most
    the share ``false_pass`` of the wrong answers passes.

    Raises:
        InputError: There are too few answers with feedback and that score.
        RecordError: The log cannot be read.
    """
    with log.reading() as db:
        # Score of each answer with feedback, whether a reader found it wrong, and its id
        found = db.execute(
            """SELECT CASE :score WHEN 'overall' THEN overall ELSE
                (SELECT json_extract(value, '$.value')
                    FROM json_each(payload, '$.answer.scorecard.scores') WHERE key = :score)
                END AS score, max(thumb < 0 OR coalesce(correction, '') != ''), id
            FROM responses JOIN feedback ON record_id = id
            WHERE thumb != 0 OR coalesce(correction, '') != ''
            GROUP BY id HAVING score IS NOT NULL""",
            {"score": score},
        ).fetchall()
    rows = [Scored(value, not wrong, name) for value, wrong, name in found]
    return tune_scored(rows, score=score, false_pass=false_pass)


def tune_scored(rows: Sequence[Scored], *, score: str, false_pass: float) -> Tuning:
    """Choose the best threshold at which at most the share ``false_pass`` of wrong rows passes."""
    right = sum(row.right for row in rows)
    if min(right, len(rows) - right) < LEAST_LABELS:
        raise InputError(
            f"{right} right and {len(rows) - right} wrong answers with a score {score!r} have "
            f"feedback; {LEAST_LABELS} of each are needed"
        )
    seen = {row.score for row in rows}
    above = max(seen) + max(1e-4, 1e-4 * abs(max(seen)))  # nothing passes this
    curve = _curve(rows, {*seen, above})
    chosen = _within(curve, false_pass)
    return Tuning(
        section="policy.thresholds",
        score=score,
        wanted=false_pass,
        right=right,
        wrong=len(rows) - right,
        chosen=chosen,
        auc=area(rows),
        curve=tuple(curve),
        settings={} if chosen is None else {score: _rounded_up(chosen.threshold)},
    )


def tune_labelled(
    rows: Sequence[LabelledRow],
    grounder: Grounder,
    *,
    false_pass: float | None = None,
    before: VerdictThresholds = Strictness.BALANCED.thresholds,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tuning:
    """Learn thresholds of support and contradiction, and cross-validate them.

    Without ``false_pass``, the share of wrong rows that may pass, the thresholds are those of the
    best balanced accuracy. They are worth setting only if held-out rows are classified better and
    no more right rows are called contradicted.

    Args:
        rows: The labelled answers.
        grounder: Judges them.
        false_pass: In [0, 1].
        before: The current thresholds.
        progress: Called with the number of judged rows and of all; each row is judged twice.

    Raises:
        InputError: There are too few rows, or all have one label.
        JudgeError: The judge failed.
    """
    require_both(rows)
    answers = judged(grounder, rows, before, lambda done, _: progress(done, 2 * len(rows)))
    found = [
        _Row(row.label, row.group, _claims(row, answer, before))
        for row, answer in zip(rows, answers, strict=True)
    ]
    scored = [row.scored for row in found]
    curve = _labelled_curve(found)
    right = sum(row.right for row in scored)
    crossed: dict[int, AttributedAnswer] = {}
    for places, thresholds in _crossed(found, false_pass, before):
        held_out = judged(grounder, [rows[place] for place in places], thresholds)
        crossed |= zip(places, held_out, strict=True)
        progress(len(rows) + len(crossed), 2 * len(rows))
    old, called = _outcome(rows, answers)
    new, called_now = _outcome(rows, [crossed[place] for place in range(len(rows))])
    learned = _learned(found, false_pass, before)
    helps = false_pass is not None or (new > old and called_now <= called)
    return Tuning(
        section="strictness",
        score="support",
        wanted=false_pass,
        right=right,
        wrong=len(found) - right,
        groups=len({row.group for row in found}),
        chosen=_chosen(curve, false_pass, before),
        auc=area(scored),
        curve=tuple(curve),
        before=old,
        after=new,
        settings=learned.model_dump() if learned is not None and helps else {},
    )


def require_both(rows: Sequence[LabelledRow]) -> None:
    """Raise an InputError unless there are enough rows of both kinds."""
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
    """Judge labelled rows, checks included; raises JudgeError."""
    answers: list[AttributedAnswer] = []
    for first in range(0, len(rows), 32):
        requests = [_request(row, thresholds) for row in rows[first : first + 32]]
        found, _, problems = grounder.ground(requests)
        if problems:
            raise JudgeError(problems[0].message)
        answers += found
        progress(len(answers), len(rows))
    return answers


def _request(row: LabelledRow, thresholds: VerdictThresholds) -> GroundingRequest:
    triples = [item for item in row.evidence if isinstance(item, Triple)]
    answer = parse(row.answer, triples)
    return GroundingRequest(row.question, answer, prepare(row.evidence), thresholds=thresholds)


def folds_of(groups: Sequence[str]) -> list[int]:
    """The fold of each row; rows of a group stay together if there are enough groups."""
    place = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    together = len(place) >= FOLDS
    return [(place[group] if together else at) % FOLDS for at, group in enumerate(groups)]


def area(rows: Sequence[Scored]) -> float:
    """Probability that a right row scores above a wrong one: the area under the ROC curve.

    Ties count half.
    """
    good = np.array([row.score for row in rows if row.right])
    bad = np.sort([row.score for row in rows if not row.right])
    below, up_to = (np.searchsorted(bad, good, side) for side in ("left", "right"))
    return float((below + up_to).mean() / (2 * len(bad)))


def _rounded_up(threshold: float) -> float:
    """A threshold with four digits; rounding down would let more rows pass."""
    return ceil(round(threshold * 1e4, 6)) / 1e4


def _midpoints(values: Iterable[float]) -> list[float]:
    """The rounded middles between different values, which leave a margin on both sides."""
    return [_rounded_up((low + high) / 2) for low, high in pairwise(sorted({*values}))]


def _curve(rows: Sequence[Scored], thresholds: Iterable[float]) -> list[CurvePoint]:
    """Shares of right and of wrong rows that pass at each threshold, by rising threshold."""
    kinds = [[row for row in rows if row.right is right] for right in (False, True)]
    scores = [np.array([row.score for row in kind]) for kind in kinds]
    groups = [np.unique([row.group for row in kind], return_inverse=True)[1] for kind in kinds]
    curve = []
    for threshold in sorted({*thresholds}):
        wrong, right = (
            clustered_share(score >= threshold, group)
            for score, group in zip(scores, groups, strict=True)
        )
        curve.append(CurvePoint(threshold=threshold, wrong=wrong, right=right))
    return curve


def _labelled_curve(rows: Sequence[_Row]) -> list[CurvePoint]:
    scored = [row.scored for row in rows]
    above = min(1.0, _rounded_up(max(row.score for row in scored)) + 1e-4)
    return _curve(scored, [*_midpoints([0.0, *(row.score for row in scored)]), above])


def _within(curve: Sequence[CurvePoint], false_pass: float) -> CurvePoint | None:
    """The point within a false-pass rate that passes most right rows; of equals the highest."""
    points = [point for point in curve if point.wrong.value <= false_pass]
    return max(points, key=lambda point: (point.right.value, point.threshold), default=None)


def _chosen(
    curve: Sequence[CurvePoint], false_pass: float | None, before: VerdictThresholds
) -> CurvePoint | None:
    if false_pass is not None:
        return _within(curve, false_pass)
    worth = {point: point.right.value - point.wrong.value for point in curve}
    return min(_best(worth), key=lambda point: abs(point.threshold - before.support))


def _best(worth: dict[T, float]) -> list[T]:
    """The keys whose worth (twice the balanced accuracy less one) is nearly the highest."""
    # A difference of balanced accuracy below 0.01 is chance.
    return [key for key, value in worth.items() if value >= max(worth.values()) - 2.0 * 0.01]


def _learned(
    rows: Sequence[_Row], false_pass: float | None, before: VerdictThresholds
) -> VerdictThresholds | None:
    chosen = _chosen(_labelled_curve(rows), false_pass, before)
    if chosen is None:
        return None
    support = _rounded_up(chosen.threshold)
    contradiction = _contradiction(rows, support, before.contradiction)
    removal = max(before.removal, contradiction)
    return VerdictThresholds(support=support, contradiction=contradiction, removal=removal)


def _contradiction(rows: Sequence[_Row], support: float, before: float) -> float:
    """The threshold that best separates contradicted rows that do not pass, with enough of each."""
    likely: dict[bool, list[float]] = {True: [], False: []}
    for row in rows:
        if stopped := [pair[1] for pair in row.claims if _passes_to(*pair) < support]:
            likely[row.label is Verdict.CONTRADICTED].append(max(stopped))
    if min(map(len, likely.values())) < LEAST_LABELS:
        return before
    worth = {}
    for threshold in {before, *_midpoints([*likely[True], *likely[False]])}:
        found, wrong = (np.mean(np.array(likely[kind]) >= threshold) for kind in (True, False))
        worth[threshold] = float(found - wrong)
    return min(_best(worth), key=lambda threshold: abs(threshold - before))


def _crossed(
    rows: Sequence[_Row], false_pass: float | None, before: VerdictThresholds
) -> Iterator[tuple[list[int], VerdictThresholds]]:
    """The places of each fold, with the thresholds learned from the others, else the current."""
    folds = folds_of([row.group for row in rows])
    for fold in range(FOLDS):
        rest = [row for row, of in zip(rows, folds, strict=True) if of != fold]
        both = {row.label is Verdict.SUPPORTED for row in rest} == {True, False}
        learned = _learned(rest, false_pass, before) if both else None
        yield [place for place, of in enumerate(folds) if of == fold], learned or before


def _outcome(rows: Sequence[LabelledRow], answers: Sequence[AttributedAnswer]) -> tuple[float, int]:
    """Balanced accuracy, and the number of right rows that are called contradicted."""
    passed: dict[bool, list[bool]] = {True: [], False: []}
    called = 0
    for row, answer in zip(rows, answers, strict=True):
        verdicts = {sentence.verdict for sentence in answer.sentences} - {Verdict.NO_CLAIM}
        right = row.label is Verdict.SUPPORTED
        passed[right].append(verdicts <= {Verdict.SUPPORTED})
        called += right and Verdict.CONTRADICTED in verdicts
    return 0.5 * (1.0 + fmean(passed[True]) - fmean(passed[False])), called


def _passes_to(support: float, contradiction: float) -> float:
    return support if support >= contradiction else 0.0


def _claims(
    row: LabelledRow, answer: AttributedAnswer, at: VerdictThresholds
) -> tuple[tuple[float, float], ...]:
    """Support and contradiction of the claims; certain where no threshold changes the verdict."""
    found = []
    heads = {claim.place.start for claim in claims_of(_request(row, at)) if claim.head}
    for sentence in answer.sentences:
        said, support, against = sentence.verdict, sentence.support, sentence.contradiction
        # Unsupported, the head of a table would claim nothing.
        if said is Verdict.NO_CLAIM or (sentence.start in heads and said is Verdict.SUPPORTED):
            continue
        settled = any(finding.decides for finding in sentence.findings)
        if (
            settled
            or support is None
            or against is None
            or said is not at.verdict(support, against)
        ):
            support, against = float(said is Verdict.SUPPORTED), float(said is Verdict.CONTRADICTED)
        elif support >= against and any(item.check == "unread" for item in sentence.findings):
            support = against = 0.0
        found.append((support, against))
    return tuple(found)
