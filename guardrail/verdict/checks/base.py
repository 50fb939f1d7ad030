"""What a check is, and what it reads: one sentence, and the evidence that it is held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from guardrail.core.text.dates import Date
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.units import cues, property_name
from guardrail.core.text.words import content_stems, fold
from guardrail.core.types import Effect, Finding, Strictness, VerdictThresholds

if TYPE_CHECKING:
    from guardrail.core.types import Grounding, StatementScore
    from guardrail.evidence.prepared import PreparedEvidence, Selection
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim


class Context(NamedTuple):
    """Context other than the evidence.

    Attributes:
        text: The question and the sentences before.
        stems: Stems of their content words.
    """

    text: str
    stems: frozenset[str]


class Check(Protocol):
    """Reads one sentence with its evidence and reports support, contradiction and gaps."""

    name: str
    """As the section ``[checks]`` of the configuration switches it, and as findings give it."""

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """What the check finds in a sentence, for and against it; empty where there is nothing."""
        ...


def finding(
    check: str,
    effect: Effect,
    claim: Claim,
    span: tuple[int, int],
    because: str,
    statements: tuple[int, ...] = (),
    *,
    instead: str | None = None,
    decides: bool = False,
) -> Finding:
    """A finding on a span of a sentence; ``span`` counts characters of the sentence.

    Raises:
        ValueError: It is no span of the sentence.
    """
    start, end = claim.stretch.start + span[0], claim.stretch.start + span[1]
    if not claim.stretch.start <= start <= end <= claim.stretch.end:
        raise ValueError(f"{span} is no span of claim.text")
    return Finding(
        check=check,
        effect=effect,
        start=start,
        end=end,
        because=because,
        instead=instead,
        decides=decides,
        statements=statements,
    )


def of_parts(check: Check, claim: Claim, evidence: Premises, context: Context) -> list[Finding]:
    """What a check settles of the parts of a row or object: one is denied, or all are stated."""
    found: list[Finding] = []
    settled = 0
    for name, value, span in claim.parts:
        bare = fold(value).strip(" \ufe0f")
        if not any(map(str.isalnum, bare)):  # a sign for yes or no, or for a missing value
            value = next((w for w in ("yes", "no") if bare in lexicon_set("function_words", w)), "")
        if not value or bare in lexicon_set("cells", "missing"):
            continue
        part = claim.part(name + value)
        about = part.about or evidence.subjects
        if not about.isdisjoint(claim.named_in(value)):
            settled += 1  # the name of the subject itself
            continue
        for item in check.apply(part, replace(evidence, subjects=about), context):
            settled += item.effect is Effect.CARRIES
            start, end = (claim.stretch.start + at for at in span)
            found.append(item.model_copy(update={"start": start, "end": end}))
    against = [item for item in found if item.effect is not Effect.CARRIES]
    return against[:1] or (found if settled == len(claim.parts) else [])


LIKELY = 0.5
"""Least probability at which the judge's word on a statement counts."""

NAMED = 0.9
"""Share of a property's words, or another wording of it, that names it."""


def named_share(claim: Claim, label: str) -> float:
    """Share of a property's content words in a sentence; 0.9 for other wordings."""
    words = content_stems(property_name(label))
    share = len(words & claim.stems) / len(words) if words else 0.0
    reworded = (cues(label) - words) & claim.stems
    return max(share, NAMED) if reworded else share


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
    def chosen(self) -> list[tuple[int, Statement]]:
        """The statements that the judge read, each with its number among all."""
        return [(place, self.indexed.statements[place]) for place in self.selection.places]

    @cached_property
    def _scores(self) -> dict[int, StatementScore | None]:
        scores = self.grounding.statements if self.grounding else ()
        return dict(zip(self.selection.places, scores, strict=False))

    def carries(self, number: int) -> float:
        """Probability that a statement carries a part of the sentence; 0 where it was not read."""
        score = self._scores.get(number)
        return score.carries if score else 0.0

    def conflicts(self, number: int) -> float:
        """Probability that a statement conflicts with the sentence; 0 where it was not read."""
        score = self._scores.get(number)
        return score.conflicts if score else 0.0

    def speaks_of(self, statement: Statement) -> bool:
        """Whether the sentence speaks of a statement's subject; of one without any it may."""
        return not statement.subject or statement.subject in self.subjects

    def is_ambiguous(self, claim: Claim, statement: Statement) -> bool:
        """True if a pronoun may as well mean another subject, for which a fact does not hold."""
        if statement.fact is None or len(self.subjects) < 2 or claim.about:
            return False
        name = content_stems(property_name(statement.fact.property))
        return any(
            item.subject != statement.subject
            and not name.isdisjoint(content_stems(property_name(item.fact.property)))
            and (not claim.where(item) if item.yes is None else item.yes is not statement.yes)
            for _, item in self.indexed.facts_of(self.subjects)
            if item.fact and item.value_text != statement.value_text
        )

    def concerns(self, claim: Claim, number: int) -> bool:
        """True if a statement may support the sentence: no fact about an unrelated subject.

        Prose may, and facts about what a relation that the sentence names leads to, or that name
        its subject; but a property of its subject is not read from another subject that has it too.
        """
        statement = self.indexed.statements[number]
        own = self.indexed.facts_of(self.subjects)
        if statement.triple is None or self.speaks_of(statement) or not own:
            return True
        value, subject = fold(statement.value_text), fold(statement.subject)
        label = statement.triple.property
        same = content_stems(f"{statement.subject} {label}") | cues(label)
        for _, item in own:
            words = item.stems - content_stems(item.subject) - same
            if subject in fold(item.value_text) and not words.isdisjoint(claim.stems):
                return True
        known = any(item.fact and item.fact.property == label for _, item in own)
        return not known and any(fold(name) in value for name in self.subjects)


def applies(claim: Claim, statement: Statement) -> bool:
    """True if a statement holds at the time that a sentence speaks of.

    That is a date of the sentence or, in the present tense, today; what lasts *since* a date, or
    *still*, has to hold today. A sentence in the past tense without a date may speak of any time.
    """
    valid = statement.validity
    if valid is None and not statement.label_dates:
        return True
    dates = [value.value for value in claim.values if isinstance(value.value, Date)]
    dates = [when for when in dates if when.year is not None]
    if valid is None or (statement.label_dates and dates):
        years = [(when.year, held.year) for when in dates for held in statement.label_dates]
        return not years or any(mine == held for mine, held in years)
    today, words = valid.holds(datetime.now(UTC).date()), {item.folded for item in claim.tokens}
    ongoing, past = lexicon_set("grammar", "ongoing"), lexicon_set("grammar", "past")
    if words.isdisjoint(past) and not words.isdisjoint(ongoing):
        return today and all(valid.meets(when) for when in dates)
    if dates:
        return any(valid.meets(when) for when in dates)
    return today or not words.isdisjoint(past) or any(word.endswith("ed") for word in words)
