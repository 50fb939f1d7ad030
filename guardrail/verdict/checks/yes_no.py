"""Yes and no: a property whose value is yes or no, stated or denied in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.text.words import Token, content_stems, plain, property_words
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["YesNo"]

HALF = 0.5
"""Least share of a property's words in a clause that speaks of it."""

CLAUSE = re.compile(r"[,;:()|]|\s-\s")


class YesNo:
    """Says whether a sentence agrees with the yes or no of a property that it speaks of.

    A clause speaks of a property by its words; it denies it by a word that negates. A clause with
    a condition or a quantifier says more than yes or no, and is left to the judge.
    """

    name = "yes_no"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find the properties that are stated correctly, and those stated as their opposite."""
        return [
            found
            for number, statement in evidence.chosen
            if (known := statement.yes) is not None and evidence.speaks_of(statement)
            for found in self._of(claim, evidence, number, statement, known=known)
        ]

    def _of(
        self, claim: Claim, evidence: Premises, number: int, statement: Statement, *, known: bool
    ) -> Iterator[Finding]:
        assert statement.fact is not None
        wanted = content_stems(property_words(statement.fact.property))
        spoken = _best_clause(claim, wanted, content_stems(statement.subject))
        if spoken is None:
            return
        share, tokens = spoken
        words = {token.folded for token in tokens}
        if not words.isdisjoint(lexicon_set("function_words", "conditions")):
            return
        stated = not any(_negates(token) for token in tokens)
        span = tokens[0].start, tokens[-1].end
        if stated is known:
            because = f"agrees with {statement.text}"
            yield finding(self.name, Effect.CARRIES, claim, span, because, (number,))
        elif share == 1.0 and evidence.subjects == {statement.subject}:
            because = f"tells the opposite of {statement.text}"
            instead = statement.fact.value
            yield finding(
                self.name, Effect.CONTRADICTS, claim, span, because, (number,), instead=instead
            )


def _best_clause(
    claim: Claim, wanted: frozenset[str], subject: frozenset[str]
) -> tuple[float, list[Token]] | None:
    """The clause with most of a property's words, and their share; None where none speaks of it.

    Words that the subject's name has as well tell nothing.
    """
    own = wanted - subject
    best: tuple[float, list[Token]] | None = None
    for tokens in _clauses(claim):
        share = len(own & {token.stem for token in tokens}) / len(own) if own else 0.0
        if share >= HALF and (best is None or share > best[0]):
            best = share, tokens
    return best


def _clauses(claim: Claim) -> Iterator[list[Token]]:
    """The words of a sentence, clause by clause."""
    contrasts = lexicon_set("function_words", "contrasts")
    text = plain(claim.text)
    clause: list[Token] = []
    for token in claim.tokens:
        between = text[clause[-1].end : token.start] if clause else ""
        if CLAUSE.search(between) or token.folded in contrasts:
            if clause:
                yield clause
            clause = []
        clause.append(token)
    if clause:
        yield clause


def _negates(token: Token) -> bool:
    words = ("negations", "negating_prefixes")
    return any(token.folded in lexicon_set("function_words", name) for name in words)
