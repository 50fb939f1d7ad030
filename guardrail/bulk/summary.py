"""What a job found: counts of each shard, added up, with rates and confidence intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from guardrail.core.types import Value
from guardrail.intervals import Rate, mean, share

__all__ = ["Counts", "Summary", "summarise"]

UNREACHABLE: Final = {"kg", "judge", "model", "deadline", "overload"}
"""Parts, as named in an answer's ``errors``, that may be reachable again in a later run."""


@dataclass
class Counts:
    """Counts of rows.

    Attributes:
        rows: All rows.
        errors: Rows that could not be judged.
        unverified: Errors because graph, judge or model were unreachable.
        tallies: Rows by outcome, such as ``action: pass``.
        scores: Number, sum and sum of squares of each score.
    """

    rows: int = 0
    errors: int = 0
    unverified: int = 0
    tallies: Counter[str] = field(default_factory=Counter)
    scores: dict[str, tuple[int, float, float]] = field(default_factory=dict)

    def add(self, task: str, result: Mapping[str, Any] | None) -> None:
        """Count one row.

        Args:
            task: ``check``, ``score`` or ``rank``.
            result: Its result; None for a row with an error.
        """
        parts = {error["part"] for error in (result or {}).get("errors", ())}
        unverified = bool(parts & UNREACHABLE)
        self.rows += 1
        self.errors += result is None or unverified
        self.unverified += unverified
        if result is not None and not unverified:
            self.tallies.update(_outcomes(result) if task == "check" else ())
            for name, value in _scores(task, result):
                self._add_score(name, 1, value, value * value)

    def merge(self, other: Counts) -> None:
        """Add other counts to these."""
        self.rows += other.rows
        self.errors += other.errors
        self.unverified += other.unverified
        self.tallies += other.tallies
        for name, sums in other.scores.items():
            self._add_score(name, *sums)

    def _add_score(self, name: str, number: int, total: float, squares: float) -> None:
        old = self.scores.get(name, (0, 0.0, 0.0))
        self.scores[name] = (old[0] + number, old[1] + total, old[2] + squares)


class Summary(Value):
    """The result of a job.

    Attributes:
        rows: Rows of the input and of the output.
        errors: Rows that could not be judged.
        unverified: Errors because graph, judge or model were unreachable; the next run of the job
            repeats their shards.
        shards: All shards.
        skipped: Shards that an earlier run had finished.
        seconds: Wall time of this run.
        rows_per_second: Rows of this run per second.
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


def summarise(parts: Iterable[Counts], *, skipped: int, seconds: float, fresh: int) -> Summary:
    """Add up the counts of the shards.

    Args:
        parts: The counts, in the order of the shards, so that sums are reproducible.
        skipped: Shards finished before.
        seconds: Wall time.
        fresh: Rows judged in that time.
    """
    whole, shards = Counts(), 0
    for part in parts:
        whole.merge(part)
        shards += 1
    good = whole.rows - whole.errors
    rates = {"errors": share(whole.errors, whole.rows)}
    rates |= {name: share(number, good) for name, number in sorted(whole.tallies.items())}
    rates |= {name: mean(*sums) for name, sums in sorted(whole.scores.items())}
    return Summary(
        rows=whole.rows,
        errors=whole.errors,
        unverified=whole.unverified,
        shards=shards,
        skipped=skipped,
        seconds=seconds,
        rows_per_second=fresh / seconds if seconds > 0 else 0.0,
        rates=rates,
    )


def _outcomes(result: Mapping[str, Any]) -> list[str]:
    """What a checked answer is counted as."""
    sentences = result["sentences"]
    categories = {sentence["category"] for sentence in sentences if sentence["category"]}
    outcomes = [f"action: {result['action']}"]
    outcomes += [f"answers with a sentence {category}" for category in sorted(categories)]
    if any(sentence["na"] for sentence in sentences):
        outcomes.append("answers with [NA]")
    if result["errors"]:
        outcomes.append("answers with problems")
    return outcomes


def _scores(task: str, result: Mapping[str, Any]) -> list[tuple[str, float]]:
    if task == "check":
        found = {"overall": result["scorecard"]["overall"], **result["scorecard"]["scores"]}
    elif task == "rank":
        best = result["ranking"][0]["score"] if result["ranking"] else None
        found = {"best score": {"value": best}}
    else:
        found = {"sck": result["sck"]["score"]} | {
            f"conner.{name}": part
            for name, part in result["conner"].items()
            if isinstance(part, dict) and "value" in part
        }
    return [(name, item["value"]) for name, item in found.items() if item["value"] is not None]
