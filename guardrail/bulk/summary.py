"""What a job found: counts of each shard, added up, with rates and confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import Field

from guardrail.core.types import Value
from guardrail.intervals import Z_95, wilson

__all__ = ["Counts", "Finished", "Rate", "Summary", "count_row", "summarise"]


OUT_OF_REACH: Final = {"kg", "judge", "model", "deadline", "overload"}
"""Parts that may be in reach again, as an answer's ``errors`` name them."""


class Counts(Value):
    """Counts that can be added.

    Attributes:
        rows: Rows judged.
        errors: Rows that could not be judged.
        unverified: Those of them that may be when graph, judge and model are in reach again.
        tallies: Rows by what they show, such as ``action: pass``.
        scores: Number, sum and sum of squares of each score.
    """

    rows: int = 0
    errors: int = 0
    unverified: int = 0
    tallies: Mapping[str, int] = Field(default_factory=dict)
    scores: Mapping[str, tuple[int, float, float]] = Field(default_factory=dict)


class Finished(Counts):
    """What is noted of a finished shard.

    Attributes:
        size: Bytes of its results; None in notes of before.
    """

    size: int | None = None


class Rate(Value):
    """A share or a mean with its 95 % confidence interval, and what it was counted from."""

    value: float
    low: float
    high: float
    rows: int


class Summary(Value):
    """The end of a job.

    Attributes:
        rows: Rows of the input, each of which is a row of the output.
        errors: Rows that could not be judged.
        unverified: Those of them that may be when graph, judge and model are in reach again; the
            next run of the job judges their shards again.
        shards: Shards in all.
        skipped: Shards that an earlier run had finished.
        seconds: Wall time of this run.
        rows_per_second: Rows of this run in a second.
        rates: Shares (Wilson's interval) and means (normal interval) by name.
    """

    rows: int
    errors: int
    unverified: int
    shards: int
    skipped: int
    seconds: float
    rows_per_second: float
    rates: Mapping[str, Rate]


def count_row(counts: Counts, task: str, result: Mapping[str, Any] | None) -> Counts:
    """Add one row to the counts; None for one with an error."""
    tallies, scores = dict(counts.tallies), dict(counts.scores)
    told = {error["part"] for error in (result or {}).get("errors", ())}
    waits = bool(told & OUT_OF_REACH)
    if result is not None and not waits:
        for name in _shown(task, result):
            tallies[name] = tallies.get(name, 0) + 1
        for name, value in _scores(task, result):
            number, total, squares = scores.get(name, (0, 0.0, 0.0))
            scores[name] = (number + 1, total + value, squares + value * value)
    return Counts(
        rows=counts.rows + 1,
        errors=counts.errors + (result is None or waits),
        unverified=counts.unverified + waits,
        tallies=tallies,
        scores=scores,
    )


def summarise(parts: Iterable[Counts], *, skipped: int, seconds: float, fresh: int) -> Summary:
    """Add the shards' counts up.

    Args:
        parts: The counts, in the order of the shards, so that sums come out the same.
        skipped: Shards finished before.
        seconds: Wall time.
        fresh: Rows that were judged in that time.
    """
    rows = errors = unverified = shards = 0
    tallies: dict[str, int] = {}
    scores: dict[str, tuple[int, float, float]] = {}
    for part in parts:
        rows, errors, shards = rows + part.rows, errors + part.errors, shards + 1
        unverified += part.unverified
        for name, number in part.tallies.items():
            tallies[name] = tallies.get(name, 0) + number
        for name, (number, total, squares) in part.scores.items():
            old = scores.get(name, (0, 0.0, 0.0))
            scores[name] = (old[0] + number, old[1] + total, old[2] + squares)
    good = rows - errors
    rates = {"errors": share(errors, rows)}
    rates |= {name: share(number, good) for name, number in sorted(tallies.items())}
    rates |= {name: _mean(*sums) for name, sums in sorted(scores.items())}
    return Summary(
        rows=rows,
        errors=errors,
        unverified=unverified,
        shards=shards,
        skipped=skipped,
        seconds=seconds,
        rows_per_second=fresh / seconds if seconds > 0 else 0.0,
        rates=rates,
    )


def share(number: int, of: int) -> Rate:
    """A share with Wilson's score interval."""
    if of == 0:
        return Rate(value=0.0, low=0.0, high=1.0, rows=0)
    low, high = wilson(number / of, of)
    return Rate(value=number / of, low=low, high=high, rows=of)


def _mean(number: int, total: float, squares: float) -> Rate:
    mean = total / number
    spread = max(0.0, squares / number - mean * mean)
    half = Z_95 * math.sqrt(spread / max(1, number - 1))
    return Rate(value=mean, low=mean - half, high=mean + half, rows=number)


def _shown(task: str, result: Mapping[str, Any]) -> list[str]:
    """What a row counts for."""
    if task != "check":
        return []
    sentences = result["sentences"]
    categories = {sentence["category"] for sentence in sentences if sentence["category"]}
    shown = [f"action: {result['action']}"]
    shown += [f"answers with a sentence {category}" for category in sorted(categories)]
    if any(sentence["na"] for sentence in sentences):
        shown.append("answers with [NA]")
    if result["errors"]:
        shown.append("answers with problems")
    return shown


def _scores(task: str, result: Mapping[str, Any]) -> list[tuple[str, float]]:
    if task == "check":
        found = {"overall": result["scorecard"]["overall"], **result["scorecard"]["scores"]}
    elif task == "rank":
        ranking = result["ranking"]
        best = ranking[0]["score"] if ranking else None
        return [] if best is None else [("best score", best)]
    else:
        found = {"sck": result["sck"]["score"]} | {
            f"conner.{name}": part
            for name, part in result["conner"].items()
            if isinstance(part, dict) and "value" in part
        }
    return [(name, item["value"]) for name, item in found.items() if item["value"] is not None]
