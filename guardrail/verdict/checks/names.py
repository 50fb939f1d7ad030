"""Names that stand in no evidence, no question and nothing told before."""

from __future__ import annotations

from guardrail.text.names import other_words
from guardrail.text.words import fold, tokenise
from guardrail.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding
from guardrail.verdict.claims import Claim
from guardrail.verdict.premises import Holdings, Premises

__all__ = ["UnknownNames"]


class UnknownNames:
    """Says that a name is missing of which no word stands in any evidence."""

    name = "unknown_names"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Finding | None:
        """Find the first name that nothing knows."""
        known = evidence.holdings.stems | context.stems
        for start, end in claim.names:
            name = claim.text[start:end]
            tokens = tokenise(name)
            if any(token.stem in known or token.text.isupper() for token in tokens):
                continue
            if any(_people(token.folded, evidence.holdings) for token in tokens):
                continue
            if _inside(fold(name), evidence.holdings):
                continue
            because = f"no evidence names {name}"
            return finding(self.name, Effect.MISSING, claim, (start, end), because)
        return None


def _people(word: str, holdings: Holdings) -> bool:
    """Whether a word is the people of a country that a triple gives as value."""
    return any(
        one.triple is not None and word in other_words(one.triple.value)
        for one in holdings.statements
    )


def _inside(name: str, holdings: Holdings) -> bool:
    """Whether a name is a piece of a longer word of the evidence."""
    return any(name in fold(one.text) for one in holdings.statements)
