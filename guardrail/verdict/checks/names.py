"""Names that stand in no evidence and no question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.names import nation_words
from guardrail.core.text.units import is_unit_name
from guardrail.core.text.words import Token, content_stems, fold, plain, tokenise
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding

if TYPE_CHECKING:
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["UnknownNames"]


class UnknownNames:
    """Says that a name is missing of which no word stands in any evidence."""

    name = "unknown_names"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the first name that nothing knows."""
        known = evidence.indexed.stems | content_stems(plain(claim.asked))
        for start, end in claim.names:
            name = claim.text[start:end]
            tokens = tokenise(name)
            if any(token.stem in known or _says_nothing(token) for token in tokens):
                continue
            # A name may be a piece of a longer word of the evidence.
            if any(fold(name) in fold(statement.text) for statement in evidence.indexed.statements):
                continue
            because = f"no evidence names {name}"
            return (finding(self.name, Effect.MISSING, claim, (start, end), because),)
        return ()


def _says_nothing(token: Token) -> bool:
    """Whether a word proves nothing by standing in no evidence.

    Abbreviations may stand for anything, a country or people for a place or a language; pronouns
    and units are no names.
    """
    return (
        token.text.isupper()
        or token.folded in nation_words()
        or is_unit_name(token.folded)
        or token.folded.partition("'")[0] in lexicon_set("function_words", "speakers")
    )
