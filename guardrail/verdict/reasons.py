"""Notes on a sentence: what contradicts it, what lies where, and which citations were dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.core.text.words import fold
from guardrail.core.types import Citation, Verdict

if TYPE_CHECKING:
    from guardrail.markers.grammar import ParsedText
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.combination import Outcome
    from guardrail.verdict.premises import Premises

__all__ = ["against_of", "note_of"]


def against_of(evidence: Premises, outcome: Outcome) -> tuple[str, ...]:
    """The statement that contradicts a sentence, or what was found, where one is known."""
    if outcome.verdict is not Verdict.CONTRADICTED:
        return ()
    if outcome.against is None:
        return (outcome.spoke.because,) if outcome.spoke else ()
    statement = evidence.indexed.statements[outcome.against]
    return (statement.triple.text if statement.triple else statement.text,)


def note_of(
    claim: Claim,
    evidence: Premises,
    outcome: Outcome,
    answer: ParsedText,
    cited: Sequence[Citation],
    *,
    verbatim: bool,
) -> str | None:
    """What a reader should know of a sentence that cites something; None where there is nothing.

    Where citations are ``verbatim``, only triples are cited whose value stands in the sentence.
    """
    lines = [f"contradicted by: {text}" for text in against_of(evidence, outcome)]
    folded_text = fold(claim.text)
    for number in outcome.carried:
        statement = evidence.indexed.statements[number]
        triple, around = statement.triple, statement.others
        if triple is not None and around and fold(triple.value) not in folded_text:
            lines.append(f"{triple.value} lies in {', '.join(around)}")
    cited_values = {(fold(item.property), fold(item.value)) for item in cited}
    gone = [
        f"[{citation.entity}, {citation.property}: {citation.value}]"
        for marker in answer.within(claim.stretch.start, claim.stretch.end)
        for citation in marker.citations
        if (fold(citation.property), fold(citation.value)) not in cited_values
    ]
    if gone:
        lines.append(
            "citation dropped, since no evidence holds it or the sentence does not state it"
            f"{' word for word' if verbatim else ''}: " + " ".join(dict.fromkeys(gone))
        )
    return "; ".join(dict.fromkeys(lines)) or None
