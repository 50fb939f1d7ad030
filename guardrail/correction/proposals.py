"""What is proposed for one contradicted sentence: edits from what contradicts it, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from guardrail.core.types import Citation, Effect, Finding, Triple
from guardrail.correction.edits import Edit, replaced
from guardrail.correction.hours import of_closing, of_days, of_hours
from guardrail.correction.names import of_name
from guardrail.correction.values import lone_value, of_finding
from guardrail.correction.yes_no import of_yes_no

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.combination import Outcome
    from guardrail.verdict.premises import Premises

__all__ = ["Proposal", "Source", "proposed"]


class Source(NamedTuple):
    """What tells an edit.

    Attributes:
        text: As text of the evidence.
        citation: How it is cited.
        triple: The triple that the exchanged words tell; None for a sentence of a passage, and for
            a yes or no, which no words of a sentence tell by themselves.
    """

    text: str
    citation: Citation
    triple: Triple | None


class Proposal(NamedTuple):
    """A contradicted sentence, and how it may be mended.

    Attributes:
        start: Offset of the sentence in the clean answer.
        end: Offset past it.
        original: The sentence.
        edits: What is exchanged in it; empty where that cannot be told.
        sources: What tells each edit, in the same order; without edits, what contradicts it.
    """

    start: int
    end: int
    original: str
    edits: tuple[Edit, ...]
    sources: tuple[Source, ...]

    @property
    def text(self) -> str:
        """The sentence as it would be."""
        return replaced(self.original, self.edits)


def proposed(
    claim: Claim,
    evidence: Premises,
    findings: Sequence[Finding],
    outcome: Outcome,
    *,
    elsewhere: str = "",
) -> Proposal:
    """How one contradicted sentence may be mended.

    Each contradiction that a check found is exchanged, or nothing is. Where only the judge speaks,
    one value, the days, or one name is exchanged for what an aligned statement tells.

    Args:
        claim: The sentence.
        evidence: What it is held against.
        findings: What the checks found.
        outcome: The verdict on it.
        elsewhere: The rest of the answer; a name that it tells is not the one that is meant here.
    """
    against = [finding for finding in findings if finding.effect is Effect.CONTRADICTS]
    if against:
        each: dict[tuple[int, ...], tuple[Edit, ...]] = {}
        for finding in against:  # several checks may find one difference
            each[finding.statements] = each.get(finding.statements) or _of_finding(
                claim, finding, evidence
            )
        edits = [edit for found in each.values() for edit in found] if all(each.values()) else []
    else:
        edits = _of_judge(claim, evidence, outcome, elsewhere)
    edits = sorted(dict.fromkeys(edits))
    if _writes_twice(edits, evidence):
        edits = []
    named = claim.mentions
    if any(first.end > second.start for first, second in pairwise(edits)) or any(
        start < edit.end and edit.start < end for edit in edits for start, end in named
    ):
        edits = []  # whom a sentence is about is never exchanged
    numbers = [edit.number for edit in edits]
    if not edits and outcome.against is not None:
        numbers = [outcome.against]
    return Proposal(
        claim.stretch.start,
        claim.stretch.end,
        claim.stretch.text,
        tuple(edits),
        tuple(_source(evidence.indexed.statements[number]) for number in numbers),
    )


def _writes_twice(edits: Sequence[Edit], evidence: Premises) -> bool:
    """Whether a statement's values would be written in more places than it has of them."""
    counted = Counter(edit.number for edit in edits)
    held = {number: len(evidence.indexed.statements[number].values) for number in counted}
    return any(held[number] and count > held[number] for number, count in counted.items())


def _of_finding(claim: Claim, finding: Finding, evidence: Premises) -> tuple[Edit, ...]:
    statements = [evidence.indexed.statements[number] for number in finding.statements]
    if any(item.fact and not evidence.speaks_of(item) for item in statements):
        return ()  # a fact about another subject corrects nothing
    yes = [statement.yes for statement in statements]
    if finding.instead is not None and yes == [None] and finding.check != "weekday_hours":
        edit = of_finding(claim, finding, evidence)
        return () if edit is None else (edit,)
    if finding.check == "weekday_hours":
        return of_hours(claim, finding, evidence)
    return of_yes_no(claim, finding, evidence) if finding.check in ("yes_no", "stated") else ()


def _of_judge(claim: Claim, evidence: Premises, outcome: Outcome, elsewhere: str) -> list[Edit]:
    number = outcome.against
    edit = None
    if number is not None:
        edit = lone_value(claim, evidence, number) or of_closing(claim, evidence, number)
        edit = edit or of_days(claim, evidence, number)
    edit = edit or of_name(claim, evidence, number, elsewhere)
    return [] if edit is None else [edit]


def _source(statement: Statement) -> Source:
    text = statement.triple.text if statement.triple else statement.text
    told = statement.triple if statement.yes is None else None
    return Source(text, statement.citation, told)
