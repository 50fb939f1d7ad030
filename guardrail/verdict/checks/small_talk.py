"""Small talk: questions, greetings, offers and refusals, which claim nothing."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from guardrail.text.lexicon import lexicon, lexicon_set
from guardrail.text.words import plain, stem
from guardrail.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding

if TYPE_CHECKING:
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["SmallTalk"]

QUESTION_MARKS = "\"')*_ ”’"
"""What may stand behind a question mark."""


class SmallTalk:
    """Says that a sentence claims nothing: it asks, or it is made of conversation alone."""

    name = "small_talk"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Finding | None:
        """Tell a question, or talk between the one who asks and the one who answers."""
        because = _reason(claim, context)
        if because is None:
            return None
        return finding(self.name, Effect.NO_CLAIM, claim, (0, len(claim.text)), because)


def _reason(claim: Claim, context: Context) -> str | None:
    text = plain(claim.text).rstrip(QUESTION_MARKS)
    if text.endswith("?") and not claim.values:
        return "a question"
    if claim.values or not claim.tokens:
        return None
    own = claim.stems - _talk()
    if not own:
        return "conversation"
    speakers = lexicon_set("function_words", "speakers")
    negations = lexicon_set("function_words", "negations")
    words = [token.folded for token in claim.tokens]
    personal = any(word.split("'")[0] in speakers for word in words[:3])
    denied = any(word in negations for word in words)
    if personal and denied and own <= context.stems:
        return "says what is not known"
    return None


@cache
def _talk() -> frozenset[str]:
    return frozenset(stem(word) for word in lexicon("conversation")["words"])
