"""Validity: a statement that held at another time than the sentence speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from guardrail.core.text.dates import Date
from guardrail.core.text.lexicon import lexicon_set
from guardrail.core.types import Effect, Finding
from guardrail.verdict.checks.base import Context, finding

if TYPE_CHECKING:
    from guardrail.evidence.statements import Statement
    from guardrail.verdict.claims import Claim
    from guardrail.verdict.premises import Premises

__all__ = ["ValidInTime", "applies"]

SURE = 0.5
"""Least probability at which the judge's opinion on a statement counts."""


class ValidInTime:
    """Finds sentences that only statements support that do not hold at their time."""

    name = "valid_in_time"

    def apply(self, claim: Claim, evidence: Premises, context: Context) -> Sequence[Finding]:
        """Find that what carries the sentence has ended or has not begun."""
        carrying = [s for number, s in evidence.chosen if evidence.carries(number) >= SURE]
        ended = [statement for statement in carrying if not applies(claim, statement)]
        if not ended or len(ended) < len(carrying):
            return ()
        because = f"at another time: {ended[0].text}"
        span = (0, len(claim.text))
        return (finding(self.name, Effect.MISSING, claim, span, because, decides=True),)


def applies(claim: Claim, statement: Statement) -> bool:
    """True if a statement holds at the time that a sentence speaks of.

    That is a date of the sentence or, in the present tense, today. A sentence in the past tense
    without a date may speak of any time.
    """
    valid = statement.validity
    if valid is None and not statement.label_dates:
        return True
    dates = [value.value for value in claim.values if isinstance(value.value, Date)]
    dates = [when for when in dates if when.year is not None]
    if valid is None or (statement.label_dates and dates):
        years = [(when.year, held.year) for when in dates for held in statement.label_dates]
        return not years or any(mine == held for mine, held in years)
    if dates:
        return any(valid.meets(when) for when in dates)
    past = lexicon_set("grammar", "past")
    if any(token.folded in past or token.folded.endswith("ed") for token in claim.tokens):
        return True
    return valid.holds(datetime.now(UTC).date())
