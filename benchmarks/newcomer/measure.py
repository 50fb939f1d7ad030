"""The table of the benchmark: counts of sentences by their label and by what became of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.newcomer.domains import Labelled
from benchmarks.outcomes import Outcome, outcome, untouched
from guardrail.core.types import GuardedAnswer, Verdict

__all__ = ["Table", "auc", "table_of", "together"]


class Table(NamedTuple):
    """What became of the sentences of a domain, by their labels.

    Attributes:
        true: Of the supported ones.
        false: Of the contradicted and unsupported ones.
        against: Of the contradicted ones alone.
        whole: Whether each answer without a false sentence was left untouched.
    """

    true: tuple[Outcome, ...]
    false: tuple[Outcome, ...]
    against: tuple[Outcome, ...]
    whole: tuple[bool, ...]

    def counts(self) -> dict[str, tuple[int, int]]:
        """Each share as what is counted and of how many."""
        called = [item for item in (*self.true, *self.false) if item.contradicted]
        wrong = [item for item in self.true if item.contradicted]
        # A sentence without support that is called contradicted is no true one: it lacks support.
        named = sum(item.contradicted for item in self.against)
        return {
            "true_contradicted": (len(wrong), len(self.true)),
            "true_removed": (sum(item.removed for item in self.true), len(self.true)),
            "named": (named, len(self.against)),
            "precision": (named, len(called)),
            "whole": (sum(self.whole), len(self.whole)),
            "false_unmarked": (sum(item.unmarked for item in self.false), len(self.false)),
        }

    def shares(self) -> dict[str, float]:
        """The rows of the table as numbers."""
        found = {key: part / max(1, whole) for key, (part, whole) in self.counts().items()}
        kept = sum(item.supported for item in self.true) / max(1, len(self.true))
        found_out = sum(not item.supported for item in self.false) / max(1, len(self.false))
        scores = [item.score for item in self.true], [item.score for item in self.false]
        return found | {"balanced": 0.5 * (kept + found_out), "auc": auc(*scores)}

    def cell(self, key: str) -> str:
        """A row's cell as people read it."""
        if key == "claims":
            return f"{len(self.true)} / {len(self.false)}"
        if key in self.counts():
            part, whole = self.counts()[key]
            return f"{part} of {whole} ({part / max(1, whole):.1%})"
        return f"{self.shares()[key]:.3f}"


def together(tables: Sequence[Table]) -> Table:
    """Several domains as one."""
    return Table(
        true=tuple(item for table in tables for item in table.true),
        false=tuple(item for table in tables for item in table.false),
        against=tuple(item for table in tables for item in table.against),
        whole=tuple(item for table in tables for item in table.whole),
    )


def table_of(rows: Sequence[tuple[Labelled, GuardedAnswer]]) -> Table:
    """The table of n checked answers."""
    found: dict[Verdict, list[Outcome]] = {label: [] for label in Verdict}
    whole: list[bool] = []
    for labelled, answer in rows:
        text = labelled.request.answer
        for sentence in labelled.sentences:
            found[sentence.label].append(outcome(answer, text, sentence.start, sentence.end))
        if not {sentence.label for sentence in labelled.sentences} & {
            Verdict.CONTRADICTED,
            Verdict.UNSUPPORTED,
        }:
            whole.append(untouched(answer, text))
    against = tuple(found[Verdict.CONTRADICTED])
    false = (*against, *found[Verdict.UNSUPPORTED])
    return Table(tuple(found[Verdict.SUPPORTED]), false, against, tuple(whole))


def auc(true: Sequence[float], false: Sequence[float]) -> float:
    """How often a true one scores above a false one; a tie counts half."""
    order = sorted(false)
    above = sum(0.5 * (bisect_left(order, score) + bisect_right(order, score)) for score in true)
    return above / max(1, len(true) * len(false))
