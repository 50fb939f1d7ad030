"""A score log in numbers: one pass over the records, memory that does not grow with them."""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count

from pydantic import FiniteFloat

from guardrail.core.types import Category, Value
from guardrail.log.entries import Feedback, Record
from guardrail.report.gaps import GapFinder, Gaps

__all__ = [
    "NO_CLAIM",
    "ProblemCount",
    "ScoreSummary",
    "StageSummary",
    "Summary",
    "TrendPoint",
    "intent_of",
    "summarise",
]

NO_CLAIM = "no claim"
BINS = 20
SAMPLE = 10_000
"""Values kept of each score; of more, a random sample stands for all in bins and quantiles."""
POINTS = 60
"""Most points of a trend."""
FIRST_WIDTH_S = 60
"""Records of one minute share a point until the log spans too many of them."""
INTENT_LINE = "Intent of the question: "


class TrendPoint(Value):
    """Mean of a score over the records of a stretch of time."""

    start: datetime
    mean: FiniteFloat
    count: int


class ScoreSummary(Value):
    """Distribution and trend of one score.

    Attributes:
        name: Of the score.
        count: Records with a value.
        missing: Records without.
        reason: The most frequent reason for having none.
        mean: Of all values.
        low: Lower end of the first bin.
        high: Upper end of the last.
        bins: Number of (sampled) values in equal bins.
        quantiles: The values below which lie 10, 50 and 90 of 100.
        trend: By time.
    """

    name: str
    count: int
    missing: int = 0
    reason: str | None = None
    mean: FiniteFloat = 0.0
    low: FiniteFloat = 0.0
    high: FiniteFloat = 1.0
    bins: tuple[int, ...] = ()
    quantiles: tuple[FiniteFloat, ...] = ()
    trend: tuple[TrendPoint, ...] = ()


class StageSummary(Value):
    """Latency of one stage, milliseconds."""

    name: str
    count: int
    p50: FiniteFloat
    p95: FiniteFloat
    p99: FiniteFloat


class ProblemCount(Value):
    """How often a part failed, and its latest message."""

    part: str
    count: int
    message: str


class Summary(Value):
    """What a report shows.

    Attributes:
        records: Number of records.
        first: Moment of the oldest; None for an empty log.
        last: Moment of the newest.
        actions: Records by the policy's action.
        categories: Sentences by category, ``no claim`` for those that have none.
        intents: The same by the question's intent, for records whose intent is known.
        scores: ``overall`` first, then by name.
        stages: In the order of the work; ``total`` last.
        gaps: What the graph lacks.
        problems: What failed.
        versions: Names and versions of the parts seen, newest last.
        thumbs_up: Feedback of that kind.
        thumbs_down: Feedback of that kind.
        corrections: Feedback with a correction.
        worst: Records of the lowest overall score, the lowest first.
        recent: The newest records, the newest first.
        feedback: Feedback on the records shown, by their id.
    """

    records: int
    first: datetime | None = None
    last: datetime | None = None
    actions: Mapping[str, int]
    categories: Mapping[str, int]
    intents: Mapping[str, Mapping[str, int]]
    scores: tuple[ScoreSummary, ...]
    stages: tuple[StageSummary, ...]
    gaps: Gaps
    problems: tuple[ProblemCount, ...]
    versions: tuple[str, ...]
    thumbs_up: int = 0
    thumbs_down: int = 0
    corrections: int = 0
    worst: tuple[Record, ...] = ()
    recent: tuple[Record, ...] = ()
    feedback: Mapping[str, tuple[Feedback, ...]]


def summarise(
    records: Iterable[Record],
    feedback: Iterable[Feedback] = (),
    *,
    worst: int = 150,
    recent: int = 50,
) -> Summary:
    """Read records once and summarise them.

    Args:
        records: Any number, in order of time.
        feedback: What readers said of them.
        worst: Number of records of the lowest overall score to keep whole.
        recent: Number of the newest records to keep whole.
    """
    return _Tally(worst, recent).read(records).summary(feedback)


def intent_of(record: Record) -> str | None:
    """The question's intent: the tag ``intent``, else what the SCK score tells of it."""
    tagged = record.tags.get("intent")
    if tagged:
        return tagged
    for name, score in record.answer.scorecard.scores.items():
        if name.startswith("sck"):
            for line in score.evidence:
                if line.startswith(INTENT_LINE):
                    return line.removeprefix(INTENT_LINE).partition(" (")[0]
    return None


class _Tally:
    """Counts of a stream of records."""

    def __init__(self, worst: int, recent: int) -> None:
        self._records = 0
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._actions: Counter[str] = Counter()
        self._categories: Counter[str] = Counter()
        self._intents: dict[str, Counter[str]] = defaultdict(Counter)
        self._scores: dict[str, _Series] = defaultdict(_Series)
        self._stages: dict[str, _Sample] = defaultdict(_Sample)
        self._gaps = GapFinder()
        self._problems: Counter[str] = Counter()
        self._messages: dict[str, str] = {}
        self._versions: dict[str, None] = {}
        self._worst: list[tuple[float, int, Record]] = []
        self._keep = worst
        self._recent: deque[Record] = deque(maxlen=recent)
        self._serial = count()

    def read(self, records: Iterable[Record]) -> _Tally:
        for record in records:
            if not record.lost:
                self._add(record)
        return self

    def _add(self, record: Record) -> None:
        answer, when = record.answer, record.created
        self._records += 1
        self._first = when if self._first is None else min(self._first, when)
        self._last = when if self._last is None else max(self._last, when)
        self._actions[answer.decided] += 1
        kinds = Counter(
            sentence.category.value if sentence.category else NO_CLAIM for sentence in answer.judged
        )
        self._categories.update(kinds)
        intent = intent_of(record)
        if intent is not None:
            self._intents[intent].update(kinds)
        card = answer.scorecard
        for name, score in (("overall", card.overall), *card.scores.items()):
            if score.value is None:
                self._scores[name].miss(score.reason or "")
            else:
                self._scores[name].add(score.value, when.timestamp())
        for stage, spent in answer.timings_ms.items():
            self._stages[stage].add(spent)
        for problem in answer.errors:
            self._problems[problem.part] += 1
            self._messages[problem.part] = problem.message
        for part, name in answer.versions.items():
            self._versions[f"{part}: {name}"] = None
        self._gaps.add(record)
        self._recent.append(record)
        overall = card.overall.value
        if overall is not None and self._keep:
            # The heap holds the highest of the lowest on top; of equal scores the older goes.
            item = (-overall, next(self._serial), record)
            if len(self._worst) < self._keep:
                heapq.heappush(self._worst, item)
            else:
                heapq.heappushpop(self._worst, item)

    def summary(self, feedback: Iterable[Feedback]) -> Summary:
        worst = tuple(
            record for _, _, record in sorted(self._worst, key=lambda item: (-item[0], -item[1]))
        )
        recent = tuple(reversed(self._recent))
        shown = {record.id for record in (*worst, *recent)}
        said: dict[str, list[Feedback]] = defaultdict(list)
        thumbs: Counter[int] = Counter()
        corrections = 0
        for item in feedback:
            thumbs[item.thumb] += 1
            corrections += bool(item.correction)
            if item.record_id in shown:
                said[item.record_id].append(item)
        names = sorted(self._scores, key=lambda name: (name != "overall", name))
        stages = sorted(self._stages, key=lambda name: name == "total")
        return Summary(
            records=self._records,
            first=self._first,
            last=self._last,
            actions=dict(self._actions.most_common()),
            categories={
                name: self._categories[name]
                for name in (*(category.value for category in Category), NO_CLAIM)
            },
            intents={name: dict(self._intents[name]) for name in sorted(self._intents)},
            scores=tuple(self._scores[name].summary(name) for name in names),
            stages=tuple(self._stages[name].stage(name) for name in stages),
            gaps=self._gaps.result(),
            problems=tuple(
                ProblemCount(part=part, count=number, message=self._messages[part])
                for part, number in self._problems.most_common()
            ),
            versions=tuple(self._versions),
            thumbs_up=thumbs[1],
            thumbs_down=thumbs[-1],
            corrections=corrections,
            worst=worst,
            recent=recent,
            feedback={key: tuple(value) for key, value in said.items()},
        )


class _Sample:
    """A random sample of a stream of numbers, exact while the stream is short."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._values: list[float] = []
        self._dice = random.Random(0)

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        if len(self._values) < SAMPLE:
            self._values.append(value)
        else:
            place = self._dice.randrange(self.count)
            if place < SAMPLE:
                self._values[place] = value

    def ordered(self) -> list[float]:
        return sorted(self._values)

    def stage(self, name: str) -> StageSummary:
        values = self.ordered()
        p50, p95, p99 = (quantile(values, share) for share in (0.5, 0.95, 0.99))
        return StageSummary(name=name, count=self.count, p50=p50, p95=p95, p99=p99)


class _Series:
    """The values of one score over time."""

    def __init__(self) -> None:
        self._sample = _Sample()
        self._missing: Counter[str] = Counter()
        self._width = FIRST_WIDTH_S
        self._points: dict[int, tuple[float, int]] = {}

    def miss(self, reason: str) -> None:
        self._missing[reason] += 1

    def add(self, value: float, when: float) -> None:
        self._sample.add(value)
        place = int(when // self._width)
        total, number = self._points.get(place, (0.0, 0))
        self._points[place] = (total + value, number + 1)
        # Twice as many as are shown, so that the last doubling still leaves enough.
        while len(self._points) > 2 * POINTS:
            self._widen()

    def _widen(self) -> None:
        self._width *= 2
        wider: dict[int, tuple[float, int]] = {}
        for place, (total, number) in self._points.items():
            weight, before = wider.get(place // 2, (0.0, 0))
            wider[place // 2] = (weight + total, before + number)
        self._points = wider

    def summary(self, name: str) -> ScoreSummary:
        missing = self._missing.total()
        reason = self._missing.most_common(1)[0][0] if missing else None
        values = self._sample.ordered()
        if not values:
            return ScoreSummary(name=name, count=0, missing=missing, reason=reason)
        low, high = (0.0, 1.0) if values[0] >= 0 and values[-1] <= 1 else (values[0], values[-1])
        while len(self._points) > POINTS:
            self._widen()
        return ScoreSummary(
            name=name,
            count=self._sample.count,
            missing=missing,
            reason=reason,
            mean=self._sample.total / self._sample.count,
            low=low,
            high=high,
            bins=_bins(values, low, high),
            quantiles=tuple(quantile(values, share) for share in (0.1, 0.5, 0.9)),
            trend=tuple(
                TrendPoint(
                    start=datetime.fromtimestamp(place * self._width, UTC),
                    mean=total / number,
                    count=number,
                )
                for place, (total, number) in sorted(self._points.items())
            ),
        )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which a share of ordered values lies, by linear interpolation."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _bins(values: Sequence[float], low: float, high: float) -> tuple[int, ...]:
    bins = [0] * BINS
    width = (high - low) / BINS or 1.0
    for value in values:
        bins[min(BINS - 1, int((value - low) / width))] += 1
    return tuple(bins)
