"""What a check is: it compares one sentence with its evidence and reports what it finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from guardrail.core.text.units import cues, property_name
from guardrail.core.text.words import content_stems
from guardrail.core.types import Effect, Finding

if TYPE_CHECKING:
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["NAMED", "Check", "Context", "finding", "named_share"]


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
        """What the check finds in a sentence, for and against it; empty where there is nothing.

        Args:
            claim: The sentence.
            evidence: What it is held against, with the judge's word.
            context: The question and the preceding sentences.
        """
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
    """A finding on a stretch of a sentence; ``span`` counts characters of the sentence.

    Raises:
        ValueError: It is no stretch of the sentence.
    """
    start, end = claim.span(*span)
    if not claim.stretch.start <= start <= end <= claim.stretch.end:
        raise ValueError(f"{span} is no stretch of claim.text")
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


NAMED = 0.9
"""Share of a property's words, or another wording of it, that names it."""


def named_share(claim: Claim, label: str) -> float:
    """Share of a property's content words in a sentence; 0.9 for other wordings."""
    words = content_stems(property_name(label))
    share = len(words & claim.stems) / len(words) if words else 0.0
    reworded = (cues(label) - words) & claim.stems
    return max(share, NAMED) if reworded else share
