"""The statements that a sentence is held against, with what the judge says of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from guardrail.core.types import Strictness, VerdictThresholds

if TYPE_CHECKING:
    from guardrail.core.types import Grounding
    from guardrail.evidence.prepared import PreparedEvidence, Selection
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim

__all__ = ["Premises", "relevant"]


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

    indexed: PreparedEvidence
    selection: Selection
    subjects: frozenset[str]
    grounding: Grounding | None = None
    thresholds: VerdictThresholds = Strictness.BALANCED.thresholds

    @cached_property
    def structured(self) -> bool:
        """Whether all statements that the judge read are triples."""
        return all(statement.triple is not None for _, statement in self.chosen)

    @cached_property
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


def relevant(
    claim: Claim, indexed: PreparedEvidence, subjects: frozenset[str], places: Sequence[int]
) -> frozenset[int]:
    """Indices of the statements that may support or contradict a sentence.

    What holds at another time does neither. If the sentence is about somebody whom the facts know
    only as a value, the facts that name them are left, and not those of their relatives.
    """
    from guardrail.verdict.checks.validity import applies

    statements = indexed.statements
    others = subjects.difference(indexed.labels)
    foreign = bool(others) and subjects == others
    return frozenset(
        place
        for place in places
        if applies(claim, statements[place])
        and not statements[place].is_missing
        and (
            not foreign
            or statements[place].triple is None
            or any(name in statements[place].value_text for name in others)
        )
    )
