"""The statements that a sentence is held against, with what the judge says of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from guardrail.core.cancellation import stop_if_given_up
from guardrail.core.types import Strictness, VerdictThresholds

if TYPE_CHECKING:
    from guardrail.core.text.values import TypedValue
    from guardrail.core.types import Grounding
    from guardrail.evidence.index import Selection
    from guardrail.evidence.rows import RowsOfTable
    from guardrail.evidence.statements import Statement

__all__ = ["IndexedEvidence", "Premises"]


@dataclass(eq=False)
class IndexedEvidence:
    """All statements of one answer's evidence, in its order, and what they know together."""

    statements: tuple[Statement, ...]

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of all their words, and of their subjects' other names."""
        from guardrail.core.text.words import content_stems

        found = {stem for statement in self.statements for stem in statement.stems}
        return frozenset(found.union(*(content_stems(name) for name in self.names)))

    @cached_property
    def names(self) -> frozenset[str]:
        """All names of their subjects."""
        found = (name for item in self.statements for name in (item.subject, *item.names))
        return frozenset(name for name in found if name)

    @cached_property
    def values(self) -> dict[str, list[TypedValue]]:
        """All their typed values by kind, those of subjects and properties as well."""
        found: dict[str, list[TypedValue]] = {}
        for statement in self.statements:
            stop_if_given_up()
            for value in (*statement.values, *statement.label_values):
                found.setdefault(value.kind, []).append(value)
        return found

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The different subjects."""
        return tuple(dict.fromkeys(item.subject for item in self.statements if item.subject))

    @cached_property
    def tables(self) -> tuple[RowsOfTable, ...]:
        """The tables all of whose rows are among them."""
        from guardrail.evidence.rows import tables_of

        return tables_of(self.statements)


@dataclass(eq=False)
class Premises:
    """What one sentence is held against.

    Attributes:
        indexed: All of the evidence.
        selection: The statements that the judge read.
        subjects: The subjects that the sentence speaks of.
        grounding: What the judge says; None without a judge.
        thresholds: How sure a verdict must be.
    """

    indexed: IndexedEvidence
    selection: Selection
    subjects: frozenset[str]
    grounding: Grounding | None = None
    thresholds: VerdictThresholds = Strictness.BALANCED.thresholds

    @cached_property
    def structured(self) -> bool:
        """Whether all statements that the judge read are triples."""
        return all(statement.triple is not None for _, statement in self.chosen)

    @property
    def chosen(self) -> list[tuple[int, Statement]]:
        """The statements that the judge read, each with its number among all."""
        return [(place, self.indexed.statements[place]) for place in self.selection.places]

    @cached_property
    def _scores(self) -> dict[int, tuple[float, float]]:
        scores = self.grounding.statements if self.grounding else ()
        return {
            place: (score.carries, score.conflicts)
            for place, score in zip(self.selection.places, scores, strict=False)
            if score is not None
        }

    def carries(self, number: int) -> float:
        """Probability that a statement carries a part of the sentence; 0 where it was not read."""
        return self._scores.get(number, (0.0, 0.0))[0]

    def conflicts(self, number: int) -> float:
        """Probability that a statement conflicts with the sentence; 0 where it was not read."""
        return self._scores.get(number, (0.0, 0.0))[1]

    def speaks_of(self, statement: Statement) -> bool:
        """Whether the sentence speaks of a statement's subject; of one without any it may."""
        return not statement.subject or statement.subject in self.subjects
